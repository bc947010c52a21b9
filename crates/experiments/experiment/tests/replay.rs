//! Tests of request logs that are replayed on the simulated machine, by every method. Every byte is checked.

use std::sync::Arc;

use description::{Description, MachineDescription};
use experiment::{Contents, DiskLayout, Method, Options, Queued, Replay, ReplayAccess, Think, Trial};
use fs::{Configuration, Division, Scheduling, WriteCacheSettings};
use machine::Duration;
use request_log::{Generator, Kind, Reading, RequestLog};

fn log(lines: &str) -> Arc<RequestLog> {
    let text = format!("{}\n{lines}", request_log::HEADER);
    Arc::new(RequestLog::read(text.as_bytes(), &Reading::default()).expect("a log"))
}

fn replay(log: &Arc<RequestLog>, method: Method) -> Replay {
    let set = [("nodes.compute", "8"), ("nodes.io", "4")];
    Replay {
        machine: MachineDescription::load_with("starfish-1996", &set).expect("built in"),
        method,
        log: log.clone(),
        think: Think::None,
        layout: DiskLayout::Contiguous,
        options: Options { write_cache_bytes: Some(64 << 10), ..Options::default() },
        configuration: Configuration::Report,
        batch_bytes: 64 << 10,
        contents: Contents::Real,
        seed: 1,
    }
}

fn run(replay: &Replay) -> Trial {
    replay.trial().unwrap_or_else(|error| panic!("{replay}: {error}"))
}

/// Returns replays by all methods, and by the traditional method with a page cache.
fn all(log: &Arc<RequestLog>) -> Vec<Replay> {
    let mut all: Vec<Replay> = Replay::METHODS.iter().map(|&method| replay(log, method)).collect();
    let mut cached = replay(log, Method::Traditional);
    cached.options.page_cache_bytes = 256 << 10;
    all.push(cached);
    all
}

/// Returns a random log of small requests: to files that are only written, only read, or both; overlapping; with holes;
/// across many blocks.
fn drawn(seed: u64) -> Arc<RequestLog> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut lines = String::new();
    for node in [0, 3, 4, 9] {
        for step in 0..40 {
            let (file, offset, bytes) =
                (below(4), below(100_000), [8, 512, 3000, 40_000, 0][below(5) as usize]);
            let line = match (below(12), file) {
                (0, _) => "- sync".to_owned(),
                (_, 0) => format!("written write {offset} {bytes}"),
                (_, 1) => format!("read read {offset} {bytes}"),
                (kind, _) if kind < 6 => format!("both{file} read {offset} {bytes}"),
                _ => format!("both{file} write {offset} {bytes}"),
            };
            lines += &format!("{step} {node} {line}\n");
        }
    }
    log(&lines)
}

#[test]
fn requests_of_no_bytes_are_replayed() {
    let logs = [
        "0 0 f read 0 0\n1 1 f read 0 0\n",
        "0 0 f write 0 0\n",
        "0 0 f read 700 0\n1 1 f write 900 0\n",
        // Requests of no bytes between others, beyond the end of the file.
        "0 0 a read 0 454\n1 0 b write 688 0\n2 0 a read 300000 61\n",
        "0 0 a read 0 454\n1 0 b read 688 0\n2 0 a read 100000 61\n3 1 a read 100000 61\n",
        "0 0 a write 0 454\n1 0 a write 688 0\n1 0 a write 454 0\n2 0 a write 454 61\n3 0 - sync\n4 0 a read 0 515\n",
    ];
    for replay in logs.map(log).iter().flat_map(all) {
        for contents in [Contents::Real, Contents::Phantom] {
            let replay = Replay { contents, ..replay.clone() };
            let (done, totals) = (&run(&replay).jobs[0], replay.log.totals());
            let requests = (done.reads.requests(), done.writes.requests());
            assert_eq!(requests, (totals.reads, totals.writes), "{replay}");
            let bytes = (done.reads.bytes, done.writes.bytes);
            assert_eq!(bytes, (totals.bytes_read, totals.bytes_written), "{replay}");
        }
    }
}

#[test]
fn every_method_replays_any_log_with_every_byte_in_place() {
    for seed in 0..12 {
        let log = drawn(seed);
        let totals = log.totals();
        for contents in [Contents::Real, Contents::Phantom] {
            for replay in all(&log) {
                let trial = run(&Replay { contents, ..replay });
                let done = &trial.jobs[0];
                assert_eq!((done.reads.requests(), done.writes.requests()), (totals.reads, totals.writes));
                assert_eq!((done.reads.bytes, done.writes.bytes), (totals.bytes_read, totals.bytes_written));
            }
        }
    }
}

