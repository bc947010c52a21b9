//! Traces on the command line: analysis, export and import.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use crate::common::{fail, finish, starfish, succeed};
use serde_json::Value;
use tempfile::TempDir;

/// Two workers read and compute, first one after the other and then at the same time. At the end, one of them is still
/// reading.
const PROFILE: &str = r#"[
{"ph":"M","name":"process_name","pid":7,"args":{"name":"sorter"}},
{"ph":"M","name":"thread_name","pid":7,"tid":1,"args":{"name":"main"}},
{"ph":"M","name":"thread_name","pid":7,"tid":2,"args":{"name":"helper"}},
{"ph":"X","name":"read","pid":7,"tid":1,"ts":0,"dur":100},
{"ph":"X","name":"compute","pid":7,"tid":1,"ts":100,"dur":300,"args":{"records":12}},
{"ph":"X","name":"read","pid":7,"tid":2,"ts":150,"dur":50},
{"ph":"X","name":"read","pid":7,"tid":2,"ts":380,"dur":40},
{"ph":"B","name":"read","pid":7,"tid":1,"ts":450},
{"ph":"X","name":"merge \u001b[31m","pid":7,"tid":2,"ts":450,"dur":50},
{"ph":"N","name":"object","id":3,"pid":7,"tid":1,"ts":1}
]"#;

/// Creates a directory that contains the profile, and the trace to which it was converted.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("profile.json"), PROFILE).expect("a file");
    let notes_text = notes(directory.path(), "trace import profile.json");
    assert_eq!(notes_text, "profile.json: 1 events that are not spans, counts or flows were omitted\n");
    directory
}

fn run(directory: &Path, arguments: &str) -> String {
    let mut command = starfish(arguments.split(' '));
    command.current_dir(directory);
    String::from_utf8(succeed(command)).expect("text")
}

/// Returns the standard error of a command, which must succeed.
fn notes(directory: &Path, arguments: &str) -> String {
    let mut command = starfish(arguments.split(' '));
    command.current_dir(directory);
    let output = finish(command);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn refused(directory: &Path, arguments: &str, code: i32) -> String {
    let mut command = starfish(arguments.split(' '));
    command.current_dir(directory);
    fail(command, code)
}

#[test]
fn a_summary_has_fixed_columns() {
    let directory = directory();
    let csv = run(directory.path(), "trace summary profile.tlv --format csv");
    assert_eq!(
        csv,
        "process,thread,state,count,total_ns,mean_ns,median_ns,p99_ns,max_ns,share\n\
         sorter 7,main,compute,1,300000,300000,300000,300000,300000,0.6\n\
         sorter 7,main,read,2,150000,75000,75000,100000,100000,0.3\n\
         sorter 7,helper,read,2,90000,45000,45000,50000,50000,0.18\n\
         sorter 7,helper,merge \u{1b}[31m,1,50000,50000,50000,50000,50000,0.1\n"
    );
    let table = run(directory.path(), "trace summary profile.json --by state");
    assert!(table.starts_with("state") && table.contains("merge \\u{1b}[31m"), "{table}");
    let json: Value =
        serde_json::from_str(&run(directory.path(), "trace summary profile.tlv --by process --format json"))
            .unwrap();
    assert_eq!(
        (&json[0]["state"], &json[0]["total_ns"], &json[0]["thread"]),
        (&"compute".into(), &300_000.into(), &"".into())
    );
    let part =
        run(directory.path(), "trace summary profile.tlv --by state --from 100us --to 160us --format csv");
    assert!(part.contains(",,compute,1,60000,") && part.contains(",,read,1,10000,"), "{part}");
    let note = notes(directory.path(), "trace summary profile.tlv");
    assert_eq!(note, "profile.tlv: 1 span has not ended\n");
    // Every recording has such a span, so other commands do not report it.
    assert_eq!(notes(directory.path(), "trace overlap profile.tlv read compute"), "");
}

#[test]
fn overlaps_of_states_and_threads_are_measured() {
    let directory = directory();
    let overlap = |what: &str| {
        let csv = run(directory.path(), &format!("trace overlap profile.tlv {what} --format csv"));
        let rows = csv.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap());
        rows.collect::<Vec<u64>>()
    };
    assert_eq!(overlap("read compute"), [70_000, 240_000, 300_000]);
    assert_eq!(overlap("read read"), [0, 240_000, 240_000]);
    assert_eq!(overlap("main helper --threads"), [120_000, 450_000, 140_000]);
    let table = run(directory.path(), "trace overlap profile.tlv read compute");
    let words: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(words, ["overlap", "70.0", "us", "14", "%"]);
    let why = refused(directory.path(), "trace overlap profile.tlv read write", 2);
    assert!(why.contains("write: the trace has no state of this name") && why.contains("compute"), "{why}");
    assert!(!why.contains('\u{1b}'), "{why}");
}

