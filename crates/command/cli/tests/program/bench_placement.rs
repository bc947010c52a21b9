//! `starfish bench placement`: merges on real agents with artificially slow disks.

use std::process::Output;

use crate::common::{self, text};

fn bench(arguments: &[&str]) -> Output {
    common::bench("placement", arguments)
}

/// Runs merges with two policies, and with two orders of requests at the disks. The merges check their output.
#[test]
fn merges_on_agents_take_about_the_predicted_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = directory.path().join("page.html");
    let small = ["--jobs", "2", "--disks", "3", "--run-blocks", "50", "--scheduling", "fcfs,round-robin"];
    let output = ["--format", "csv", "--html", page.to_str().expect("text")];
    let csv = text(&bench(&[&small[..], &output].concat()));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let number = |row: &[&str], name: &str| -> f64 {
        let column = rows[0].iter().position(|head| *head == name).expect("a column");
        row[column].parse().unwrap_or_else(|_| panic!("{name} of {row:?}"))
    };
    let cells: Vec<&[&str]> = rows[1..].iter().map(|row| &row[2..4]).collect();
    assert_eq!(cells, [["3", "fcfs"], ["3", "round-robin"], ["2", "fcfs"], ["2", "round-robin"]]);
    for row in &rows[1..] {
        let (measured, predicted) = (number(row, "measured_s"), number(row, "predicted_s"));
        // Slow disks are never faster than their model, except by chance. On a busy computer everything may be slower.
        assert!((0.7..4.0).contains(&(measured / predicted)), "{row:?}");
        assert!(number(row, "measured_first_s") <= measured);
        assert!(
            number(row, "measured_queue_blocks") >= 40.0 && number(row, "predicted_queue_blocks") >= 40.0
        );
        let slowdown = number(row, "measured_slowdown") / (measured / number(&rows[1], "measured_s"));
        assert!((slowdown - 1.0).abs() < 1e-3, "{row:?}");
    }
    let html = std::fs::read_to_string(page).expect("it exists");
    assert!(html.contains("Merges placed by policy 2") && html.contains("round-robin"), "{html}");
}

#[test]
fn invalid_options_are_rejected() {
    for (arguments, part) in [
        (&["--jobs", "4", "--disks", "3"][..], "expected no more jobs than disks"),
        (&["--jobs", "5", "--policies", "1"], "expected at least one more disk"),
        (&["--read-blocks", "0"], "expected at least one"),
        (&["--disk-model", "none"], "none"),
        (&["--scheduling", "none"], "none"),
        (&["--policies", "5"], "--policies"),
        (&["--block", "100"], "blocks of 1200 bytes"),
    ] {
        let output = bench(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
