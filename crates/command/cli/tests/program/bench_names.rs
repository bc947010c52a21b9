//! `starfish bench names` with real agents on loopback.

use std::process::Output;

use crate::common::{self, text};

fn bench(arguments: &[&str]) -> Output {
    common::bench("names", arguments)
}

/// Clients create, stat, list and remove files, and check the results. The benchmark also predicts the times and draws
/// charts.
#[test]
fn small_files_are_measured_and_predicted() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("names.html");
    let small = ["--files", "20", "--clients", "1,2", "--agents", "2", "--format", "csv"];
    let csv = text(&bench(&[&small[..], &["--html", page.to_str().expect("text")]].concat()));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|head| *head == name).expect("a column");
    let of = |row: &[&str], name: &str| row[column(name)].to_owned();
    let done: Vec<_> = rows[1..]
        .iter()
        .map(|row| [of(row, "work"), of(row, "clients"), of(row, "files")].join(" "))
        .collect();
    let expected = ["create 1 20", "stat 1 20", "list 1 20", "remove 1 20"];
    let by_two = ["create 2 40", "stat 2 40", "list 2 40", "remove 2 40"];
    assert_eq!(done, [expected, by_two].concat());
    for row in &rows[1..] {
        for name in ["files_per_s", "latency_mean_s", "predicted_files_per_s"] {
            assert!(of(row, name).parse::<f64>().is_ok_and(|value| value > 0.0), "{name} of {row:?}");
        }
    }
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("2 clients, predicted") && page.contains("remove"));
}

/// The measurement and the prediction are traced in two files.
#[test]
fn small_files_can_be_traced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.tlv");
    let one = ["--files", "10", "--clients", "1", "--work", "create", "--agents", "1"];
    let output = bench(&[&one[..], &["--trace", path.to_str().expect("text")]].concat());
    let explained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text(&output).contains("create") && explained.contains("create by 1 client:"), "{explained}");
    for (name, least) in [("run.tlv", 1), ("run-predicted.tlv", 10)] {
        let bytes = std::fs::read(directory.path().join(name)).expect("a trace");
        let timeline = trace::read("run", bytes.as_slice()).expect("a trace");
        let has_name = |index: &&u32| timeline.states[**index as usize].name == "serve: write";
        assert!(timeline.spans.state.iter().filter(has_name).count() >= least, "{name}");
    }
}

#[test]
fn a_machine_is_predicted_without_measuring() {
    let csv = text(&bench(&["--predict", "loopback", "--clients", "16", "--files", "10", "--format", "csv"]));
    assert_eq!(csv.lines().count(), 5, "{csv}");
}

#[test]
fn invalid_options_are_rejected() {
    for (arguments, part) in [
        (&["--file-size", "2MiB"][..], "at most 1 MiB"),
        (&["--predict", "starfish-1996"], "[metadata]"),
        (&["--disk-model", "none"], "none"),
        (
            &["--predict", "loopback", "--disk-model", "memory"],
            "'--predict <NAME>' cannot be used with '--disk-model <NAME>'",
        ),
        (&["--trace", "x.tlv"], "a single measurement"),
        (&["--clients", "0"], "--clients"),
    ] {
        let output = bench(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
