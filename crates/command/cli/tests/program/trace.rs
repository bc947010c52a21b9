//! Traces of simulated runs. A separate parser reads them, which knows the fields of Perfetto's schema by their
//! numbers.

use std::collections::BTreeMap;
use std::fs::read;
use std::path::Path;

use crate::common::{fail, finish, starfish, succeed};
use prost::Message;

#[derive(Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

#[derive(Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(message, optional, tag = "11")]
    event: Option<Event>,
    #[prost(message, optional, tag = "12")]
    names: Option<Names>,
    #[prost(message, optional, tag = "60")]
    track: Option<Track>,
}

#[derive(Message)]
struct Event {
    #[prost(message, repeated, tag = "4")]
    arguments: Vec<Argument>,
    #[prost(int32, tag = "9")]
    kind: i32,
    #[prost(uint64, tag = "10")]
    name: u64,
    #[prost(uint64, tag = "11")]
    track: u64,
}

#[derive(Message)]
struct Argument {
    #[prost(uint64, tag = "1")]
    name: u64,
    #[prost(uint64, tag = "4")]
    value: u64,
}

#[derive(Message)]
struct Names {
    #[prost(message, repeated, tag = "2")]
    events: Vec<Name>,
    #[prost(message, repeated, tag = "3")]
    arguments: Vec<Name>,
}

#[derive(Message)]
struct Name {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Message)]
struct Track {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint64, tag = "5")]
    parent: u64,
}

/// Slice of the trace: name, start, end and arguments.
type Slice = (String, u64, u64, BTreeMap<String, u64>);

/// Returns the slices of each track, by the name of the track. Tracks of different nodes may have the same name.
///
/// Events are sorted by time; events at the same time keep their order in the file, as in Perfetto.
fn slices(path: &Path) -> BTreeMap<String, Vec<Slice>> {
    let trace = Trace::decode(read(path).expect("a trace").as_slice()).expect("protocol buffers");
    let (mut tracks, mut names, mut arguments) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut events = Vec::new();
    for packet in trace.packets {
        if let Some(new) = packet.names {
            names.extend(new.events.into_iter().map(|new| (new.number, new.name)));
            arguments.extend(new.arguments.into_iter().map(|new| (new.number, new.name)));
        }
        if let Some(track) = packet.track {
            assert!(track.parent == 0 || tracks.contains_key(&track.parent), "a parent comes first");
            assert!(tracks.insert(track.number, track.name).is_none(), "one description of each track");
        }
        if let Some(event) = packet.event {
            events.push((packet.timestamp.expect("an event has its time"), event));
        }
    }
    events.sort_by_key(|(time, _)| *time);
    let mut open: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    let mut slices: BTreeMap<String, Vec<Slice>> = BTreeMap::new();
    for (time, Event { arguments: values, kind, name, track }) in events {
        match kind {
            1 => {
                let values = values.iter().map(|value| (arguments[&value.name].clone(), value.value));
                open.entry(track).or_default().push((names[&name].clone(), time, values.collect()));
            }
            2 => {
                let begun = open.get_mut(&track).and_then(Vec::pop);
                let (name, begin, values) = begun.expect("a slice that ends has begun");
                slices.entry(tracks[&track].clone()).or_default().push((name, begin, time, values));
            }
            kind => assert_eq!(kind, 4, "all events are slices or counts"),
        }
    }
    // Tasks may still run at the end of the trace. Work of the machine's components is recorded when it ends, so each
    // of its spans is complete.
    let is_part =
        |track: &u64| ["processor", "link", "disk", "bus"].iter().any(|part| tracks[track].starts_with(part));
    assert!(open.iter().all(|(track, open)| open.is_empty() || !is_part(track)), "{open:?}");
    slices
}

const RUN: &str =
    "simulate --pattern rb --method traditional --trials 1 --file-size 1MiB --format json --explain";