#[test]
fn a_difference_lists_the_growth_of_each_state() {
    let directory = directory();
    let after = PROFILE.replace(r#""ts":380,"dur":40"#, r#""ts":380,"dur":65"#).replace("compute", "sort");
    std::fs::write(directory.path().join("after.json"), after).expect("a file");
    let csv = run(directory.path(), "trace diff profile.tlv after.json --format csv");
    assert_eq!(
        csv,
        "state,category,count_before,count_after,total_before_ns,total_after_ns,growth_ns\n\
         compute,,1,0,300000,0,-300000\n\
         sort,,0,1,0,300000,300000\n\
         read,,4,4,240000,265000,25000\n\
         merge \u{1b}[31m,,1,1,50000,50000,0\n"
    );
    let table = run(directory.path(), "trace diff profile.tlv after.json");
    assert!(table.contains("-300 us") && table.contains("+25.0 us") && table.contains("1.10"), "{table}");
    // A state that lasts no time does not count as new.
    let marks = r#"[{"ph":"X","name":"mark","pid":7,"tid":1,"ts":0,"dur":0}]"#;
    std::fs::write(directory.path().join("marks.json"), marks).expect("a file");
    let same = run(directory.path(), "trace diff marks.json marks.json");
    assert!(same.lines().nth(1).is_some_and(|row| row.ends_with(" -")), "{same}");
}

/// The totals of the summary are the sums of the rows in the exported table.
#[test]
fn an_exported_trace_has_the_same_totals() {
    let directory = directory();
    assert_eq!(run(directory.path(), "trace export profile.tlv --to csv -o spans.csv"), "");
    let spans = std::fs::read_to_string(directory.path().join("spans.csv")).expect("a table");
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    for row in spans.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        *totals.entry(fields[..3].join(",")).or_default() += fields[6].parse::<u64>().unwrap();
    }
    let summary = run(directory.path(), "trace summary profile.tlv --format csv");
    assert_eq!(summary.lines().count() - 1, totals.len());
    for row in summary.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        assert_eq!(totals[&fields[..3].join(",")].to_string(), fields[4]);
    }
    run(directory.path(), "trace export profile.tlv --to perfetto -o profile.pftrace");
    let back = run(directory.path(), "trace summary profile.pftrace --by state --format csv");
    assert_eq!(back, run(directory.path(), "trace summary profile.tlv --by state --format csv"));
    let piped = run(directory.path(), "trace export profile.tlv --to csv -o -");
    assert_eq!(piped, spans);
    run(directory.path(), "trace export profile.tlv --to parquet -o spans.parquet");
    let parquet = std::fs::read(directory.path().join("spans.parquet")).expect("a file");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

/// The output is larger than any buffer, and the reader closes the pipe early.
#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let span = |n: u32| format!(r#"{{"ph":"X","name":"{n:0100}","pid":1,"tid":1,"ts":{n},"dur":1}}"#);
    let spans = (0..2000).map(span).collect::<Vec<_>>().join(",");
    std::fs::write(directory.path().join("long.json"), format!("[{spans}]")).expect("a file");
    for format in ["csv", "json", "table"] {
        let mut command = starfish(["trace", "summary", "long.json", "--format", format]);
        command.current_dir(directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success() && output.stderr.is_empty(), "{format}: {output:?}");
    }
}

#[test]
fn a_summary_adds_several_traces() {
    let directory = directory();
    let csv = run(
        directory.path(),
        "trace summary profile.tlv profile.json --align starts --by state --format csv",
    );
    assert!(csv.contains(",,read,8,480000,60000,50000,"), "{csv}");
}

#[test]
fn an_import_replaces_only_a_named_output_file() {
    let directory = directory();
    let trace = directory.path().join("profile.tlv");
    std::fs::write(&trace, "another recording").expect("a file");
    let why = refused(directory.path(), "trace import profile.json", 1);
    assert!(why.contains("profile.tlv: already exists") && why.contains("-o"), "{why}");
    assert_eq!(std::fs::read(&trace).expect("a file"), b"another recording");
    notes(directory.path(), "trace import profile.json -o profile.tlv");
    assert_ne!(std::fs::read(&trace).expect("a file"), b"another recording");
}

#[test]
fn files_that_are_not_traces_are_rejected_without_output() {
    let directory = directory();
    std::fs::write(directory.path().join("letter"), "Dear reader").expect("a file");
    let why = refused(directory.path(), "trace summary letter", 1);
    assert_eq!(why, "starfish: letter: this is not a trace of Starfish, of Perfetto, or in Chrome's JSON\n");
    std::fs::write(directory.path().join("begun.tlv"), "").expect("a file");
    for action in ["summary", "explain"] {
        let why = refused(directory.path(), &format!("trace {action} begun.tlv"), 1);
        assert!(
            why.starts_with("starfish: begun.tlv: the file is empty: ") && why.contains("killed"),
            "{why}"
        );
    }
    refused(directory.path(), "trace import letter -o letter.tlv", 1);
    assert!(!directory.path().join("letter.tlv").exists());
    let before = std::fs::read(directory.path().join("profile.tlv")).expect("a trace");
    assert!(refused(directory.path(), "trace import profile.tlv", 1).contains("already"));
    assert_eq!(std::fs::read(directory.path().join("profile.tlv")).expect("a trace"), before);
    std::fs::write(directory.path().join("torn.tlv"), &before[..before.len() - 3]).expect("a file");
    let note = notes(directory.path(), "trace summary torn.tlv");
    assert!(note.contains("torn.tlv: it ends in the middle of a chunk"), "{note}");
    let mut newer = before.clone();
    newer[8] = 9;
    let sum = twox_hash::XxHash3_64::oneshot(&newer[..12]) as u32;
    newer[12..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(directory.path().join("newer.tlv"), newer).expect("a file");
    let why = refused(directory.path(), "trace summary newer.tlv", 1);
    assert!(why.contains("version 9") && why.contains("version of Starfish"), "{why}");
    let why = refused(directory.path(), "trace summary profile.tlv --from 2s --to 1s", 2);
    assert!(why.contains("--to"), "{why}");
}
