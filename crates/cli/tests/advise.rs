//! `starfish advise placement`: what it says, and that simulation bears it out.

mod common;

use common::{fail, starfish, succeed};
use serde_json::Value;

/// Runs are short, so that a test is.
const SHORT: [&str; 4] = ["--run-size", "800KiB", "--trials", "1"];

fn advise(arguments: &[&str]) -> String {
    let short: &[&str] = if arguments.contains(&"--run-size") { &[] } else { &SHORT };
    let all = [&["advise", "placement"], arguments, short].concat();
    String::from_utf8(succeed(starfish(all))).expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&advise(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

#[test]
fn a_race_is_foretold_and_seen_and_what_is_advised_avoids_it() {
    // A race takes its time to develop.
    let advice = json(&["--disks", "5", "--jobs", "5", "--run-size", "4000KiB", "--trials", "1"]);
    let race = &advice["race"];
    assert_eq!((&race["is_possible"], &race["critical_ratio"]), (&true.into(), &0.25.into()));
    // (5 - 1)^2 * 12 blocks: section 6 of the analysis.
    assert_eq!(race["threshold_blocks"], 192);
    assert!(race["margin"].as_f64().is_some_and(|margin| (2.5..3.5).contains(&margin)), "{race}");
    assert_eq!(
        (&advice["advised"]["policy"], &advice["is_confirmed"]),
        (&3.into(), &true.into()),
        "{advice}"
    );
    let of = |policy: u64, scheduling: &str| {
        let all = advice["alternatives"].as_array().expect("a list");
        let one = all.iter().find(|one| one["policy"] == policy && one["scheduling"] == scheduling);
        one.expect("it is simulated")["seconds"].as_f64().expect("a number")
    };
    assert_eq!(
        advice["alternatives"].as_array().map(Vec::len),
        Some(12),
        "policy 1 leaves nothing to read from"
    );
    let raced = of(2, "fcfs");
    for cured in [of(3, "fair-scan"), of(3, "fcfs"), of(2, "round-robin"), of(2, "bounded-read-priority")] {
        assert!(cured < 0.8 * raced, "{cured} s, and {raced} s with a race");
    }
}

#[test]
fn without_others_or_with_long_writes_there_is_no_race() {
    assert!(json(&["--disks", "5", "--jobs", "1"])["race"].is_null());
    let slow_reads = ["--disks", "5", "--jobs", "5", "--read-block", "4KiB", "--write-block", "400KiB"];
    let advice = json(&slow_reads);
    assert_eq!(advice["race"]["is_possible"], false, "{advice}");
    assert!(advise(&slow_reads).contains("No race: f is"));
}

#[test]
fn the_table_and_csv_have_every_alternative() {
    let table = advise(&["--disks", "3", "--jobs", "2"]);
    assert!(table.contains("A race is possible") && table.contains("Place runs by policy 3"), "{table}");
    assert!(table.contains("(policy 2): `--scheduling "), "{table}");
    let csv = advise(&["--disks", "2", "--jobs", "2", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0].split(',').count(), 8);
    assert!(lines.len() == 13 && lines.iter().filter(|line| line.ends_with(",true")).count() == 1, "{csv}");
    let alone = advise(&["--disks", "1", "--jobs", "1", "--format", "csv"]);
    assert_eq!(alone.lines().count(), 5, "a single disk leaves policy 4: {alone}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    for (arguments, why) in [
        ("--disks 3 --jobs 4", "each job writes to a disk of its own"),
        ("--disks 3 --jobs 2 --read-block 0", "--read-block"),
        ("--disks 3 --jobs 2 --block 0", "at least one byte"),
        ("--disks 3 --jobs 2 --read-block 6KiB", "see --block"),
        ("--disks 3 --jobs 2 --write-block 8MiB", "at most 4 MiB"),
        ("--disks 3 --jobs 2 --run-size 1TiB", "at most 10000000"),
        ("--disks 0 --jobs 1", "--disks"),
        ("--disks 3 --jobs 2 --machine nowhere", "nowhere"),
    ] {
        let words = ["advise", "placement"].into_iter().chain(arguments.split(' '));
        let said = fail(starfish(words), 2);
        assert!(said.contains(why), "{arguments}: {said}");
    }
}