/// Runs a simulation with a trace and these options, and returns standard output and standard error.
fn traced(path: &Path, more: &[&str]) -> (String, String) {
    let path = path.to_str().expect("a plain path");
    let output = finish(starfish(RUN.split(' ').chain(["--trace", path]).chain(more.iter().copied())));
    assert!(output.status.success());
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn a_trace_has_named_slices_that_agree_with_the_account() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rb.pftrace");
    let (json, errors) = traced(&path, &[]);
    assert_eq!(errors, "");
    let slices = slices(&path);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    let disks = &rows[0]["explain"]["disks"];
    let time = |phase: &str| -> u64 {
        let mechanics = slices.iter().filter(|(track, _)| track.ends_with(": mechanics"));
        let phases = mechanics.flat_map(|(_, slices)| slices).filter(|(name, ..)| name == phase);
        phases.map(|(_, begin, end, _)| end - begin).sum()
    };
    for phase in ["seek", "rotation", "transfer"] {
        let expected = disks[format!("{phase}_s")].as_f64().expect("a time");
        assert!((time(phase) as f64 / 1e9 - expected).abs() < 1e-9, "{phase}");
    }
    let reads: Vec<&Slice> = (0..16).flat_map(|disk| &slices[&format!("disk {disk}")]).collect();
    assert_eq!(reads.len() as u64, disks["reads"].as_u64().expect("a count"));
    assert!(reads.iter().all(|(name, .., arguments)| name == "read" && arguments["bytes"] == 8192));
    let threads = &slices["processor: threads"];
    assert!(threads.iter().any(|(name, ..)| name == "look_up_cache"));
    assert!(slices.contains_key("bus 15") && slices.contains_key("link out"));
}

#[test]
fn work_is_recorded_in_its_unit() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rb.pftrace");
    let run = RUN.replace("traditional", "disk-directed");
    let trace = ["--trace", path.to_str().expect("a plain path")];
    assert!(finish(starfish(run.split(' ').chain(trace))).status.success());
    let slices = slices(&path);
    for (kind, unit) in [("match_piece", "dimensions"), ("list_blocks", "blocks"), ("handle_memput", "bytes")]
    {
        let mut all = slices.values().flatten().filter(|(name, ..)| name == kind).peekable();
        assert!(all.peek().is_some(), "{kind}");
        assert!(all.all(|(.., arguments)| arguments.keys().eq([unit])), "{kind}");
    }
}

#[test]
fn equal_seeds_produce_identical_traces() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |name: &str, seed: &str| {
        let path = directory.path().join(name);
        traced(&path, &["--seed", seed]);
        read(path).expect("a trace")
    };
    let first = run("first", "3");
    assert!(first == run("second", "3"));
    assert!(first != run("other", "4"));
}

#[test]
fn a_trace_at_its_limit_is_reported_and_well_formed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("short.pftrace");
    let (json, errors) = traced(&path, &["--trace-limit", "500"]);
    assert!(
        errors.contains("short.pftrace: the trace ends at simulated time 1.0") && errors.contains("500"),
        "{errors}"
    );
    assert!(errors.contains("raise it with --trace-limit N"), "{errors}");
    let count: usize = slices(&path).values().map(Vec::len).sum();
    // The other events are counts and messages.
    assert!((300..=500).contains(&count), "{count} slices");
    assert!(json.contains("limited_by"));
}

/// Returns the output of a command.
fn printed(arguments: &[&str]) -> String {
    String::from_utf8(succeed(starfish(arguments))).expect("text")
}

/// The command reports which part of the trace is missing, and analyses the part that exists.
#[test]
fn the_account_of_a_cut_trace_reports_the_missing_events() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let simulate = |name: &str, more: &[&str]| {
        let run = ["simulate", "--pattern", "rb", "--method", "traditional", "--trials", "1", "--trace"];
        finish(starfish([&run[..], &[&path(name)], more].concat()));
        let json = printed(&["trace", "explain", &path(name), "--format", "json"]);
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON")
    };
    let whole = simulate("whole.tlv", &[]);
    assert!(whole["missing_events"].is_null(), "{whole}");
    let cut = simulate("cut.tlv", &["--trace-limit", "20000"]);
    let missing = cut["missing_events"].as_u64().expect("some are missing");
    assert_eq!(cut["limited_by"], whole["limited_by"], "{cut}");
    let stdout = printed(&["trace", "explain", &path("cut.tlv")]);
    assert!(
        stdout.starts_with(&format!("The trace is incomplete: {missing} events did not fit")),
        "{stdout}"
    );
    let summary = finish(starfish(["trace", "summary", &path("cut.tlv")]));
    let notes = String::from_utf8(summary.stderr).expect("text");
    assert!(
        notes.contains(&format!("{missing} records were dropped, because the buffer was full")),
        "{notes}"
    );
}

#[test]
fn queues_at_disks_limit_jobs_that_race() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("race.tlv");
    let path = path.to_str().expect("UTF-8");
    let race =
        "merge --kind copy --jobs 2 --disks 2 --run-blocks 2000 --read-blocks 8 --write-blocks 1 --trace";
    printed(&race.split(' ').chain([path]).collect::<Vec<_>>());
    let stdout = printed(&["trace", "explain", path]);
    assert!(stdout.starts_with("Queues at disks limited this run: "), "{stdout}");
}

