//! Failures of agents and their disks, as a user sees them: an agent that is killed, restarted or stops responding; a
//! full disk; stripes that are damaged, truncated or of another version.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Agent, Store, contents, finish, hash, wait};

/// Options for slow disks, which give the test time for a failure, and for small caches.
const SLOW: [&str; 4] = ["--disk-model", "streaming-20", "--cache", "8MiB"];

/// Restarts an agent, which has ended, at its old address.
fn restart_agent(store: &mut Store, index: usize, options: &[&str]) {
    let (address, roots) = (store.agents[index].address.clone(), store.agents[index].roots.clone());
    store.agents[index] = Agent::start_at(&address, roots, options);
}

fn kill(store: &mut Store, index: usize) {
    store.agents[index].child.kill().expect("a child process of the test");
    store.agents[index].child.wait().expect("a child process of the test");
}

/// Waits for a command that must fail, and returns its standard error.
fn failure(mut child: Child) -> String {
    let status = wait(&mut child);
    let mut error = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
    assert_eq!(status.code(), Some(1), "{error}");
    error
}

#[test]
fn an_agent_restarted_during_a_read_only_delays_it() {
    let mut store = Store::start_with(&[1, 1], &SLOW);
    let original = store.make_file("file", 40 << 20);
    store.run(&["put", "file"]);
    for (name, away) in [("soon", 0), ("late", 2500)] {
        let mut get = store.command(&["get", "file", name]);
        let mut get = get.env("STARFISH_SILENCE", "20").spawn().expect("the program");
        thread::sleep(Duration::from_millis(400));
        kill(&mut store, 1);
        thread::sleep(Duration::from_millis(away));
        restart_agent(&mut store, 1, &SLOW);
        let status = wait(&mut get);
        let mut error = String::new();
        get.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        assert!(status.success(), "{name}: {error}");
        assert_eq!(hash(&store.path(name)), original);
    }
}

#[test]
fn put_reports_data_lost_by_a_killed_agent() {
    let options = ["--disk-model", "streaming-20", "--cache", "256MiB"];
    let mut store = Store::start_with(&[1, 1], &options);
    store.make_file("file", 100 << 20);
    let put = store.command(&["put", "file"]).spawn().expect("the program");
    thread::sleep(Duration::from_millis(700));
    kill(&mut store, 1);
    restart_agent(&mut store, 1, &options);
    let error = failure(put);
    let address = &store.agents[1].address;
    assert!(error.contains(&format!("agent {address} was restarted and has lost")), "{error}");
    assert!(error.contains("Write it again"), "{error}");
    assert_eq!(store.run(&["ls", "-a"]), "", "no partial file is left");
}

/// A clean shutdown and restart of an agent, as for an update, delays writers but loses no data.
#[test]
fn a_clean_shutdown_during_a_put_loses_no_data() {
    let options = ["--disk-model", "streaming-20", "--cache", "256MiB"];
    let mut store = Store::start_with(&[1, 1], &options);
    let original = store.make_file("file", 60 << 20);
    let mut put = store.command(&["put", "file"]).spawn().expect("the program");
    thread::sleep(Duration::from_millis(700));
    store.agents[1].signal("TERM");
    assert!(wait(&mut store.agents[1].child).success());
    restart_agent(&mut store, 1, &options);
    let status = wait(&mut put);
    let mut error = String::new();
    put.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
    assert!(status.success(), "{error}");
    store.run(&["get", "file", "back"]);
    assert_eq!(hash(&store.path("back")), original);
}

#[test]
fn a_hung_agent_is_named_after_the_timeout() {
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
    assert!(
        error.contains(&format!("agent {address} disconnected: it has not answered for 600 ms")),
        "{error}"
    );
    store.agents[1].signal("CONT");
    store.run(&["get", "file", "back"]);
    kill(&mut store, 0);
}

#[test]
fn a_briefly_hung_agent_only_delays_a_read() {
    let store = Store::start_with(&[1, 1], &SLOW);
    let original = store.make_file("file", 40 << 20);
    store.run(&["put", "file"]);
    // First the agent is stopped for less than the silence timeout, then for longer, but not too long for the client to
    // reconnect.
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

/// Offsets of the first checksums and of the first data in a stripe's file (`crates/machines/real/src/disk/layout.rs`).
const SUMS_AT: usize = 12 * 1024;
const DATA_AT: usize = SUMS_AT + 8192;

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a stripe");
    change(&mut bytes);
    fs::write(path, bytes).expect("room");
}

