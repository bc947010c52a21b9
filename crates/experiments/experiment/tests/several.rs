//! Tests of several jobs and files in one experiment, each with separate nodes, disks and start times.

use description::{Description, MachineDescription};
use experiment::{
    Beginning, Experiment, FilePlace, Job, Launch, PatternAccess, PatternJob, Sequential, StoredFile, Trial,
};
use fs::{ClientSettings, CollectiveSettings, IoNodeSettings, PageCacheSettings, Prefetch};
use layout::{Operation, Pattern, Problem};
use machine::Duration;

const PAGE: u64 = 64 << 10;
const BYTES: u64 = 4 << 20;

/// Returns a machine with two compute nodes and four disks of 20 MiB/s.
fn machine() -> MachineDescription {
    let values = [("nodes.compute", "2"), ("nodes.io", "4"), ("disks.model", "streaming-20")];
    MachineDescription::load_with("loopback", &values).expect("built in")
}

fn file(name: &str, disks: &[u32]) -> StoredFile {
    let place = FilePlace::Disks(disks.to_vec());
    StoredFile { place, ..StoredFile::on_disks(name, BYTES, PAGE) }
}

/// Returns a program that starts at `start` on a node and reads a file sequentially.
fn reader(name: &str, node: u32, start: Duration) -> Launch {
    let job = Job::Sequential(Sequential {
        file: name.into(),
        operation: Operation::Read,
        file_bytes: BYTES,
        page_bytes: PAGE,
        cache: PageCacheSettings { prefetch: Prefetch::Window(16), ..PageCacheSettings::default() },
        work: Duration::ZERO,
    });
    Launch { start, ..Launch::at_once(job, [node]) }
}

fn run(files: Vec<StoredFile>, jobs: Vec<Launch>) -> Trial {
    let experiment = Experiment { files, jobs, ..Experiment::with_agents(machine()) };
    experiment.trial(0).unwrap_or_else(|error| panic!("{error}"))
}

fn seconds(trial: &Trial) -> Vec<f64> {
    trial.jobs.iter().map(|job| job.elapsed.as_secs_f64()).collect()
}

/// Returns the busy time of each disk in seconds.
fn busy(trial: &Trial) -> Vec<f64> {
    trial.statistics.disks.iter().map(|disk| disk.mechanics.busy().as_secs_f64()).collect()
}

#[test]
fn only_the_disks_of_a_file_are_busy() {
    let trial = run(vec![file("a", &[3, 1])], vec![reader("a", 0, Duration::ZERO)]);
    let busy = busy(&trial);
    assert_eq!((busy[0], busy[2]), (0.0, 0.0), "{busy:?}");
    // Each of the two disks transfers 2 MiB at 20 MiB/s.
    assert!(busy[1] > 0.1 && busy[3] > 0.1, "{busy:?}");
    assert_eq!(trial.bytes_moved, BYTES);
}

#[test]
fn jobs_on_separate_disks_are_independent_and_start_on_time() {
    let late = Duration::from_millis(50);
    let files = || vec![file("a", &[0, 1]), file("b", &[2, 3])];
    let [first, second] = [reader("a", 0, Duration::ZERO), reader("b", 1, late)];
    let both = run(files(), vec![first.clone(), second.clone()]);
    let alone = run(files(), vec![first]);
    let (both_s, alone_s) = (seconds(&both), seconds(&alone));
    for elapsed in &both_s {
        assert!((elapsed / alone_s[0] - 1.0).abs() < 0.02, "{both_s:?} of both, {alone_s:?} of one");
    }
    let end = late.as_secs_f64() + both_s[1];
    assert!((both.elapsed.as_secs_f64() - end).abs() < 1e-6, "{end} s, {:?}", both.elapsed);
    let again = run(files(), vec![reader("a", 0, Duration::ZERO), second]);
    assert_eq!(again.digest, both.digest);
}

#[test]
fn jobs_on_the_same_disks_share_them() {
    let files = || vec![file("a", &[0]), file("b", &[0])];
    let [first, second] = [reader("a", 0, Duration::ZERO), reader("b", 1, Duration::ZERO)];
    let both = seconds(&run(files(), vec![first.clone(), second]));
    let alone = seconds(&run(files(), vec![first]));
    assert!(both.iter().all(|elapsed| *elapsed > 1.7 * alone[0]), "{both:?} of both, {alone:?} of one");
}

/// With any method, half of the nodes read one file while the other half write another file: each job is a separate
/// group.
#[test]
fn groups_access_separate_files_at_the_same_time() {
    let machine = MachineDescription::load("starfish-1996").expect("built in");
    let bytes = 256 << 10;
    let job = |file: &str, pattern: &str, access| {
        let pattern: Pattern = pattern.parse().expect("a pattern");
        Job::Pattern(PatternJob { file: file.into(), pattern, problem: Problem::new(bytes, 1024, 8), access })
    };
    let collective = PatternAccess::Collective(CollectiveSettings::disk_directed());
    let cached = PatternAccess::Cached(PageCacheSettings::default());
    for access in [PatternAccess::Requests, cached, collective] {
        let stored = |name, beginning| StoredFile { beginning, ..StoredFile::on_disks(name, bytes, 8192) };
        let experiment = Experiment {
            io_nodes: IoNodeSettings::report(),
            clients: ClientSettings::report(),
            files: vec![stored("read", Beginning::OnDisks), stored("written", Beginning::Empty)],
            jobs: vec![
                Launch::at_once(job("read", "rcb", access), 0..8),
                Launch {
                    start: Duration::from_millis(1),
                    ..Launch::at_once(job("written", "wb", access), 8..16)
                },
            ],
            ..Experiment::with_agents(machine.clone())
        };
        let trial = experiment.trial(0).unwrap_or_else(|error| panic!("{access:?}: {error}"));
        let moved: Vec<_> = trial.jobs.iter().map(|job| (job.reads.bytes, job.writes.bytes)).collect();
        assert_eq!(moved, [(bytes, 0), (0, bytes)], "{access:?}");
    }
}

#[test]
fn impossible_files_and_jobs_are_rejected() {
    let whole = || vec![file("a", &[0, 1])];
    let on = |node| vec![reader("a", node, Duration::ZERO)];
    let large = StoredFile { bytes: 1 << 40, ..file("b", &[1]) };
    for (files, jobs, why) in [
        (vec![file("a", &[0, 4])], on(0), "a must be on distinct disks of 0 to 3"),
        (vec![file("a", &[1, 1])], on(0), "distinct disks"),
        (vec![file("a", &[0]), file("a", &[1])], on(0), "two files have the name a"),
        (vec![file("a", &[0]), large], on(0), "make the file smaller"),
        (whole(), on(2), "expected compute nodes, of 0 to 1 and each once, not node 2"),
        (whole(), vec![Launch { nodes: vec![0, 0], ..on(0).remove(0) }], "each once, not node 0"),
    ] {
        let experiment = Experiment { files, jobs, ..Experiment::with_agents(machine()) };
        let error = experiment.trial(0).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
}
