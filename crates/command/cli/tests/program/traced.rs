//! Traces of real programs, with agents and their clients in one file.

use std::fs::{read, write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Store, fail, finish, signal, starfish, wait};
use trace::{NoteKind, ProcessNumber, Timeline};

fn timeline(path: &Path) -> Timeline {
    trace::read("all.tlv", read(path).expect("a trace").as_slice()).expect("a trace")
}

/// Returns the process to which a thread belongs.
fn process_of(timeline: &Timeline, thread: u32) -> u32 {
    timeline.threads[thread as usize].process
}

/// Returns the names of the states in which the threads of a process have been.
fn states<'a>(timeline: &'a Timeline, command: &str) -> Vec<&'a str> {
    let is_of_command = |thread: u32| {
        timeline.processes[process_of(timeline, thread) as usize].info.command_line.contains(command)
    };
    let of_process =
        timeline.spans.thread.iter().zip(&timeline.spans.state).filter(|(thread, _)| is_of_command(**thread));
    let mut names: Vec<&str> =
        of_process.map(|(_, state)| timeline.states[*state as usize].name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn agents_and_clients_record_to_one_trace() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("all.tlv");
    let file = path.to_str().expect("text");
    let mut store = Store::start_with(&[1, 1], &["--trace", file]);
    store.make_file("original", 1 << 20);
    store.run(&["put", "original", "--block", "64KiB", "--trace", file]);
    let mut get = store.command(&["get", "original", "copy"]);
    assert!(get.env("STARFISH_TRACE", file).status().expect("it runs").success());
    for agent in &mut store.agents {
        agent.signal("TERM");
        assert!(wait(&mut agent.child).success());
    }
    let timeline = timeline(&path);
    let commands: Vec<&str> =
        timeline.processes.iter().map(|process| process.info.command_line.as_str()).collect();
    assert_eq!(commands.len(), 4, "{commands:?}");
    let has = |command: &str, names: &[&str]| {
        let states = states(&timeline, command);
        names.iter().for_each(|name| assert!(states.contains(name), "{name} of {command}: {states:?}"));
    };
    has(" put ", &["write", "flush", "ask: attach", "ask: flush"]);
    has(" get ", &["read", "ask: attach"]);
    has(" agent ", &["serve: write", "serve: read", "disk write", "wait for disk", "answer", "disk flush"]);
    // Each message from a client has arrived at an agent, and each message from an agent at a client.
    let between = timeline
        .flows
        .iter()
        .filter(|flow| process_of(&timeline, flow.from_thread) != process_of(&timeline, flow.to_thread));
    assert!(between.count() >= 2 * (16 + 16), "{} flows", timeline.flows.len());
    let host = &timeline.processes[0].info.host;
    assert!(timeline.processes.iter().all(|process| process.info.host == *host));
}

#[test]
fn a_command_starts_a_single_node() {
    let store = Store::start(&[1, 1]);
    store.make_file("original[1]", 100_000);
    let commands: [&[&str]; 3] = [
        &["put", "original[1]", "--verify", "--without-missing"],
        // The name is also a pattern, so the command must first look for a file with this name.
        &["get", "original[1]", "copy"],
        &["cat", "original[1]", "original[1]"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let path = store.path(&format!("{number}.tlv"));
        let output = finish(store.command(&[command, &["--trace", path.to_str().expect("text")]].concat()));
        assert!(output.status.success(), "{command:?}");
        assert_eq!(timeline(&path).processes.len(), 1, "{command:?}");
    }
}

#[test]
fn a_file_that_is_not_a_trace_is_left_unchanged() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("letter.txt");
    write(&path, "Dear reader").expect("it is written");
    let store = Store::start(&[1]);
    let mut command = store.command(&["ls", "--trace", path.to_str().expect("text")]);
    let errors = String::from_utf8(command.output().expect("it runs").stderr).expect("text");
    assert!(errors.contains("letter.txt") && errors.contains("not a trace"), "{errors}");
    assert_eq!(read(&path).expect("it exists"), b"Dear reader");
    let agent =
        ["agent", "--root", "x", "--create", "--listen", "127.0.0.1:0", "--trace", "/no/such/place/x.tlv"];
    let mut command = starfish(agent);
    command.current_dir(place.path());
    assert!(fail(command, 1).contains("existing, writable directory"));
}

