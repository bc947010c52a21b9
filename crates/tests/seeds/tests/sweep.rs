//! Runs made by a sweep, and its reports of failures.

use std::collections::BTreeMap;
use std::sync::Mutex;

use seeds::{BrokenLaw, Counts, FailureGroup, Failures, Kind, Sweep, errors_of_panics};

fn broken(law: &str) -> BrokenLaw {
    BrokenLaw { law: law.into(), why: "lost".into() }
}

#[test]
fn each_seed_is_run_once_in_each_kind() {
    let sweep = Sweep::new(&[Kind::Schedules, Kind::Cached], 10, Some(5));
    let runs = Mutex::new(Vec::new());
    sweep.run(3, |kind, seed| {
        runs.lock().unwrap().push((kind.to_string(), seed));
        Ok(())
    });
    let mut runs = runs.into_inner().unwrap();
    runs.sort();
    let expected = ["cached", "schedules"].into_iter();
    let expected: Vec<_> =
        expected.flat_map(|kind| (10..15).map(move |seed| (kind.to_owned(), seed))).collect();
    assert_eq!(runs, expected);
    assert_eq!(sweep.counts(), Counts { passed: 10, failed: 0 });
}

#[test]
fn failures_are_grouped_by_law_and_the_sweep_continues() {
    let sweep = Sweep::new(&[Kind::Requests], 0, Some(40));
    sweep.run(3, |_, seed| match seed {
        7 => Err(broken("wait")),
        20.. => Err(broken("contents")),
        _ => Ok(()),
    });
    assert_eq!(sweep.counts(), Counts { passed: 19, failed: 21 });
    let group = |law: &str| FailureGroup { kind: Kind::Requests, law: law.into() };
    let failures = |seeds: std::ops::Range<u64>, count| Failures {
        count,
        kept: seeds.map(|seed| (seed, "lost".into())).collect(),
    };
    let expected =
        BTreeMap::from([(group("wait"), failures(7..8, 1)), (group("contents"), failures(20..25, 20))]);
    assert_eq!(sweep.failures(), expected, "the first five of each group are kept");
}

#[test]
fn a_stopped_sweep_begins_no_run() {
    let sweep = Sweep::new(&[Kind::Schedules], 0, None);
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
    let error = errors_of_panics(|| panic!("as {}", "expected")).expect_err("it panics");
    assert!(error.law.starts_with("panic at ") && error.law.contains("sweep.rs:"), "{error:?}");
    assert_eq!(error.why, "as expected");
    assert_eq!(errors_of_panics(|| Err(broken("a law"))), Err(broken("a law")));
    assert_eq!(errors_of_panics(|| Ok(())), Ok(()));
}
