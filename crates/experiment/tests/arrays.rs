//! Write caches on a simulated machine, as the ENWRICH report counts their flushes.

use description::{Description, MachineDescription};
use experiment::{
    ArraysJob, Beginning, Contents, DiskLayout, Experiment, FilePlace, Launch, StoredFile, Trial,
};
use fs::{ClientSettings, IoNodeSettings, Scheduling, Threads, WriteCacheSettings};
use jobs::Job;

const BLOCK: u64 = 8192;

/// A trial of the report's machine (section 4.1), contents checked.
fn trial(pattern: &str, bytes: u64, record_bytes: u64, layout: DiskLayout, is_cached: bool) -> Trial {
    let arrangement: experiment::Arrangement = pattern.parse().expect("a pattern of the report");
    let files: Vec<String> = (0..arrangement.arrays()).map(|array| format!("array {array}")).collect();
    let stored = |name: &String| StoredFile {
        name: name.clone(),
        bytes: bytes / files.len() as u64,
        block_bytes: BLOCK,
        place: FilePlace::AllDisks,
        beginning: Beginning::Empty,
        is_finished: false,
    };
    let write_cache = is_cached.then(WriteCacheSettings::report);
    let job = ArraysJob { files: files.clone(), arrangement, bytes, record_bytes, write_cache };
    let experiment = Experiment {
        machine: MachineDescription::load("enwrich-1995").expect("built in"),
        io_nodes: IoNodeSettings {
            scheduling: Scheduling::Fcfs,
            cache_blocks: 32,
            block_bytes_max: BLOCK,
            threads: Threads::PerRequest,
            ..IoNodeSettings::report()
        },
        clients: ClientSettings { outstanding_per_disk: 1, ..ClientSettings::report() },
        layout,
        contents: Contents::Phantom,
        files: files.iter().map(stored).collect(),
        jobs: vec![Launch::at_once(Job::Arrays(job), 0..16)],
        seed: 1,
    };
    experiment.trial(0).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// Section 5.1: "a whopping 72 cache flushes", "instead of just 5 flushes as in most other cases", and 34.1 MB/s for the
/// favorable ones.
#[test]
fn flushes_are_those_of_the_report() {
    let layout = DiskLayout::Contiguous;
    for (pattern, record, expected) in
        [("wnn", 8192, 72), ("wnb", 8192, 5), ("wbn", 8192, 5), ("wcb", 512, 5)]
    {
        let trial = trial(pattern, 64 << 20, record, layout, true);
        let flushes = trial.jobs[0].flushes.as_ref().expect("there is a write cache");
        assert_eq!((flushes.flushes, flushes.by_directory.len()), (expected, 0), "{pattern}");
        assert_eq!(flushes.hidden_bytes, 0, "{pattern}");
    }
    let favorable = trial("wnc", 64 << 20, 8192, layout, true).throughput_mib_s();
    assert!((favorable / 34.1 - 1.0).abs() < 0.02, "{favorable}");
}

/// Every byte gets to where it belongs, whatever the pattern, from however many nodes, in pieces of whatever size.
#[test]
fn arrays_are_written_whole() {
    for (pattern, record) in [
        ("wss", 512),
        ("wcc", 8),
        ("wrnncc", 512),
        ("wrbccb", 8),
        ("wpnncc", 512),
        ("wpbccb", 64),
        ("wrnnbb", 8192),
    ] {
        for is_cached in [true, false] {
            let layout = DiskLayout::Random;
            let bytes = if record < 512 { 1 << 19 } else { 8 << 20 };
            let trial = trial(pattern, bytes, record, layout, is_cached);
            assert_eq!(trial.bytes_moved, bytes, "{pattern}");
            assert_eq!(trial.jobs[0].flushes.is_some(), is_cached);
        }
    }
}