/// Nodes have the same names as in a trace in Starfish's format.
#[test]
fn the_account_of_a_perfetto_trace_has_the_same_node_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let explained = ["rb.tlv", "rb.pftrace"].map(|name| {
        traced(Path::new(&path(name)), &[]);
        printed(&["trace", "explain", &path(name)])
    });
    let nodes = |account: &str| -> Vec<String> {
        let lines = account.lines().filter(|line| line.contains(" on average; "));
        lines.map(|line| line.rsplit_once("; ").expect("a node").1.to_owned()).collect()
    };
    assert_eq!(nodes(&explained[1]), nodes(&explained[0]));
}

/// Both formats show the same run. A file in Starfish's format has the states of the nodes and of the machine's
/// components, and each message from its sender to its receiver.
#[test]
fn a_trace_file_has_nodes_as_processes_and_messages_as_flows() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, perfetto) = (directory.path().join("rb.tlv"), directory.path().join("rb.pftrace"));
    for path in [&path, &perfetto] {
        assert_eq!(traced(path, &[]).1, "");
    }
    let bytes = read(&path).expect("a trace");
    let timeline = trace::read("rb.tlv", bytes.as_slice()).expect("a trace");
    assert!(timeline.notes.is_empty(), "{:?}", timeline.notes);
    assert_eq!(timeline.processes.len(), 32);
    let spans = timeline.spans.len();
    let named: usize = slices(&perfetto).values().map(Vec::len).sum();
    assert!(named <= spans && spans < named + 100, "{named} of {spans} have ended");
    let flows = timeline.flows.len();
    assert!(flows > 100 && flows < spans, "{flows} flows");
    assert!(bytes.len() < 16 * (2 * spans + 2 * flows), "{} bytes", bytes.len());
}

#[test]
fn a_trace_needs_a_single_row_and_a_writable_file() {
    let error = fail(starfish(["simulate", "--pattern", "rb,wb", "--trace", "x"]), 2);
    assert!(error.contains("a trace needs a single row") && error.contains("--pattern"), "{error}");
    let run = "simulate --pattern rb --method traditional --trace /no/such/directory/x";
    assert!(fail(starfish(run.split(' ')), 1).contains("existing, writable directory"));
    let limit = "simulate --pattern rb --method traditional --trace-limit 5";
    assert!(fail(starfish(limit.split(' ')), 2).contains("--trace"));
}

/// An account made from the trace equals the account of the machine's own counters.
#[test]
fn the_account_of_a_trace_equals_that_of_the_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rb.tlv");
    for (pattern, method) in [("rb", "traditional"), ("rb", "disk-directed"), ("wc", "traditional")] {
        let run = RUN.replace("traditional", method).replace("rb", pattern);
        let trace = ["--trace", path.to_str().expect("a plain path")];
        let output = finish(starfish(run.split(' ').chain(trace)));
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        let expected = &rows[0]["explain"];
        let arguments = ["trace", "explain", path.to_str().expect("a plain path"), "--format", "json"];
        let explained: serde_json::Value =
            serde_json::from_slice(&finish(starfish(arguments)).stdout).expect("JSON");
        assert_eq!(explained["limited_by"], expected["limited_by"]);
        let named = |account: &serde_json::Value, list: &str, name: &serde_json::Value| {
            let all = account[list].as_array().expect("a list").iter();
            all.clone().find(|one| one["name"] == *name).cloned().expect("the same names")
        };
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        for class in explained["resources"].as_array().expect("a list") {
            let other = named(expected, "resources", &class["name"]);
            assert_eq!(class["count"], other["count"], "{class}");
            for part in ["mean", "busiest_utilisation"] {
                // The machine counts a piece of work completely when the work begins.
                assert!((number(&class[part]) - number(&other[part])).abs() < 0.01, "{class} {other}");
            }
        }
        for queue in [
            "requests for their turn at a disk",
            "threads for the processor of a compute node",
            "threads for the processor of an I/O node",
            "interrupts for the processor of a compute node",
            "interrupts for the processor of an I/O node",
        ] {
            let queue = queue.into();
            let (waits, other) = (named(&explained, "queues", &queue), named(expected, "queues", &queue));
            assert_eq!(waits, other, "{method} {pattern}");
        }
        for count in ["reads", "writes", "mean_read_s", "mean_write_s"] {
            assert_eq!(explained["disks"][count], expected["disks"][count], "{method} {pattern}: {count}");
        }
        assert_eq!(explained["messages"], expected["messages"]);
    }
}