#[test]
fn agents_record_on_demand() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("original", 1 << 20);
    assert!(store.run_failing(&["trace", "stop", "-o", "all.tlv"]).contains("`starfish trace start`"));
    assert!(!store.path("all.tlv").exists(), "there was nothing");
    store.run(&["put", "original", "before"]);
    let stdout = store.run(&["trace", "start"]);
    // `put --explain` would need a separate recording. It is rejected and does not end this recording.
    store.make_file("other", 1000);
    let refused = store.run_failing(&["put", "other", "--explain"]);
    assert!(refused.contains("already recording") && refused.contains("`starfish trace stop"), "{refused}");
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    store.run(&["put", "original", "--block", "64KiB"]);
    store.run(&["get", "original", "copy"]);
    // If the file cannot be written, the agents keep the recording.
    fail(store.command(&["trace", "stop", "-o", "no/such/place.tlv"]), 2);
    let stdout = store.run(&["trace", "stop", "-o", "all.tlv"]);
    let all = timeline(&store.path("all.tlv"));
    // The trace does not contain the clients.
    let usual = [NoteKind::Unfinished, NoteKind::FlowUnmatched, NoteKind::ClockUncertain];
    assert!(all.notes.iter().all(|note| usual.contains(&note.kind)), "{:?}", all.notes);
    assert_eq!(all.processes.len(), 2);
    for ((number, process), agent) in (0..).zip(&all.processes).zip(&store.agents) {
        let info = &process.info;
        assert_eq!((&info.host, info.number), (&agent.address, ProcessNumber::Node(number)));
        assert!(stdout.contains(&format!("{}: ", agent.address)), "{stdout}");
        let uncertainty = process.uncertainty_ns.expect("the clocks were compared");
        assert!(uncertainty > 0 && uncertainty < 1_000_000_000, "{uncertainty} ns");
        let of_process = all.spans.thread.iter().zip(&all.spans.state);
        let of_process = of_process.filter(|(thread, _)| process_of(&all, **thread) == number);
        let states: Vec<&str> =
            of_process.map(|(_, state)| all.states[*state as usize].name.as_str()).collect();
        let count = |name: &str| states.iter().filter(|state| **state == name).count();
        assert_eq!(count("serve: write"), 8, "{states:?}");
        assert!(
            count("serve: flush") >= 1 && count("serve: read") >= 8 && count("disk write") > 0,
            "{states:?}"
        );
    }
    // If one agent does not answer, the recording of the other agent is written.
    store.run(&["trace", "start"]);
    store.agents[1].signal("TERM");
    assert!(wait(&mut store.agents[1].child).success());
    assert!(store.run_failing(&["trace", "stop", "-o", "one.tlv"]).contains(&store.agents[1].address));
    assert_eq!(timeline(&store.path("one.tlv")).processes.len(), 1);
}

#[test]
fn an_agent_with_a_trace_file_does_not_record_on_demand() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("own.tlv");
    let mut store = Store::start(&[1]);
    let root = vec![store.path("other")];
    store.agents.push(crate::common::Agent::start(root, &["--trace", file.to_str().expect("text")]));
    let stderr = store.run_failing(&["trace", "start"]);
    assert!(
        stderr.contains(&store.agents[1].address) && stderr.contains("without it to record on demand"),
        "{stderr}"
    );
    assert!(store.run_failing(&["trace", "stop", "-o", "all.tlv"]).contains("it is not recording"));
    let agent = &mut store.agents[1];
    agent.signal("TERM");
    assert!(wait(&mut agent.child).success());
    assert_eq!(timeline(&file).processes.len(), 1);
}

/// The limit of a real run is reported at its end, and again from its trace. The agents do not continue to record.
#[test]
fn the_limit_of_a_run_on_agents_is_reported() {
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    // The file is large enough to keep the disks busy for most of the run, even on a busy computer.
    store.make_file("original", 24 << 20);
    let explained = |arguments: &[&str]| -> Vec<String> {
        let output = store.command(arguments).output().expect("it runs");
        let errors = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{errors}");
        errors.lines().map(|line| line.trim().to_owned()).collect()
    };
    let put = explained(&["put", "original", "--block", "64KiB", "--explain"]);
    assert!(put[0].starts_with("The disks limited this run: busy "), "{put:?}");
    let has = |lines: &[String], begin: &str| {
        assert!(lines.iter().any(|line| line.starts_with(begin)), "{begin}: {lines:?}");
    };
    let processors = "processors of I/O nodes (2): busy ";
    for begin in ["disks (2): busy ", "links of nodes (", processors, "disk accesses: 0 reads, "] {
        has(&put, begin);
    }
    let get = explained(&["get", "original", "copy", "--explain", "--trace", "get.tlv"]);
    // The file is still in the agents' caches.
    has(&get, "disk accesses: 0 reads, ");
    let of_trace = store.run(&["trace", "explain", "get.tlv"]);
    assert_eq!(of_trace.lines().collect::<Vec<_>>(), get);
    assert!(store.run_failing(&["trace", "stop", "-o", "all.tlv"]).contains("`starfish trace start`"));
    // A run that fails reports the reason, and the agents stop recording.
    assert!(store.run_failing(&["get", "missing", "--explain"]).contains("missing"));
    assert!(store.run_failing(&["trace", "stop", "-o", "all.tlv"]).contains("`starfish trace start`"));
    let bench = explained(&[
        "bench",
        "--agents",
        "--operation",
        "write",
        "--order",
        "random",
        "--file-size",
        "1MiB",
        "--block",
        "64KiB",
        "--explain",
        "--progress",
        "never",
    ]);
    assert_eq!(bench[0], "random write:");
    has(&bench, "disks (2): busy ");
}

