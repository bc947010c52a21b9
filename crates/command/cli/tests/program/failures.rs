//! What goes wrong with agents and their disks, as users meet it: an agent that is killed, comes back, or hangs; a
//! full disk; stripes that were damaged, cut or are of another version.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Agent, Store, contents, hash, wait};

/// Slow disks, so that there is a while to fail in, and little memory.
const SLOW: [&str; 4] = ["--disk-model", "streaming-20", "--cache", "8MiB"];

/// Starts an agent anew at its address; it has been killed or has ended.
fn start_anew(store: &mut Store, index: usize, options: &[&str]) {
    let (address, roots) = (store.agents[index].address.clone(), store.agents[index].roots.clone());
    store.agents[index] = Agent::start_at(&address, roots, options);
}

fn kill(store: &mut Store, index: usize) {
    store.agents[index].child.kill().expect("a child of ours");
    store.agents[index].child.wait().expect("a child of ours");
}

/// Ends all agents in order and starts them again, so that they remember nothing.
fn restart_all(store: &mut Store, options: &[&str]) {
    for index in 0..store.agents.len() {
        store.agents[index].signal("TERM");
        assert!(wait(&mut store.agents[index].child).success());
        start_anew(store, index, options);
    }
}

/// Waits for a command that must fail, and returns what it said.
fn failure(mut child: Child) -> String {
    let status = wait(&mut child);
    let mut error = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
    assert_eq!(status.code(), Some(1), "{error}");
    error
}

#[test]
fn an_agent_that_comes_back_while_a_file_is_read_delays_that_only() {
    let mut store = Store::start_with(&[1, 1], &SLOW);
    let original = store.make_file("file", 40 << 20);
    store.run(&["put", "file"]);
    for (name, away) in [("soon", 0), ("late", 2500)] {
        let mut get = store.command(&["get", "file", name]);
        let mut get = get.env("STARFISH_SILENCE", "20").spawn().expect("the program");
        thread::sleep(Duration::from_millis(400));
        kill(&mut store, 1);
        thread::sleep(Duration::from_millis(away));
        start_anew(&mut store, 1, &SLOW);
        let status = wait(&mut get);
        let mut error = String::new();
        get.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        assert!(status.success(), "{name}: {error}");
        assert_eq!(hash(&store.path(name)), original);
    }
}

#[test]
fn what_an_agent_had_accepted_and_lost_when_it_was_killed_is_told() {
    let options = ["--disk-model", "streaming-20", "--cache", "256MiB"];
    let mut store = Store::start_with(&[1, 1], &options);
    store.make_file("file", 100 << 20);
    let put = store.command(&["put", "file"]).spawn().expect("the program");
    thread::sleep(Duration::from_millis(700));
    kill(&mut store, 1);
    start_anew(&mut store, 1, &options);
    let error = failure(put);
    let address = &store.agents[1].address;
    assert!(error.contains(&format!("agent {address} was restarted and has lost")), "{error}");
    assert!(error.contains("Write it again"), "{error}");
    assert_eq!(store.run(&["ls"]), "", "nothing half-made stays behind");
}

/// An agent that is stopped in order and started again, as for a new version of it, costs who writes some time.
#[test]
fn what_an_agent_had_accepted_when_it_was_stopped_in_order_is_not_lost() {
    let options = ["--disk-model", "streaming-20", "--cache", "256MiB"];
    let mut store = Store::start_with(&[1, 1], &options);
    let original = store.make_file("file", 60 << 20);
    for directory in [None, Some("dir")] {
        directory.iter().for_each(|directory| drop(store.run(&["mkdir", directory])));
        let path = directory.map_or("file".to_owned(), |directory| format!("{directory}/file"));
        let mut put = store.command(&["put", "file", &path]).spawn().expect("the program");
        thread::sleep(Duration::from_millis(700));
        store.agents[1].signal("TERM");
        assert!(wait(&mut store.agents[1].child).success());
        start_anew(&mut store, 1, &options);
        let status = wait(&mut put);
        let mut error = String::new();
        put.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        assert!(status.success(), "{path}: {error}");
        store.run(&["get", &path, "back"]);
        assert_eq!(hash(&store.path("back")), original);
        fs::remove_file(store.path("back")).expect("it is there");
    }
}