/// Returns calls of four processes, like those of MPI programs: collective calls of all processes, of two pairs at the
/// same time, and calls of single processes. Some calls select no bytes.
fn calls(seed: u64) -> Arc<RequestLog> {
    let mut text = format!("{}\n", request_log::CALLS_HEADER);
    for (opening, file, members) in
        [("a", "all", [0, 1, 2, 3].as_slice()), ("b", "low", &[1, 0]), ("c", "high", &[2, 3])]
    {
        for (rank, node) in members.iter().enumerate() {
            text += &format!("0 {node} {file} open {opening} {rank} {} 4096 4\n", members.len());
        }
    }
    for node in 0..4_u64 {
        let (pair, file) = if node < 2 { ("b", "low") } else { ("c", "high") };
        let (rows, run) = (20 + seed, 8 * (1 + seed % 5));
        let (at, all) = (100 + node * run, format!("({run}+{}){}", 3 * run, rows * run));
        let odd = if node == 1 {
            "-".to_owned()
        } else {
            format!("{}:[700,{},5,1,(3+2)12]", node * 3000, 100 + seed)
        };
        text += &format!(
            "1 {node} all write-all a 0 {at}:{all} 0.25 disk-directed\n\
             1.5 {node} {file} write-all {pair} 0 {odd}\n\
             2 {node} {file} sync-all {pair} 1 0.5\n\
             3 {node} own{node} write-pieces 7:{all}\n\
             3 {node} own{node} write 90000 5000\n\
             4 {node} own{node} read-pieces 0:[300,4,300] 1\n\
             5 {node} all sync-all a 1\n\
             5 {node} all read-all a 2 {at}:{all} 0.25 independent\n\
             6 {node} {file} read-all {pair} 2 {odd}\n"
        );
    }
    Arc::new(RequestLog::read(text.as_bytes(), &Reading::default()).expect("a log"))
}

#[test]
fn every_method_replays_calls_with_every_byte_in_place() {
    for seed in 0..6 {
        let log = calls(seed);
        let totals = log.totals();
        assert_eq!((totals.writes, totals.reads), (16, 12));
        for configuration in Configuration::ALL {
            for replay in all(&log) {
                let contents = if seed % 2 == 0 { Contents::Real } else { Contents::Phantom };
                let options = match configuration {
                    Configuration::Report => replay.options,
                    Configuration::Agent => {
                        Options { block_bytes: 4096, ..Options::of_agents() }.of(replay.method)
                    }
                };
                let page_cache_bytes = replay.options.page_cache_bytes;
                let options = Options { page_cache_bytes, write_cache_bytes: Some(64 << 10), ..options };
                let replay = Replay { contents, configuration, options, ..replay };
                let trial = run(&replay);
                let done = &trial.jobs[0];
                assert_eq!(
                    (done.reads.bytes, done.writes.bytes),
                    (totals.bytes_read, totals.bytes_written),
                    "{replay}"
                );
                assert_eq!(run(&replay).digest, trial.digest);
            }
        }
    }
}

/// Predictions for programs on agents use the settings of the agents' write cache.
#[test]
fn write_cache_settings_follow_the_configuration() {
    let (log, method) = (calls(1), Method::WriteCached);
    let of = |options: Options, configuration| match options.access(method, &log, configuration, 1) {
        ReplayAccess::WriteCached(settings) => settings,
        access => panic!("{access:?}"),
    };
    let (agents, agent) = (Options::of_agents(), Configuration::Agent);
    assert_eq!(of(agents, agent), WriteCacheSettings::agent());
    let chosen = Options {
        write_cache_bytes: Some(1 << 16),
        division: Some(Division::Fixed { directory: 0.5 }),
        ..agents
    };
    let division = Division::Fixed { directory: 0.5 };
    assert_eq!(
        of(chosen, agent),
        WriteCacheSettings { bytes: 1 << 16, division, ..WriteCacheSettings::agent() }
    );
    let queued = Options { queued: Queued::Never, ..Options::default() };
    assert_eq!(of(queued, Configuration::Report), WriteCacheSettings::report());
}

/// A collective call is one operation. Disk-directed, it takes less time than separate calls of the members, for any
/// number of pieces.
#[test]
fn a_collective_call_is_one_operation() {
    let mut text = format!("{}\n", request_log::CALLS_HEADER);
    (0..4).for_each(|node| text += &format!("0 {node} x open a {node} 4 8192 4\n"));
    (0..4).for_each(|node| text += &format!("1 {node} x write-all a 0 {}:(8+24)131072\n", node * 8));
    let log = Arc::new(RequestLog::read(text.as_bytes(), &Reading::default()).expect("a log"));
    let took = |method| {
        let trial = run(&replay(&log, method));
        let requests = trial.jobs[0].writes.requests();
        (trial.elapsed.as_secs_f64(), requests)
    };
    let (alone, together) = (took(Method::Traditional), took(Method::DiskDirected));
    assert_eq!((alone.1, together.1), (4, 4), "a call is a request, whatever its pieces");
    assert!(together.0 < 0.6 * alone.0, "{together:?}, and alone {alone:?}");
}

