//! Tests of several clients that use one file at the same time, on a simulated machine.

use description::MachineDescription;
use experiment::{Beginning, Experiment, Job, Launch, Order, Outcome, StoredFile, Trial, Workload};
use fs::{ClientSettings, IoNodeSettings};
use machine::Duration;

const BLOCK: u64 = 64 << 10;

/// Returns a workload over four disks of 20 MiB/s. The I/O nodes' caches are so small that reads come from the disks.
fn simulated(workload: Workload) -> Experiment {
    let workload = Workload { file_bytes: 16 << 20, record_bytes: BLOCK, ..workload };
    let clients = workload.clients.to_string();
    let values = [("nodes.compute", &*clients), ("nodes.io", "4"), ("disks.model", "streaming-20")];
    let file = StoredFile {
        beginning: if workload.is_read() { Beginning::Written } else { Beginning::Empty },
        ..StoredFile::on_disks("file", workload.file_bytes, BLOCK)
    };
    let (clients, seed) = (0..workload.clients, workload.seed);
    Experiment {
        io_nodes: IoNodeSettings {
            cache_blocks: 16,
            block_bytes_max: BLOCK,
            wait_timeout: None,
            ..IoNodeSettings::report()
        },
        clients: ClientSettings::report(),
        files: vec![file],
        jobs: vec![Launch::at_once(Job::Requests("file".into(), workload), clients)],
        seed,
        ..Experiment::with_agents(MachineDescription::load_with("loopback", &values).expect("built in"))
    }
}

fn trial(workload: Workload) -> Trial {
    simulated(workload).trial(0).unwrap_or_else(|error| panic!("{error}"))
}

fn run(workload: Workload) -> Outcome {
    trial(workload).jobs.remove(0)
}

fn requests(outcome: &Outcome) -> u64 {
    outcome.reads.requests() + outcome.writes.requests()
}

/// Returns the number of requests per second.
fn rate(outcome: &Outcome) -> f64 {
    requests(outcome) as f64 / outcome.elapsed.as_secs_f64()
}

fn workload(order: Order, reads_percent: u8, clients: u32, outstanding: u32) -> Workload {
    Workload { order, reads_percent, clients, outstanding, ..Workload::default() }
}

#[test]
fn a_pass_moves_each_byte_once() {
    for order in [Order::Sequential, Order::Random] {
        for reads_percent in [0, 60, 100] {
            let outcome = run(workload(order, reads_percent, 3, 2));
            assert_eq!(outcome.reads.bytes + outcome.writes.bytes, 16 << 20, "{order:?} {reads_percent}");
            assert_eq!(requests(&outcome), 256);
            assert_eq!(outcome.reads.bytes == 0, reads_percent == 0);
            assert_eq!(outcome.writes.bytes == 0, reads_percent == 100);
            // Written data must reach the disks. Writing the whole file to four disks of 20 MiB/s takes a fifth of a
            // second.
            let written = outcome.writes.bytes as f64 / f64::from(80 << 20);
            assert!(outcome.elapsed.as_secs_f64() > 0.9 * written, "{order:?} {reads_percent}: {outcome:?}");
            assert_eq!(outcome.flush.is_zero(), reads_percent == 100);
        }
    }
}

/// By Little's law, the mean number of requests in flight is the request rate times the mean latency. It must not
/// exceed the limit, and must nearly reach it if all clients always use the limit.
#[test]
fn requests_in_flight_reach_and_never_exceed_the_limit() {
    for (clients, outstanding) in [(1, 1), (1, 4), (3, 2), (2, 8)] {
        for reads_percent in [100, 50] {
            let workload = workload(Order::Random, reads_percent, clients, outstanding);
            let outcome = run(Workload { requests: Some(400), ..workload });
            let waited: f64 = [&outcome.reads, &outcome.writes]
                .into_iter()
                .filter_map(|tally| Some((tally.requests(), tally.latencies.mean()?)))
                .map(|(count, mean)| count as f64 * mean.as_secs_f64())
                .sum();
            let (elapsed, flush) = (outcome.elapsed.as_secs_f64(), outcome.flush.as_secs_f64());
            let allowed = f64::from(clients * outstanding);
            assert!(waited <= allowed * elapsed, "{waited} s, {allowed} at once, in {elapsed} s");
            let least = 0.9 * allowed * (elapsed - flush);
            assert!(waited > least, "{waited} s, {allowed} at once, in {elapsed} s and {flush} s");
        }
    }
}

