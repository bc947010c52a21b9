//! Runs made by a sweep, and its reports of failures.

use std::sync::Mutex;

use seeds::{Counts, Failed, Kind, Sweep, told_by_panics};

#[test]
fn every_seed_is_run_once_in_every_kind() {
    let sweep = Sweep::new(&[Kind::Crashes, Kind::Cached], 10, Some(5));
    let runs = Mutex::new(Vec::new());
    sweep.run(3, |kind, seed| {
        runs.lock().unwrap().push((kind.to_string(), seed));
        Ok(())
    });
    let mut runs = runs.into_inner().unwrap();
    runs.sort();
    let expected = ["cached", "crashes"].into_iter();
    let expected: Vec<_> =
        expected.flat_map(|kind| (10..15).map(move |seed| (kind.to_owned(), seed))).collect();
    assert_eq!(runs, expected);
    assert_eq!(sweep.counts(), Counts { passed: 10, failed: 0 });
}

#[test]
fn a_failure_ends_an_endless_sweep_and_is_told_with_the_command_that_repeats_it() {
    let sweep = Sweep::new(&Kind::ALL, 0, None);
    let fails = |kind, seed| kind == Kind::Requests && seed == 7;
    sweep.run(1, |kind, seed| if fails(kind, seed) { Err("lost".into()) } else { Ok(()) });
    let failed = sweep.failed();
    assert_eq!(failed, [Failed { kind: Kind::Requests, seed: 7, why: "lost".into() }]);
    assert_eq!(failed[0].command(), "cargo run -p seeds -- requests --from 7 --count 1");
    let before = Kind::ALL.iter().take_while(|kind| **kind != Kind::Requests).count();
    let passed = (7 * Kind::ALL.len() + before) as u64;
    assert_eq!(sweep.counts(), Counts { passed, failed: 1 });
}

#[test]
fn a_sweep_that_is_stopped_begins_nothing() {
    let sweep = Sweep::new(&[Kind::Crashes], 0, None);
    sweep.run(2, |_, seed| {
        if seed == 20 {
            sweep.stop();
        }
        Ok(())
    });
    assert!((20..30).contains(&sweep.counts().passed), "{:?}", sweep.counts());
}

#[test]
fn a_panic_is_an_error_with_its_place() {
    let error = told_by_panics(|| panic!("as {}", "expected")).expect_err("it panics");
    assert!(error.starts_with("as expected (") && error.contains("sweep.rs:"), "{error}");
    assert_eq!(told_by_panics(|| Err("an error".into())), Err("an error".into()));
    assert_eq!(told_by_panics(|| Ok(())), Ok(()));
}