#[test]
fn equal_logs_and_seeds_have_equal_runs() {
    let log = drawn(3);
    for replay in all(&log) {
        let replay = Replay { layout: DiskLayout::Random, ..replay };
        assert_eq!(run(&replay).digest, run(&replay).digest);
        assert_ne!(run(&replay).digest, run(&Replay { seed: 2, ..replay.clone() }).digest);
    }
}

/// Runs a log like those of the ENWRICH report, on the machine and with the methods of the report.
fn of_the_report(method: Method, layout: DiskLayout) -> Trial {
    let generator = Generator { nodes: 16, files: 1, ..Kind::Cmf.generator() };
    let usual =
        Options { queued: Queued::Never, presort: method == Method::DiskDirected, ..Options::default() };
    let traditional =
        Options { scheduling: Scheduling::Fcfs, outstanding: 1, thread_per_request: true, ..usual };
    run(&Replay {
        machine: MachineDescription::load("enwrich-1995").expect("built in"),
        options: if method == Method::Traditional { traditional } else { usual },
        layout,
        batch_bytes: 1 << 20,
        contents: Contents::Phantom,
        ..replay(&Arc::new(generator.log()), method)
    })
}

/// Section 5.3 states: "ENWRICH outperformed TC comfortably in all the cases", "There were no directory flushes".
#[test]
fn small_strided_writes_are_faster_write_cached() {
    for layout in [DiskLayout::Contiguous, DiskLayout::Random] {
        let [traditional, _, directed, cached] = Replay::METHODS.map(|method| of_the_report(method, layout));
        for trial in [&directed, &cached] {
            assert!(
                trial.elapsed * 4 < traditional.elapsed * 3,
                "{} and {}",
                trial.elapsed,
                traditional.elapsed
            );
        }
        let flushes = cached.flushes().expect("a write cache");
        assert_eq!(flushes.directory_flushes(), 0);
        // A write into memory waits only for a flush.
        let latency =
            |trial: &Trial| trial.jobs[0].writes.latencies.percentile(99.0).expect("there are some");
        assert!(latency(&cached) * 10 < latency(&traditional));
    }
}

#[test]
fn think_time_is_kept_only_if_requested() {
    let log = log("10 1 x write 0 8\n11 1 x write 8 8 0.5\n12 1 x write 16 8\n10.5 2 y write 0 8\n");
    for replay in all(&log) {
        let elapsed = |think| run(&Replay { think, ..replay.clone() }).elapsed;
        assert!(elapsed(Think::None) < Duration::from_millis(500), "{replay}");
        let times = elapsed(Think::Times);
        assert!((2.0..2.2).contains(&times.as_secs_f64()), "{replay}: {times}");
        // One request in the log took half a second. This time is not part of the gaps.
        let gaps = elapsed(Think::Gaps);
        assert!((1.5..1.7).contains(&gaps.as_secs_f64()), "{replay}: {gaps}");
    }
}

#[test]
fn members_wait_for_each_other_at_a_sync() {
    // The second node has a single sync, late; the first node has two syncs.
    let log = log("0 1 x write 0 8\n0 1 - sync\n0 1 x write 8 8\n0 1 - sync\n0 2 x write 16 8\n3 2 - sync\n");
    for replay in all(&log) {
        let trial = run(&Replay { think: Think::Times, ..replay.clone() });
        assert!(trial.elapsed.as_secs_f64() > 3.0, "{replay}: {}", trial.elapsed);
    }
}

/// Programs open hundreds of small files. Then each file must reserve less space on each disk than one of a few files.
#[test]
fn many_small_files_fit_on_a_disk() {
    let lines = (0..300).map(|file| format!("{file} 0 file{file} write 0 9000\n"));
    let log = log(&lines.collect::<String>());
    for layout in [DiskLayout::Contiguous, DiskLayout::Random] {
        assert_eq!(
            run(&Replay { layout, ..replay(&log, Method::Traditional) }).jobs[0].writes.requests(),
            300
        );
    }
}

#[test]
fn invalid_replays_are_rejected() {
    let nine = (0..9).map(|node| format!("0 {node} x write 0 8\n")).collect::<String>();
    let one = log("0 0 x write 0 8\n");
    let mut empty = replay(&one, Method::WriteCached);
    empty.options.write_cache_bytes = Some(8);
    for (replay, why) in [
        (replay(&log(&nine), Method::Traditional), "9 nodes, and the machine 8 compute nodes"),
        (empty, "it needs 4096"),
        (replay(&log("0 0 x read 281474976710648 8\n"), Method::Traditional), "make the file smaller"),
    ] {
        let error = replay.check().expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}