#[test]
fn a_damaged_or_cut_stripe_is_named_and_other_files_are_intact() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("file", 3 << 20);
    let other = store.make_file("other", 100_000);
    store.run(&["put", "file"]);
    store.run(&["put", "other"]);
    let (agent, stripe) = store.stripe("file", 1);
    let sound = fs::read(&stripe).expect("a stripe");
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("offset 20480 do not match their checksum", |file| file[DATA_AT + 20480 + 17] ^= 1),
        ("offset 4096 do not match their checksum", |file| {
            file.copy_within(DATA_AT..DATA_AT + 4096, DATA_AT + 4096);
        }),
        ("offset 65536 do not match their checksum", |file| file[DATA_AT + 65536..][..2000].fill(0)),
        ("its file was truncated", |file| file.truncate(DATA_AT + 70_000)),
        ("shorter than the header", |file| file.truncate(100)),
        ("version 1, without checksums", |file| file[8] = 1),
    ];
    for (expected, damage) in damages {
        change(&stripe, damage);
        store.restart(&[]);
        let error = store.run_failing(&["get", "file", "back"]);
        let address = &store.agents[agent].address;
        for part in [expected, &format!("agent {address}"), &stripe.display().to_string(), "is damaged"] {
            assert!(error.contains(part), "{error} for {part}");
        }
        assert!(!store.path("back").exists());
        store.run(&["get", "other", "back"]);
        assert_eq!(hash(&store.path("back")), other);
        fs::remove_file(store.path("back")).expect("just made");
        fs::write(&stripe, &sound).expect("room");
    }
    // The byte after the magic number is the version.
    change(&stripe, |file| file[8] = 200);
    store.restart(&[]);
    let error = store.run_failing(&["get", "file", "back"]);
    assert!(error.contains("newer Starfish") && !error.contains("starfish rm"), "{error}");
    fs::write(&stripe, &sound).expect("room");
    store.restart(&[]);
    store.run(&["get", "file", "back"]);
    assert_eq!(hash(&store.path("back")), hash(&store.path("file")));
}

/// Overwrites a stripe of `file` with `bytes`. Checks that `get` reports the disk, the reason and a remedy, and that
/// `get --skip-damaged` copies the data of the other stripe.
fn check_replaced(store: &mut Store, bytes: &[u8], expected: &str) {
    let (agent, path) = store.stripe("file", 0);
    fs::write(&path, bytes).expect("room");
    store.restart(&[]);
    let error = store.run_failing(&["get", "file", "back"]);
    let address = &store.agents[agent].address;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("text");
    let number = stem.strip_prefix("%2F").expect("the number of the file");
    for part in [expected, "file: ", number, address, "starfish rm"] {
        assert!(error.contains(part), "{error} for {part}");
    }
    let saved = finish(store.command(&["get", "file", "rest", "--skip-damaged", "--force"]));
    assert_eq!(saved.status.code(), Some(1), "{}", String::from_utf8_lossy(&saved.stderr));
    let (rest, whole) = (fs::read(store.path("rest")).expect("the readable part"), contents(3 << 20));
    let of_other = |bytes: &[u8]| bytes.chunks(256 << 10).skip(1).step_by(2).collect::<Vec<_>>().concat();
    assert!(of_other(&rest) == of_other(&whole));
}

#[test]
fn foreign_and_deleted_stripes_are_named() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("file", 3 << 20);
    store.run(&["put", "file"]);
    store.run(&["put", "file", "other"]);
    let paths = [store.stripe("file", 0).1, store.stripe("file", 1).1, store.stripe("other", 0).1];
    let [first, second, other] = paths.each_ref().map(|path| fs::read(path).expect("a stripe"));
    // Data of another stripe do not match the checksums in this header, whatever block is read. A whole stripe of
    // another file names that file in its header.
    let mixed = [&first[..SUMS_AT], &second[SUMS_AT..]].concat();
    check_replaced(&mut store, &mixed, "do not match their checksum");
    check_replaced(&mut store, &other, "was its file renamed?");
    fs::write(&paths[0], &first).expect("room");
    fs::remove_file(&paths[1]).expect("a stripe");
    store.restart(&[]);
    let error = store.run_failing(&["get", "file", "back"]);
    assert!(error.contains("stripe 1 of 2 is missing") && error.contains("--skip-damaged"), "{error}");
    store.run(&["get", "other", "back"]);
    assert_eq!(hash(&store.path("back")), hash(&store.path("file")));
}

#[test]
fn a_stripe_that_replaces_another_of_its_file_is_named() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("file", 3 << 20);
    store.run(&["put", "file"]);
    let second = fs::read(store.stripe("file", 1).1).expect("a stripe");
    check_replaced(&mut store, &second, "stripe 1 of 2 of file ");
}

#[test]
fn a_full_disk_is_reported_and_loses_no_file() {
    let mut store = Store::start(&[1, 1]);
    let small = store.make_file("small", 1 << 20);
    store.make_file("large", 64 << 20);
    store.run(&["put", "small"]);
    // The agent may not write files longer than 8 MiB. This has the effect of a full disk.
    store.restart_limited(1, "-f 16384");
    let address = store.agents[1].address.clone();
    for method in ["traditional", "disk-directed"] {
        let error = store.run_failing(&["put", "large", "--method", method]);
        for part in ["large: ", "no space left on", &format!("agent {address}"), "larger disk"] {
            assert!(error.contains(part), "{method}: {error}");
        }
        assert_eq!(store.run(&["ls"]), "small\n", "{method}: no partial file is left");
    }
    store.run(&["get", "small", "back"]);
    assert_eq!(hash(&store.path("back")), small);
    fs::write(store.path("more"), contents(2 << 20)).expect("room");
    store.run(&["put", "more", "--verify"]);
}