#[test]
fn an_agent_that_hangs_is_given_up_and_named() {
    let mut store = Store::start_with(&[1, 1], &SLOW);
    store.make_file("file", 40 << 20);
    store.run(&["put", "file"]);
    let mut get = store.command(&["get", "file", "back"]);
    let get = get.env("STARFISH_SILENCE", "0.6").spawn().expect("the program");
    thread::sleep(Duration::from_millis(400));
    let start = Instant::now();
    store.agents[1].signal("STOP");
    let error = failure(get);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let address = store.agents[1].address.clone();
    assert!(error.contains(&format!("agent {address} is gone: it has not answered for 600 ms")), "{error}");
    store.agents[1].signal("CONT");
    store.run(&["get", "file", "back"]);
    kill(&mut store, 0);
}

#[test]
fn an_agent_that_hung_for_a_while_delays_reading_only() {
    let store = Store::start_with(&[1, 1], &SLOW);
    let original = store.make_file("file", 40 << 20);
    store.run(&["put", "file"]);
    // First shorter than it may be silent; then longer, but not than it is called again.
    for (name, stopped) in [("one", 300), ("two", 2200)] {
        let mut get = store.command(&["get", "file", name]);
        let mut get = get.env("STARFISH_SILENCE", "2").spawn().expect("the program");
        thread::sleep(Duration::from_millis(300));
        store.agents[1].signal("STOP");
        thread::sleep(Duration::from_millis(stopped));
        store.agents[1].signal("CONT");
        let status = wait(&mut get);
        let mut error = String::new();
        get.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        assert!(status.success(), "{name}: {error}");
        assert_eq!(hash(&store.path(name)), original);
    }
}

/// Where the first sums of a stripe lie in its file, and the first data (`crates/machines/real/src/disk/layout.rs`).
const SUMS_AT: usize = 12 * 1024;
const DATA_AT: usize = SUMS_AT + 8192;

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a stripe");
    change(&mut bytes);
    fs::write(path, bytes).expect("room");
}

#[test]
fn a_stripe_that_was_damaged_or_cut_is_named_and_nothing_else_is_lost() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("file", 3 << 20);
    let other = store.make_file("other", 100_000);
    store.run(&["put", "file"]);
    store.run(&["put", "other"]);
    let stripe = store.agents[1].roots[0].join("file.stripe");
    let sound = fs::read(&stripe).expect("a stripe");
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("offset 20480 do not match their checksum", |file| file[DATA_AT + 20480 + 17] ^= 1),
        ("offset 4096 do not match their checksum", |file| {
            file.copy_within(DATA_AT..DATA_AT + 4096, DATA_AT + 4096);
        }),
        ("offset 65536 do not match their checksum", |file| file[DATA_AT + 65536..][..2000].fill(0)),
        ("its file has been cut", |file| file.truncate(DATA_AT + 70_000)),
        ("shorter than the header", |file| file.truncate(100)),
        ("version 1, which has no checksums", |file| file[8] = 1),
    ];
    for (expected, damage) in damages {
        change(&stripe, damage);
        restart_all(&mut store, &[]);
        let error = store.run_failing(&["get", "file", "back"]);
        let address = &store.agents[1].address;
        for part in [expected, &format!("agent {address}"), &stripe.display().to_string(), "is damaged"] {
            assert!(error.contains(part), "{error} for {part}");
        }
        assert!(!store.path("back").exists());
        store.run(&["get", "other", "back"]);
        assert_eq!(hash(&store.path("back")), other);
        fs::remove_file(store.path("back")).expect("just made");
        fs::write(&stripe, &sound).expect("room");
    }
    restart_all(&mut store, &[]);
    store.run(&["get", "file", "back"]);
    assert_eq!(hash(&store.path("back")), hash(&store.path("file")));
}

