//! The thesis on PDIOL, simulated: what holds of windows and disks.

use description::{Description, MachineDescription};
use experiment::{FilePlace, Sequential, SequentialTrial};
use fs::{IoNodeSettings, Prefetch};
use layout::Operation;
use machine::Duration;

const PAGE: u64 = 64 << 10;

fn sequential(machine: &str, disks: u32, place: FilePlace) -> Sequential {
    let mut machine = MachineDescription::load(machine).expect("built in");
    machine.nodes.io.value = disks;
    Sequential {
        machine,
        place,
        operation: Operation::Read,
        file_bytes: 16 << 20,
        page_bytes: PAGE,
        cache_bytes: 256 << 20,
        // What is asked for and no more: who prefetches is the client.
        io_node: IoNodeSettings { prefetch_blocks: 0, block_bytes_max: PAGE, ..IoNodeSettings::agent() },
        work: Duration::ZERO,
    }
}

fn run(experiment: &Sequential) -> SequentialTrial {
    experiment.run().unwrap_or_else(|error| panic!("{error}"))
}

/// How much faster than the same disk used locally.
fn speed_up(machine: &str, disks: u32, prefetch: Prefetch) -> f64 {
    let local = run(&sequential(machine, 1, FilePlace::Local)).elapsed.as_secs_f64();
    local / run(&sequential(machine, disks, FilePlace::Striped(prefetch))).elapsed.as_secs_f64()
}

#[test]
fn a_local_disk_streams() {
    let local = run(&sequential("loopback", 1, FilePlace::Local)).elapsed.as_secs_f64();
    assert!(
        (0.80..0.82).contains(&local),
        "16 MiB at 20 MiB/s and one positioning take 0.808 s, not {local}"
    );
}

#[test]
fn a_wide_window_uses_all_disks() {
    for (disks, least) in [(1, 0.97), (2, 1.9), (4, 3.7)] {
        for prefetch in [Prefetch::Window(64), Prefetch::Adaptive] {
            let speed_up = speed_up("loopback", disks, prefetch);
            assert!(
                (least..=f64::from(disks)).contains(&speed_up),
                "{disks} disks, {prefetch:?}: {speed_up}"
            );
        }
    }
}

#[test]
fn without_overlap_four_disks_are_slower_than_one_used_locally() {
    for machine in ["loopback", "pdiol-2003"] {
        let speed_ups = [1, 2, 4].map(|disks| speed_up(machine, disks, Prefetch::Window(1)));
        assert!(speed_ups.iter().all(|&speed_up| speed_up < 0.99), "{machine}: {speed_ups:?}");
        assert!((speed_ups[0] - speed_ups[2]).abs() < 0.05, "{machine}: the number of disks is no matter");
    }
}

/// Table 4.5 for one page: 7.82 s of 5.17 s used locally (table 4.3). Four disks: the processor of the client.
#[test]
fn the_testbed_is_as_slow_without_overlap_as_the_thesis_says() {
    let speed_up = |disks, window| speed_up("pdiol-2003", disks, Prefetch::Window(window));
    assert!((speed_up(1, 1) / (5.17 / 7.82) - 1.0).abs() < 0.1, "{}", speed_up(1, 1));
    assert!((1.8..2.0).contains(&speed_up(2, 128)), "{}", speed_up(2, 128));
    assert!((2.5..3.8).contains(&speed_up(4, 128)), "{}", speed_up(4, 128));
}

#[test]
fn work_on_the_pages_hides_the_disks() {
    let work = Duration::from_millis(10);
    let experiment = sequential("loopback", 1, FilePlace::Striped(Prefetch::Window(16)));
    let elapsed = run(&Sequential { work, ..experiment }).elapsed.as_secs_f64();
    assert!((2.56..2.64).contains(&elapsed), "256 pages of 10 ms, not {elapsed}");
}

#[test]
fn writing_uses_all_disks_too() {
    let striped = sequential("loopback", 4, FilePlace::Striped(Prefetch::Adaptive));
    let write = Sequential { operation: Operation::Write, file_bytes: 64 << 20, ..striped };
    let elapsed = run(&write).elapsed.as_secs_f64();
    assert!((0.8..0.8 / 0.97).contains(&elapsed), "64 MiB onto 4 x 20 MiB/s: {elapsed}");
}

#[test]
fn the_same_run_is_the_same() {
    let experiment = sequential("pdiol-2003", 4, FilePlace::Striped(Prefetch::Adaptive));
    assert_eq!(run(&experiment), run(&experiment));
    let odd = Sequential { file_bytes: (1 << 20) + 1, ..experiment.clone() };
    assert_ne!(
        run(&odd).digest,
        run(&experiment).digest,
        "another file, another run; its last page is short"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let local = sequential("loopback", 1, FilePlace::Local);
    for (wrong, why) in [
        (Sequential { file_bytes: 0, ..local.clone() }, "at least one byte"),
        (Sequential { operation: Operation::Write, ..local.clone() }, "only read"),
    ] {
        let error = wrong.run().expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
}