#[test]
fn more_outstanding_requests_are_not_slower() {
    for order in [Order::Sequential, Order::Random] {
        let rates = [1, 2, 4, 8, 16].map(|outstanding| rate(&run(workload(order, 100, 1, outstanding))));
        assert!(rates.windows(2).all(|pair| pair[1] > 0.99 * pair[0]), "{order:?}: {rates:?}");
        // With sequential requests, each disk has prefetched the next block when it is requested.
        let least = if order == Order::Random { 2.0 } else { 1.1 };
        assert!(rates[4] > least * rates[0], "four disks want several requests: {order:?}: {rates:?}");
    }
}

#[test]
fn more_clients_are_not_slower_until_the_disks_are_busy() {
    let rates = [1, 2, 4].map(|clients| rate(&run(workload(Order::Random, 100, clients, 1))));
    assert!(rates[0] < rates[1] && rates[1] < rates[2], "{rates:?}");
    // 320 blocks of 64 KiB are 20 MiB, which a disk transfers in one second.
    assert!(rates[2] <= 4.0 * 320.0, "{rates:?}");
}

#[test]
fn equal_seeds_have_equal_runs_and_others_differ() {
    let mixed = workload(Order::Random, 70, 2, 3);
    let first = trial(mixed.clone());
    let again = trial(mixed.clone());
    assert_eq!((first.digest, &first.jobs), (again.digest, &again.jobs));
    let other = trial(Workload { seed: 2, ..mixed });
    assert_ne!(first.digest, other.digest);
    assert_ne!(first.jobs[0].reads.latencies, other.jobs[0].reads.latencies);
}

#[test]
fn a_client_stops_in_time_or_after_its_requests() {
    let time = Duration::from_millis(500);
    let timed = run(Workload { time: Some(time), ..workload(Order::Random, 100, 2, 2) });
    let late = timed.elapsed.as_secs_f64() - 0.5;
    let longest = timed.reads.latencies.longest().expect("it has read").as_secs_f64();
    assert!((0.0..=longest).contains(&late), "{late} s late, and no request took longer than {longest} s");
    assert!(requests(&timed) > 50, "{timed:?}");

    // There are more requests than records, so the client starts again from the beginning.
    let counted = Workload { requests: Some(300), ..workload(Order::Sequential, 100, 1, 4) };
    assert_eq!(requests(&run(counted.clone())), 300);
    let few = Workload { requests: Some(7), time: Some(Duration::from_secs(9)), ..counted };
    assert_eq!(requests(&run(few.clone())), 7);
    assert_eq!(requests(&run(few.with_at_most(5))), 5);
    assert_eq!(few.with_at_most(8), few);
    let pass = workload(Order::Sequential, 100, 3, 1);
    assert_eq!((pass.with_at_most(341).requests, pass.with_at_most(342).requests), (Some(341), None));
}

#[test]
fn a_cache_that_holds_the_file_is_faster_than_the_disks() {
    let workload = workload(Order::Random, 100, 1, 4);
    let small = simulated(workload);
    let mut large = small.clone();
    large.io_nodes.cache_blocks = 256;
    let [small, large] = [small, large].map(|simulated| rate(&simulated.trial(0).expect("it runs").jobs[0]));
    assert!(large > 4.0 * small, "{large} of memory, {small} of disks");
}

#[test]
fn invalid_workloads_are_rejected() {
    let good = Workload::default();
    for (wrong, why) in [
        (Workload { clients: 0, ..good.clone() }, "at least one client"),
        (Workload { outstanding: 0, ..good.clone() }, "at least one client"),
        (Workload { record_bytes: 0, ..good.clone() }, "at least one byte"),
        (Workload { file_bytes: 0, ..good.clone() }, "at least one byte"),
        (Workload { record_bytes: 1 << 30, ..good.clone() }, "larger than the file"),
        (Workload { clients: 1025, ..good.clone() }, "cannot share a file of 1024 records"),
        (Workload { reads_percent: 101, ..good.clone() }, "101 of 100"),
        (Workload { requests: Some(0), ..good.clone() }, "at least one request"),
        (Workload { time: Some(Duration::ZERO), ..good.clone() }, "at least one request"),
    ] {
        let error = wrong.check().expect_err("no sense").to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(good.check().is_ok());
    let three = Workload { clients: 3, ..good };
    let mut other = simulated(workload(Order::Random, 100, 2, 1));
    other.jobs[0].job = Job::Requests("file".into(), three);
    assert!(other.trial(0).expect_err("three on two").to_string().contains("on 2 compute nodes"));
}