#[test]
fn swapped_and_deleted_stripes_are_named() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("file", 3 << 20);
    store.run(&["put", "file"]);
    let stripes: Vec<PathBuf> = store.stripe_files();
    let (first, second) =
        (fs::read(&stripes[0]).expect("a stripe"), fs::read(&stripes[1]).expect("a stripe"));
    // Swapped as a whole they are still all there; their data alone do not fit their headers. Any block tells that
    // first.
    fs::write(&stripes[0], [&first[..SUMS_AT], &second[SUMS_AT..]].concat()).expect("room");
    restart_all(&mut store, &[]);
    let error = store.run_failing(&["get", "file", "back"]);
    for part in ["do not match their checksum", &stripes[0].display().to_string(), &store.agents[0].address] {
        assert!(error.contains(part), "{error} for {part}");
    }
    fs::write(&stripes[0], &second).expect("room");
    restart_all(&mut store, &[]);
    let error = store.run_failing(&["get", "file", "back"]);
    assert!(error.contains("holds this one too"), "{error}");
    fs::write(&stripes[0], &first).expect("room");
    fs::remove_file(&stripes[1]).expect("a stripe");
    restart_all(&mut store, &[]);
    let error = store.run_failing(&["get", "file", "back"]);
    assert!(error.contains("stripe 1 of 2 is missing"), "{error}");
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let mut store = Store::start(&[1, 1]);
    let small = store.make_file("small", 1 << 20);
    store.make_file("large", 64 << 20);
    store.run(&["put", "small"]);
    // A disk that is full when a file has 8 MiB: the process may not make files longer.
    store.restart_limited(1, "-f 16384");
    let address = store.agents[1].address.clone();
    for method in ["traditional", "disk-directed"] {
        let error = store.run_failing(&["put", "large", "--method", method]);
        for part in ["no space left on", "large.begun", &format!("agent {address}"), "larger disk"] {
            assert!(error.contains(part), "{method}: {error}");
        }
        assert_eq!(store.run(&["ls"]), "small\n", "{method}: nothing half-made stays behind");
    }
    store.run(&["get", "small", "back"]);
    assert_eq!(hash(&store.path("back")), small);
    fs::write(store.path("more"), contents(2 << 20)).expect("room");
    store.run(&["put", "more", "--verify"]);
}

/// Who wants to empty it needs an agent.
#[test]
fn a_full_disk_keeps_no_agent_from_starting() {
    let mut store = Store::start(&[1]);
    store.make_file("file", 1 << 20);
    store.run(&["put", "file"]);
    // The process may not write anything into a file.
    store.restart_limited(0, "-f 0");
    store.run(&["rm", "file"]);
    assert_eq!(store.run(&["ls"]), "");
}

#[test]
fn beside_an_agent_that_is_down_what_is_known_is_shown_and_whole_files_are_used_as_ever() {
    let mut store = Store::start(&[1, 1, 1]);
    let original = store.make_file("striped", 1 << 20);
    store.run(&["put", "striped"]);
    // A file over the first two agents alone.
    let third = store.agents.pop().expect("three of them");
    store.run(&["put", "striped", "whole"]);
    store.run(&["put", "striped", "other"]);
    store.agents.push(third);
    kill(&mut store, 2);
    let address = store.agents[2].address.clone();

    let shown_with_failure = |arguments: &[&str]| {
        let output = crate::common::finish(store.command(arguments));
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert_eq!(error.matches(&address).count(), 1, "{arguments:?} names it once: {error}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(shown_with_failure(&["ls"]), "other\nstriped\nwhole\n");
    let long = shown_with_failure(&["ls", "-l"]);
    let rows: Vec<Vec<&str>> = long.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["1048576", "256", "KiB", "2", "other"]);
    assert_eq!(rows[1], ["?", "256", "KiB", "3", "striped"]);
    let stat = shown_with_failure(&["stat", "striped"]);
    let first = &store.agents[0].address;
    for part in ["bytes     ?", "over 3 stripes", &format!("0       {first}"), "2       ?"] {
        assert!(stat.contains(part), "{part}: {stat}");
    }

    for method in ["traditional", "disk-directed"] {
        store.run(&["get", "whole", "back", "--force", "--method", method]);
        assert_eq!(hash(&store.path("back")), original, "{method}");
    }
    assert!(store.run(&["stat", "whole"]).contains("bytes     1048576"));
    store.run(&["rm", "whole"]);
    for arguments in [&["get", "striped", "part"][..], &["rm", "striped"], &["get", "nothing"]] {
        let error = store.run_failing(arguments);
        assert!(error.contains(&address) && error.contains("on the agents that answer"), "{error}");
    }

    // Nothing is put elsewhere in silence.
    for arguments in [&["put", "striped", "new"][..], &["put", "striped", "new", "--method", "disk-directed"]]
    {
        let error = store.run_failing(arguments);
        assert!(error.contains(&address) && error.contains("--without-missing"), "{error}");
    }
    let replace = ["put", "striped", "--replace", "--without-missing"];
    assert!(store.run_failing(&replace).contains("on the agents that answer"), "a part of it would stay");
    store.run(&["put", "striped", "new", "--without-missing", "--verify"]);
    assert!(store.run(&["stat", "new"]).contains("over 2 stripes"));
    store.run(&["put", "striped", "other", "--replace", "--without-missing"]);

    start_anew(&mut store, 2, &[]);
    assert_eq!(store.run(&["ls"]), "new\nother\nstriped\n");
    store.run(&["get", "striped", "back", "--force"]);
    assert_eq!(hash(&store.path("back")), original);
}

#[test]
fn agents_that_do_not_answer_are_waited_for_all_at_once() {
    let mut store = Store::start(&[1, 1, 1, 1]);
    for agent in &store.agents[1..] {
        agent.signal("STOP");
    }
    let start = Instant::now();
    let mut ls = store.command(&["ls"]);
    let error = failure(ls.env("STARFISH_SILENCE", "1").spawn().expect("the program"));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}: {error}", start.elapsed());
    assert!(error.contains("no answer within 1 s"), "{error}");
    for agent in &store.agents[1..] {
        assert!(error.contains(&agent.address), "{error}");
    }
    (1..4).for_each(|index| kill(&mut store, index));
}

