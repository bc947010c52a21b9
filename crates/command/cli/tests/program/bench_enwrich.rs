//! `starfish bench enwrich` with real processes and agents on loopback.

use std::path::Path;
use std::process::Output;

use crate::common::{self, text};

fn bench(arguments: &[&str]) -> Output {
    common::bench("enwrich", arguments)
}

/// The processes check that the data they have written by each method are in the file.
#[test]
fn processes_write_by_every_method() {
    let small = ["--file-size", "256KiB", "--processes", "2", "--agents", "2", "--format", "csv"];
    let csv = text(&bench(&[&small[..], &["--patterns", "wss,wrnnbb", "--records", "64"]].concat()));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|head| *head == name).expect("a column");
    let of = |row: &[&str], name: &str| row[column(name)].to_owned();
    let methods: Vec<_> = rows[1..].iter().map(|row| (of(row, "pattern"), of(row, "method"))).collect();
    let expected = [
        ("wss", "traditional"),
        ("wss", "two-phase"),
        ("wss", "disk-directed"),
        ("wss", "write-cached"),
        ("wrnnbb", "traditional"),
        ("wrnnbb", "write-cached"),
    ];
    assert_eq!(methods, expected.map(|(pattern, method)| (pattern.to_owned(), method.to_owned())));
    for row in &rows[1..] {
        assert_eq!(of(row, "bytes"), "262144");
        for name in ["throughput_mib_s", "disk_share", "predicted_mib_s"] {
            assert!(of(row, name).parse::<f64>().is_ok_and(|value| value > 0.0), "{name} of {row:?}");
        }
        let is_cached = of(row, "method") == "write-cached";
        assert_eq!(of(row, "flushes").is_empty(), !is_cached, "{row:?}");
    }
}

/// The measurement and the prediction are traced in two files. Each trace has all participants and reaches from the
/// first write to the end. The page shows both, one above the other.
#[test]
fn a_measurement_and_its_prediction_are_traced_in_the_same_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.tlv");
    let one = ["--file-size", "256KiB", "--processes", "2", "--agents", "2", "--patterns", "wcc"];
    let of_it = ["--records", "64", "--methods", "disk-directed", "--trace", path.to_str().expect("text")];
    let page = directory.path().join("both.html");
    let to_look_at = ["--trace-html", page.to_str().expect("text")];
    text(&bench(&[&one[..], &of_it, &to_look_at].concat()));
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains(r#"data-look="beside=yes""#));
    let count = |path: &Path, state: &str| {
        let timeline = trace::read("run", std::fs::read(path).expect("a trace").as_slice()).expect("a trace");
        assert_eq!(timeline.processes.len(), 4, "{}", path.display());
        let has_name = |index: &&u32| timeline.states[**index as usize].name == state;
        timeline.spans.state.iter().filter(has_name).count()
    };
    let predicted = directory.path().join("run-predicted.tlv");
    for state in ["collective write", "move block", "disk write", "serve: collective"] {
        let measured = count(&path, state);
        assert!(measured > 0, "{state}");
        assert_eq!(measured, count(&predicted, state), "{state}");
    }
}

#[test]
fn invalid_options_are_rejected() {
    for (arguments, part) in [
        (&["--patterns", "wrnnbb", "--methods", "two-phase"][..], "collective method writes one array"),
        (&["--patterns", "rb"], "rb"),
        (&["--records", "3"], "3 bytes"),
        (&["--disk-model", "none"], "none"),
        (&["--trace", "x.tlv"], "a single measurement"),
        (&["--processes", "0"], "--processes"),
    ] {
        let output = bench(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(part), "{arguments:?}: {stderr}");
    }
}

#[test]
fn predictions_need_no_agents_and_write_a_page() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = directory.path().join("page.html");
    let arguments = [
        "--predict",
        "cluster-switch",
        "--patterns",
        "wcc",
        "--records",
        "512",
        "--file-size",
        "1MiB",
        "--html",
    ];
    let table = text(&bench(&[&arguments[..], &[page.to_str().expect("text")]].concat()));
    assert!(table.lines().count() == 5 && table.contains("write-cached"), "{table}");
    let html = std::fs::read_to_string(page).expect("it exists");
    assert!(html.contains("write-cached, predicted") && html.contains("512 B"), "{html}");
}