/// Users can make room on a full disk only if its agent runs.
#[test]
fn an_agent_with_a_full_disk_starts_and_removes_files() {
    let mut store = Store::start(&[1, 1]);
    // This first use makes the first agent the metadata server.
    store.run(&["ls", "--agents", &store.agents[0].address]);
    store.make_file("file", 1 << 20);
    store.run(&["put", "file"]);
    // The agent may not write to any file.
    store.restart_limited(1, "-f 0");
    store.run(&["rm", "file"]);
    assert_eq!(store.run(&["ls"]), "");
}

#[test]
fn with_an_agent_down_whole_files_work_and_new_ones_need_an_option() {
    let mut store = Store::start(&[1, 1, 1]);
    // This first use makes the first agent the metadata server.
    store.run(&["ls", "--agents", &store.agents[0].address]);
    let original = store.make_file("striped", 1 << 20);
    store.run(&["put", "striped"]);
    // A file that is only on the first two agents.
    let third = store.agents.pop().expect("three of them");
    store.run(&["put", "striped", "whole"]);
    store.run(&["put", "striped", "other"]);
    store.agents.push(third);
    kill(&mut store, 2);
    let address = store.agents[2].address.clone();

    let stat = store.run(&["stat", "striped"]);
    let first = &store.agents[0].address;
    for part in ["bytes     1048576", "over 3 stripes", &format!(" {first} "), " ? "] {
        assert!(stat.contains(part), "{part}: {stat}");
    }
    for method in ["traditional", "disk-directed"] {
        store.run(&["get", "whole", "back", "--force", "--method", method]);
        assert_eq!(hash(&store.path("back")), original, "{method}");
        let error = store.run_failing(&["get", "striped", "part", "--method", method]);
        assert!(error.contains(&address) && error.contains("on the agents that answer"), "{error}");
    }
    store.run(&["rm", "whole"]);

    for arguments in [&["put", "striped", "new"][..], &["put", "striped", "new", "--method", "disk-directed"]]
    {
        let error = store.run_failing(arguments);
        assert!(error.contains(&address) && error.contains("--without-missing"), "{error}");
    }
    store.run(&["put", "striped", "new", "--without-missing", "--verify"]);
    assert!(store.run(&["stat", "new"]).contains("over 2 stripes"));
    store.run(&["put", "striped", "other", "--replace", "--without-missing"]);

    restart_agent(&mut store, 2, &[]);
    assert_eq!(store.run(&["ls"]), "new\nother\nstriped\n");
    for name in ["striped", "new", "other"] {
        store.run(&["get", name, "back", "--force"]);
        assert_eq!(hash(&store.path("back")), original, "{name}");
    }
}

#[test]
fn a_command_waits_for_silent_agents_concurrently() {
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

/// Options for slow disks, and for caches that hold all data that the tests write.
const ACCEPTING: [&str; 4] = ["--disk-model", "streaming-20", "--cache", "256MiB"];

/// Number of bytes to write: more than these disks can write before the agent is killed.
const ACCEPTED_BYTES: usize = 20_000_000;

/// Starts agents with a file `dir/old`, and a session with them.
fn store_with_old_file() -> (Store, node::Session) {
    let store = Store::start_with(&[1, 1], &ACCEPTING);
    fs::write(store.path("old"), "old").expect("room");
    store.run(&["mkdir", "dir"]);
    store.run(&["put", "old", "dir/old"]);
    let session = node::Session::start(store.settings()).expect("the agents run");
    (store, session)
}

/// Opens a file, which is created if it does not exist, and writes it.
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
fn close_reports_data_lost_by_a_killed_agent() {
    let (mut store, session) = store_with_old_file();
    for index in [1, 0] {
        let file = write_new(&session, &format!("dir/new{index}"));
        kill(&mut store, index);
        restart_agent(&mut store, index, &ACCEPTING);
        assert!(is_lost(file.close()), "agent {index}");
    }
    let file = write_new(&session, "dir/kept");
    file.flush().expect("it is on the disks");
    kill(&mut store, 1);
    restart_agent(&mut store, 1, &ACCEPTING);
    file.close().expect("nothing of it is lost");
}

#[test]
fn a_closed_file_with_lost_data_replaces_no_other_file() {
    let (mut store, session) = store_with_old_file();
    write_new(&session, "dir/new").close().expect("accepted");
    kill(&mut store, 1);
    restart_agent(&mut store, 1, &ACCEPTING);
    let tree = session.tree();
    let at = |path: &str| namespace::Location::of_path(path);
    let (from, to) = (at("dir/new"), at("dir/old"));
    let rename = namespace::TreeOperation::Rename { from, to, mode: namespace::RenameMode::Replace };
    assert!(is_lost(tree.unname("dir/old", rename).wait()));
    assert_eq!(store.run(&["cat", "dir/old"]), "old");
}