/// Slow disks, and memory for all that is written here.
const ACCEPTING: [&str; 4] = ["--disk-model", "streaming-20", "--cache", "256MiB"];

/// More than such disks write until an agent is killed.
const ACCEPTED_BYTES: usize = 20_000_000;

/// Agents with a namespace that has the file `dir/old`, and a session of theirs.
fn store_with_old_file() -> (Store, node::Session) {
    let store = Store::start_with(&[1, 1], &ACCEPTING);
    fs::write(store.path("old"), "old").expect("room");
    store.run(&["mkdir", "dir"]);
    store.run(&["put", "old", "dir/old"]);
    let session = node::Session::start(store.settings()).expect("they are there");
    (store, session)
}

/// Opens a file anew and writes it.
fn write_new(session: &node::Session, path: &str) -> node::Handle {
    let options = node::OpenOptions::new().read(true).write(true).create(true);
    let file = session.open(path, options).expect("made");
    file.write_at(0, contents(ACCEPTED_BYTES)).expect("there is memory for it");
    file.send().expect("accepted");
    file
}

fn is_lost<T: std::fmt::Debug>(outcome: node::Result<T>) -> bool {
    outcome.expect_err("some of it is lost").kind() == node::ErrorKind::Lost
}

#[test]
fn who_closes_a_file_of_a_namespace_is_told_of_what_an_agent_had_accepted_and_lost() {
    let (mut store, session) = store_with_old_file();
    for index in [1, 0] {
        let file = write_new(&session, &format!("dir/new{index}"));
        kill(&mut store, index);
        start_anew(&mut store, index, &ACCEPTING);
        assert!(is_lost(file.close()), "agent {index}");
    }
    let file = write_new(&session, "dir/kept");
    file.flush().expect("it is on the disks");
    kill(&mut store, 1);
    start_anew(&mut store, 1, &ACCEPTING);
    file.close().expect("nothing of it is lost");
}

#[test]
fn a_closed_file_that_an_agent_has_lost_takes_no_other_ones_place() {
    let (mut store, session) = store_with_old_file();
    write_new(&session, "dir/new").close().expect("accepted");
    kill(&mut store, 1);
    start_anew(&mut store, 1, &ACCEPTING);
    let tree = session.tree().expect("asked").expect("there is one");
    let at = |path: &str| namespace::Location::of_path(path);
    let (from, to) = (at("dir/new"), at("dir/old"));
    let rename = namespace::TreeOperation::Rename { from, to, mode: namespace::RenameMode::Replace };
    assert!(is_lost(tree.unname("dir/old", rename).wait()));
    assert_eq!(store.run(&["cat", "dir/old"]), "old");
}