/// The trace contains all processes of the run, even if the program fails.
#[test]
fn a_program_is_recorded_with_its_agents() {
    let store = Store::start(&[1, 1]);
    store.make_file("original", 1 << 20);
    store.run(&["put", "original"]);
    let recorded = |option: &str, program: &[&str]| {
        let command = [&["trace", "record", option, "run.tlv", program[0]], &program[1..]].concat();
        let output = store.command(&command).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let get = [env!("CARGO_BIN_EXE_starfish"), "get", "original", "copy", "--force"];
    // The command replaces an existing file, even if that file is not a trace.
    write(store.path("run.tlv"), "notes").expect("it is written");
    for _ in 0..2 {
        let (code, stderr) = recorded("-o", &get);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.contains(" limited this run") && stderr.contains("I/O nodes (2): busy "), "{stderr}");
        let all = timeline(&store.path("run.tlv"));
        assert_eq!(all.processes.len(), 3, "the program and the agents");
        assert!(states(&all, " get ").contains(&"ask: attach"), "{:?}", all.states);
    }
    recorded("--trace", &get);
    assert_eq!(timeline(&store.path("run.tlv")).processes.len(), 6, "the run was added to the trace");
    // If a program has used no agents, no limit is reported.
    let (code, stderr) = recorded("-o", &["true"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("it used no agents") && stderr.contains("STARFISH_AGENTS"), "{stderr}");
    assert!(!stderr.contains("limited this run"), "{stderr}");
    fail(store.command(&["trace", "record", "-o", "no/such/place.tlv", "touch", "begun"]), 2);
    assert!(!store.path("begun").exists(), "the program is not started if the trace cannot be written");
    let (code, stderr) = recorded("-o", &[get[0], "get", "missing"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("missing"), "{stderr}");
    assert!(store.run_failing(&["trace", "stop", "-o", "all.tlv"]).contains("`starfish trace start`"));
}

#[test]
fn an_interrupted_run_leaves_no_recording() {
    let store = Store::start(&[1, 1]);
    let bench = ["bench", "--agents", "--operation", "write", "--order", "random"];
    let more = ["--file-size", "1MiB", "--block", "64KiB", "--duration", "60s", "--explain"];
    let mut running = store.command(&[&bench[..], &more].concat()).spawn().expect("it runs");
    let begun = Instant::now();
    while store.stripe_files().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the file is not there");
        thread::sleep(Duration::from_millis(50));
    }
    signal(&running, "INT");
    assert!(!wait(&mut running).success());
    assert!(store.run_failing(&["trace", "stop", "-o", "all.tlv"]).contains("`starfish trace start`"));
}

#[test]
fn a_benchmark_reports_the_limit_of_each_method() {
    let place = tempfile::tempdir().expect("a directory");
    let mut command = starfish(["bench", "--file-size", "4MiB", "--rounds", "1", "--explain"]);
    command.args(["--trace", "bench.tlv"]).env("STARFISH_TRACE", "other.tlv").current_dir(place.path());
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{stderr}");
    for method in ["traditional, 4 agents:\n", "disk-directed, 4 agents:\n"] {
        let (_, account) = stderr.split_once(method).expect("an account of each method");
        assert!(
            account.contains(" limited this run") && account.contains("I/O nodes (4): busy "),
            "{stderr}"
        );
    }
    assert!(timeline(&place.path().join("bench.tlv")).processes.len() >= 10);
    assert!(!place.path().join("other.tlv").exists());
}
