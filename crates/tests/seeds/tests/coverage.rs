//! Coverage of sweeps, and the reports about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::Mutex;

use seeds::{
    CoverageCounts, FAULTS, Hit, Kind, OPERATIONS, Role, RunCoverage, Sweep, coverage_page, marks, marks_line,
};

fn counts_of(threads: usize, seeds: u64) -> CoverageCounts {
    let counts = Mutex::new(CoverageCounts::default());
    Sweep::new(&[Kind::Schedules], 0, Some(seeds)).run(threads, |kind, seed| {
        let (outcome, coverage) = kind.run_covered(seed);
        counts.lock().unwrap().add_run(coverage, outcome.is_err());
        outcome
    });
    counts.into_inner().unwrap()
}

#[test]
fn the_counts_of_a_sweep_do_not_depend_on_its_threads() {
    let counts = counts_of(1, 60);
    assert_eq!(counts, counts_of(3, 60));
    assert_eq!(counts.runs, 60);
    assert!(counts.faults.keys().all(|fault| FAULTS.contains(fault)), "{:?}", counts.faults);
    assert!(counts.faults.values().sum::<u64>() > 20, "{:?}", counts.faults);
    for (hit, count) in &counts.hits {
        if let Hit::Overlap { fault, role, operation } = hit {
            let is_named =
                FAULTS.contains(fault) && Role::of(fault).contains(role) && OPERATIONS.contains(operation);
            assert!(is_named && (1..=60).contains(count), "{hit:?}: {count}");
        }
    }
    let overlaps = counts.hits.keys().filter(|hit| matches!(hit, Hit::Overlap { .. })).count();
    assert!(overlaps > 20, "{overlaps} pairs of faults and operations");
}

#[test]
fn each_mark_in_the_sources_has_a_different_name() {
    let marks = marks().unwrap();
    assert!(marks.len() >= 30, "{} marks", marks.len());
    assert!(marks.values().all(|file| file.starts_with("crates/")), "{marks:?}");
}

/// Returns the counts of two runs: one reached the first mark and an overlap, both reached the second mark.
fn two_runs() -> CoverageCounts {
    let mut counts = CoverageCounts::default();
    let overlap = Hit::Overlap { fault: "reset", role: Role::OwnClient, operation: "read" };
    let hits = BTreeSet::from([Hit::Mark("an answer comes late"), Hit::Mark("a lease expires"), overlap]);
    counts.add_run(RunCoverage { hits, faults: BTreeMap::from([("reset", 2)]) }, false);
    let hits = BTreeSet::from([Hit::Mark("a lease expires")]);
    counts.add_run(RunCoverage { hits, faults: BTreeMap::from([("reset", 1), ("kill", 1)]) }, true);
    counts
}

#[test]
fn the_page_begins_with_everything_that_no_run_reached() {
    let marks = ["an answer comes late", "a lease expires", "a cache is full"];
    let marks: BTreeMap<String, String> = marks.map(|mark| (mark.to_owned(), "fs/a.rs".to_owned())).into();
    let counts = two_runs();
    let reached = counts.of_marks(marks.keys().map(String::as_str));
    assert_eq!(marks_line(&reached), "2 of 3 marks reached, never: a cache is full");
    let pairs: usize = FAULTS.iter().map(|fault| Role::of(fault).len() * OPERATIONS.len()).sum();
    assert_eq!(counts.missing_overlaps().len(), pairs - 1);
    let page = coverage_page(&counts, &marks);
    let (missing, rest) = page.split_once("Runs by mark").expect("the section of reached marks");
    assert!(missing.contains("a cache is full") && !missing.contains("a lease expires"), "{missing}");
    assert!(rest.contains("a cache is full") && rest.contains("a lease expires"), "{rest}");
}

#[test]
#[should_panic(expected = "is not in the sources")]
fn a_reached_mark_that_is_not_in_the_sources_is_a_defect() {
    two_runs().of_marks(["a lease expires"].into_iter());
}

#[test]
fn the_log_has_a_row_for_each_sweep() {
    let file = std::env::temp_dir().join(format!("starfish-sweep-log-{}.csv", std::process::id()));
    for from in ["100", "200"] {
        let run = Command::new(env!("CARGO_BIN_EXE_seeds"))
            .args(["schedules", "--from", from, "--count", "20", "--log"])
            .arg(&file)
            .output()
            .expect("it starts");
        assert!(run.status.success(), "{run:?}");
    }
    let text = fs::read_to_string(&file).expect("the log");
    fs::remove_file(&file).expect("it exists");
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|column| *column == name).expect("a column");
    let numbers =
        |name: &str| [&rows[1], &rows[2]].map(|row| row[column(name)].parse::<u64>().expect("a number"));
    assert_eq!(rows.len(), 3, "{text}");
    assert_eq!(numbers("first seed"), [100, 200]);
    assert_eq!((numbers("runs"), numbers("failed")), ([20, 20], [0, 0]));
    let faults: Vec<[u64; 2]> = FAULTS.iter().map(|fault| numbers(fault)).collect();
    let sums = [0, 1].map(|row| faults.iter().map(|numbers| numbers[row]).sum::<u64>());
    assert_eq!(numbers("faults"), sums, "{text}");
    assert!(sums.iter().all(|sum| *sum > 0), "{text}");
}
