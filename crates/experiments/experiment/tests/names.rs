//! Tests of small files in a namespace on the simulated machine.

use description::MachineDescription;
use experiment::{Experiment, Job, Launch, NamesJob, NamesWork, RoundTripsJob, Trial};

fn job(work: NamesWork, files: u32) -> NamesJob {
    let (directory, bytes, block_bytes, outstanding) = ("names".to_owned(), 4096, 256 << 10, 2);
    NamesJob { work, directory, files, bytes, block_bytes, outstanding }
}

fn experiment(members: u32, set: &[(&str, &str)], job: NamesJob) -> Experiment {
    let members_text = members.to_string();
    let set = [&[("nodes.compute", &*members_text), ("disks.model", "streaming-20")], set].concat();
    let machine = MachineDescription::load_with("loopback", &set).expect("a machine");
    let of = |member: u32| NamesJob { directory: format!("names/{member}"), ..job.clone() };
    let jobs = (0..members).map(|member| Launch::at_once(Job::Names(of(member)), [member])).collect();
    Experiment { jobs, ..Experiment::with_agents(machine) }
}

fn trial(members: u32, set: &[(&str, &str)], job: NamesJob) -> Trial {
    experiment(members, set, job).trial(0).expect("a trial")
}

/// Each operation handles all files, on sixteen nodes at the same time. A repeated trial is identical.
#[test]
fn small_files_are_created_queried_listed_and_removed() {
    let works = [NamesWork::Create, NamesWork::Stat, NamesWork::List, NamesWork::Remove];
    for work in works {
        let trial = trial(16, &[], job(work, 20));
        let operations = if work == NamesWork::List { 1 } else { 20 };
        assert!(trial.jobs.iter().all(|outcome| outcome.names.count() == operations), "{work}");
        assert!(!trial.elapsed.is_zero(), "{work}");
        let again = experiment(16, &[], job(work, 20)).trial(0).expect("a trial");
        assert_eq!((trial.digest, trial.elapsed), (again.digest, again.elapsed), "{work}");
    }
}

/// The metadata server is the bottleneck for many clients: doubling the time of a transaction nearly doubles their
/// time.
#[test]
fn the_metadata_store_limits_many_clients() {
    let set = |transaction| [("metadata.transaction", transaction), ("metadata.entry", "0 us")];
    let [one, two] = ["200 us", "400 us"].map(|transaction| {
        trial(8, &[&set(transaction)[..], &[("processor.shared", "16")]].concat(), job(NamesWork::Stat, 50))
            .elapsed
            .as_secs_f64()
    });
    assert!((8.0 * 50.0 * 200e-6..1.1 * 8.0 * 50.0 * 200e-6).contains(&one), "{one}");
    assert!((1.9..2.0).contains(&(two / one)), "{}", two / one);
}

/// A round trip consists of two messages. For each message, one processor sends and another receives.
#[test]
fn a_round_trip_takes_the_time_of_its_messages() {
    let set = [
        ("nodes.compute", "1"),
        ("processor.system.send_message", "30000"),
        ("processor.system.receive_message", "60000"),
        ("network.latency", "100 us"),
    ];
    let machine = MachineDescription::load_with("loopback", &set).expect("a machine");
    let jobs = vec![Launch::at_once(Job::RoundTrips(RoundTripsJob { round_trips: 100 }), 0..1)];
    let trial = Experiment { jobs, ..Experiment::with_agents(machine) }.trial(0).expect("a trial");
    // Sending takes 10 us and receiving 20 us at 3 GHz; the bytes of the messages take less than 1 us.
    let each = trial.elapsed.as_secs_f64() / 100.0;
    assert!((260e-6..262e-6).contains(&each), "{each}");
}

#[test]
fn a_job_without_metadata_server_or_files_is_rejected() {
    let machine = MachineDescription::load_with("starfish-1996", &[]).expect("a machine");
    let jobs = vec![Launch::at_once(Job::Names(job(NamesWork::Create, 1)), 0..1)];
    let error = Experiment { jobs, ..Experiment::with_agents(machine) }.trial(0).expect_err("no place");
    assert!(error.to_string().contains("[metadata]"), "{error}");
    let error = experiment(1, &[], job(NamesWork::Create, 0)).trial(0).expect_err("no files");
    assert!(error.to_string().contains("at least one file"), "{error}");
}
