//! Tests of write caches on a simulated machine: the numbers of flushes are compared with the ENWRICH report.

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options, Queued, Trial};
use fs::Scheduling;
use layout::Problem;
use machine::Duration;

/// Runs a trial on the report's machine (section 4.1). The trial checks the contents.
fn trial(
    pattern: &str,
    bytes: u64,
    record_bytes: u64,
    layout: DiskLayout,
    method: Method,
    queued: Queued,
) -> Trial {
    let machine = MachineDescription::load("enwrich-1995").expect("built in");
    let is_cached = method == Method::WriteCached;
    let traditional = Options {
        scheduling: Scheduling::Fcfs,
        outstanding: 1,
        thread_per_request: true,
        ..Options::default()
    };
    let case = Case {
        problem: Problem::new(bytes, record_bytes, machine.nodes.compute.value),
        machine,
        method,
        pattern: pattern.parse().expect("a pattern of the report"),
        layout,
        options: Options { queued, ..if is_cached { Options::default() } else { traditional } },
        contents: Contents::Phantom,
        seed: 1,
    };
    case.trial(0).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// Section 5.1 reports "a whopping 72 cache flushes", "instead of just 5 flushes as in most other cases", and 34.1 MB/s
/// for the favorable cases.
#[test]
fn the_numbers_of_flushes_are_those_of_the_report() {
    let layout = DiskLayout::Contiguous;
    for (pattern, record, expected) in
        [("wnn", 8192, 72), ("wnb", 8192, 5), ("wbn", 8192, 5), ("wcb", 512, 5)]
    {
        let trial = trial(pattern, 64 << 20, record, layout, Method::WriteCached, Queued::Never);
        let flushes = trial.jobs[0].flushes.as_ref().expect("there is a write cache");
        assert_eq!((flushes.flushes, flushes.by_directory.len()), (expected, 0), "{pattern}");
        assert_eq!(flushes.hidden_bytes, 0, "{pattern}");
    }
    let favorable =
        trial("wnc", 64 << 20, 8192, layout, Method::WriteCached, Queued::Never).throughput_mib_s();
    assert!((favorable / 34.1 - 1.0).abs() < 0.02, "{favorable}");
}

/// A write cache that is flushed at a threshold or after a time flushes more often than one that is flushed only when
/// full.
#[test]
fn a_write_cache_is_flushed_by_threshold_and_by_time() {
    let flushes = |options: Options| {
        let machine = MachineDescription::load("enwrich-1995").expect("built in");
        let case = Case {
            problem: Problem::new(16 << 20, 8192, machine.nodes.compute.value),
            machine,
            method: Method::WriteCached,
            pattern: "wcc".parse().expect("a pattern of the report"),
            layout: DiskLayout::Contiguous,
            options,
            contents: Contents::Phantom,
            seed: 1,
        };
        case.trial(0).expect("it ends").flushes().expect("there is a write cache").flushes
    };
    let full = flushes(Options::default());
    let half = flushes(Options { flush_at: Some(0.5), ..Options::default() });
    let brief = Duration::from_millis(1);
    let aged = flushes(Options { flush_after: Some(brief), ..Options::default() });
    assert!(half > full && aged > full, "{full} when full, {half} by threshold, {aged} by time");
}

/// A second buffer keeps a disk busy while the pieces of a block are sent.
#[test]
fn one_buffer_is_slower_than_two() {
    let seconds = |buffers| {
        let machine = MachineDescription::load("starfish-1996").expect("built in");
        let case = Case {
            problem: Problem::new(512 << 10, 8, machine.nodes.compute.value),
            machine,
            method: Method::DiskDirected,
            pattern: "rcc".parse().expect("a pattern of the report"),
            layout: DiskLayout::Random,
            options: Options { buffers, ..Options::default() },
            contents: Contents::Phantom,
            seed: 1,
        };
        case.trial(0).expect("it ends").elapsed.as_secs_f64()
    };
    let (one, two) = (seconds(1), seconds(2));
    assert!(one > 1.05 * two, "{one} s with one buffer, {two} s with two");
}

/// All bytes are written, for any pattern, number of nodes and record size.
#[test]
fn arrays_are_written_completely() {
    for (pattern, record) in [
        ("wss", 512),
        ("wcc", 8),
        ("wrnncc", 512),
        ("wrbccb", 8),
        ("wpnncc", 512),
        ("wpbccb", 64),
        ("wrnnbb", 8192),
    ] {
        for (method, queued) in [
            (Method::WriteCached, Queued::Never),
            (Method::WriteCached, Queued::Always),
            (Method::Traditional, Queued::Never),
        ] {
            let bytes = if record < 512 { 1 << 19 } else { 8 << 20 };
            let trial = trial(pattern, bytes, record, DiskLayout::Random, method, queued);
            assert_eq!(trial.bytes_moved, bytes, "{pattern}");
            assert_eq!(trial.flushes().is_some(), method == Method::WriteCached);
        }
    }
}

/// Invalid cases are rejected before a simulation runs.
#[test]
fn methods_that_cannot_write_a_pattern_are_rejected() {
    let case = |pattern: &str, method, bytes| {
        let machine = MachineDescription::load("enwrich-1995").expect("built in");
        let nodes = machine.nodes.compute.value;
        let pattern = pattern.parse().expect("a pattern of the report");
        let (layout, contents) = (DiskLayout::Contiguous, Contents::Phantom);
        let options = Options { write_cache_bytes: Some(bytes), ..Options::default() };
        let problem = Problem::new(1 << 20, 8192, nodes);
        Case { machine, method, pattern, problem, layout, options, contents, seed: 1 }.check()
    };
    assert!(case("wss", Method::Traditional, 1 << 20).is_ok());
    for (pattern, method, bytes, why) in [
        ("rb", Method::WriteCached, 1 << 20, "patterns that write"),
        ("wrnncc", Method::DiskDirected, 1 << 20, "traditional or the write-cached"),
        ("wss", Method::TwoPhase, 1 << 20, "traditional or the write-cached"),
        ("wcc", Method::WriteCached, 100, "it needs 4096"),
    ] {
        let refused = case(pattern, method, bytes).expect_err("it makes no sense").to_string();
        assert!(refused.contains(why), "{pattern}: {refused}");
    }
}
