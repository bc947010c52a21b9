//! Some hundred seeds of each kind; the program runs more by hand.

use std::process::Command;
use std::thread;

use seeds::{Kind, Sweep};

fn check(kind: Kind, count: u64) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let sweep = Sweep::new(&[kind], 0, Some(count));
    sweep.run(threads, Kind::run);
    let tell =
        |failed: seeds::Failed| format!("seed {}: {}\n  {}", failed.seed, failed.why, failed.command());
    let failed: Vec<String> = sweep.failed().into_iter().map(tell).collect();
    assert!(failed.is_empty(), "{kind}:\n{}", failed.join("\n"));
    assert_eq!(sweep.counts().passed, count);
}

#[test]
fn files_hold_what_operations_put_there() {
    check(Kind::Operations, 300);
}

/// With these seeds a second write of a block once overtook the first on its way to the disk.
#[test]
fn of_two_writes_of_a_block_the_later_stays() {
    for seed in [5279, 6579] {
        let sweep = Sweep::new(&[Kind::Operations], seed, Some(1));
        sweep.run(1, Kind::run);
        assert_eq!(sweep.counts().passed, 1, "seed {seed}");
    }
}

#[test]
fn so_they_do_behind_page_caches() {
    check(Kind::Cached, 60);
}

#[test]
fn requests_are_all_answered() {
    check(Kind::Requests, 100);
}

#[test]
fn no_file_that_is_called_whole_lacks_what_was_written() {
    check(Kind::Crashes, 200);
}

#[test]
fn names_are_those_before_or_after_each_operation() {
    check(Kind::Trees, 200);
}

#[test]
fn the_program_runs_what_it_is_told_and_sums_up() {
    let run = Command::new(env!("CARGO_BIN_EXE_seeds"))
        .args(["operations", "crashes", "--from", "5", "--count", "3", "--threads", "1"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && said.starts_with("6 runs in ") && said.ends_with(" 0 failed\n"),
        "{said}"
    );
}
