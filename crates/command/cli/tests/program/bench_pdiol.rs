//! Benchmark of the programs in the thesis on PDIOL, end to end, with tiny files.

use std::fs;
use std::process::Output;

use crate::common::{finish, starfish};

fn succeed(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = finish(starfish(arguments));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{arguments:?}: {stderr}");
    stdout.into_owned()
}

/// Returns the values of a column of CSV as numbers, with `None` for an empty cell.
fn column(csv: &str, name: &str) -> Vec<Option<f64>> {
    let head = csv.lines().next().expect("a head").split(',').position(|column| column == name);
    let index = head.unwrap_or_else(|| panic!("no column {name} in {csv}"));
    csv.lines().skip(1).map(|line| line.split(',').nth(index).expect("a cell").parse().ok()).collect()
}

#[test]
fn programs_are_measured_and_predicted() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("page.html");
    let csv = succeed(&[
        "bench",
        "pdiol",
        "--programs",
        "cat,grep",
        "--sizes",
        "8MiB",
        "--disks",
        "1,4",
        "--windows",
        "1,16,adaptive",
        "--limit-size",
        "4MiB",
        "--format",
        "csv",
        "--html",
        page.to_str().expect("a path"),
    ]);
    let (elapsed, predicted) = (column(&csv, "elapsed_s"), column(&csv, "predicted_s"));
    assert_eq!(elapsed.len(), 2 * (1 + 2 * 3), "{csv}");
    // With one round, mean, minimum and maximum are equal.
    for name in ["elapsed_mean_s", "elapsed_min_s", "elapsed_max_s"] {
        assert_eq!(column(&csv, name), elapsed, "{csv}");
    }
    assert!(column(&csv, "elapsed_variance_s2").iter().all(|&variance| variance == Some(0.0)), "{csv}");
    // 8 MiB at 20 MiB/s take 400 ms on one disk and 100 ms on four, however busy the computer is. A modelled disk may
    // be a little faster in one run: it makes up for answering the last command of the previous run too late.
    for (index, (elapsed, predicted)) in elapsed.iter().zip(&predicted).enumerate() {
        let least = if index % 7 < 4 { 0.4 } else { 0.1 };
        assert!(elapsed.is_some_and(|elapsed| elapsed >= 0.8 * least), "row {index} of {csv}");
        assert!(predicted.is_some_and(|predicted| predicted >= least), "row {index} of {csv}");
    }
    let page = fs::read_to_string(page).expect("a page");
    for text in ["<svg", "cat, 8 MiB", "grep, 8 MiB", "All runs", "Goals of the authors"] {
        assert!(page.contains(text), "{text} on the page");
    }
}

#[test]
fn programs_write_the_same_output_on_any_disks() {
    for (disks, least) in [("--disk-model=streaming-20", 0.4), ("--host-disks", 0.0)] {
        let arguments = ["bench", "pdiol", disks, "--programs", "sort,bzip2", "--sizes", "8MiB"];
        let more = ["--disks", "2", "--windows", "adaptive", "--limit-size", "4MiB", "--format", "csv"];
        let csv = succeed(&[&arguments[..], &more].concat());
        let elapsed = column(&csv, "elapsed_s");
        assert_eq!(elapsed.len(), 2 * 2, "{csv}");
        // Data that are read come from the disks. Data that are written, including temporary files, go to the disks.
        let bytes = [4.0, 4.0, 1.0, 1.0].into_iter().zip([1.0, 2.0, 1.0, 2.0]);
        for (elapsed, (times, disks)) in elapsed.into_iter().zip(bytes) {
            assert!(elapsed.is_some_and(|elapsed| elapsed >= 0.8 * least * times / disks), "{csv}");
        }
        assert!(column(&csv, "predicted_s").iter().all(Option::is_none), "{csv}");
    }
}

#[test]
fn a_machine_is_predicted_without_measuring() {
    let arguments = ["bench", "pdiol", "--predict", "pdiol-2003", "--sizes", "8MiB", "--programs", "cat"];
    let csv = succeed(&[&arguments[..], &["--format", "csv"]].concat());
    assert!(column(&csv, "elapsed_s").iter().all(Option::is_none), "{csv}");
    let speed_ups: Vec<f64> = column(&csv, "speed_up").into_iter().flatten().collect();
    assert_eq!(speed_ups.len(), 1 + 3 * 6);
    assert!(speed_ups[13] < 0.99 && speed_ups[18] > 2.0, "four disks, windows 1 and adaptive: {csv}");
    assert_eq!(csv, succeed(&[&arguments[..], &["--format", "csv"]].concat()));
    let json = succeed(&[&arguments[..], &["--format", "json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["rows"].as_array().map(Vec::len), Some(19));
    let table = succeed(&arguments);
    assert!(table.find("goals of the authors") > table.find("speed-up"), "results come first: {table}");
}

#[test]
fn invalid_options_are_rejected() {
    for (wrong, why) in [
        (["--windows", "wide"], "adaptive"),
        (["--sizes", "1MiB"], "8 MiB"),
        (["--disks", "5"], "from 1 to 4"),
        (
            ["--html", "/nonexistent/page.html"],
            "/nonexistent/page.html: the directory /nonexistent does not exist",
        ),
        (["--disk-model", "hp97560"], "streaming"),
        (["--predict", "pdiol-2004"], "pdiol-2003"),
        (["--predict=pdiol-2003", "--programs=sort"], "cat or grep"),
        (["--host-disks", "--disk-model=st318416w"], "cannot be used with"),
    ] {
        let output = finish(starfish([&["bench", "pdiol"], &wrong[..]].concat()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(why), "{wrong:?}: {stderr}");
    }
}
