//! `starfish fsck` and `starfish doctor` with a namespace. Each kind of damage is found and repaired.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use crate::common::{Agent, Store, contents, fail, finish, hash, wait};
use rusqlite::Connection;
use serde_json::Value;

/// Number of bytes of a file that has data on each disk.
const BYTES: usize = 600_000;

fn store(agents: usize) -> Store {
    let store = Store::start(&vec![1; agents]);
    store.make_file("local", BYTES);
    store.run(&["mkdir", "-p", "d/e"]);
    store.run(&["put", "local", "d/file"]);
    store.run(&["put", "local", "d/e/other"]);
    store
}

/// Runs `fsck`, which must end with this exit code, and returns its JSON report.
fn fsck(store: &Store, arguments: &[&str], code: i32) -> Value {
    let output = finish(store.command(&[&["fsck", "--format", "json"], arguments].concat()));
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{errors}{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"))
}

/// Returns the distinct pairs of file and kind in the findings.
fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let rows = report["findings"].as_array().expect("an array").iter();
    let mut found: Vec<_> = rows.map(|row| (text(&row["file"]), text(&row["kind"]))).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the index of the metadata agent and the path of the namespace's database.
fn database(store: &Store) -> (usize, PathBuf) {
    let path = |agent: &Agent| agent.roots[0].join("namespace/namespace.db");
    let metadata_agent =
        store.agents.iter().position(|agent| path(agent).exists()).expect("one agent is the metadata server");
    (metadata_agent, path(&store.agents[metadata_agent]))
}

fn stop(store: &mut Store, index: usize) {
    store.agents[index].signal("TERM");
    assert!(wait(&mut store.agents[index].child).success());
}

fn start(store: &mut Store, index: usize, roots: Vec<PathBuf>) {
    let address = store.agents[index].address.clone();
    store.agents[index] = Agent::start_at(&address, roots, &[]);
}

/// Calls `work`, and then restores the names to their earlier state, as from a backup.
fn restore_names_after<T>(store: &mut Store, work: impl FnOnce(&mut Store) -> T) -> T {
    let (metadata_agent, database) = database(store);
    let roots = store.agents[metadata_agent].roots.clone();
    stop(store, metadata_agent);
    let names = fs::read(&database).expect("a database");
    start(store, metadata_agent, roots.clone());
    let done = work(store);
    stop(store, metadata_agent);
    fs::write(&database, names).expect("room");
    start(store, metadata_agent, roots);
    done
}

/// Stops the metadata agent, changes the database of the namespace, and restarts the agent.
fn change(store: &mut Store, change: impl FnOnce(&Connection)) {
    let (metadata_agent, path) = database(store);
    stop(store, metadata_agent);
    let database = Connection::open(path).expect("a database");
    change(&database);
    database.close().expect("closed");
    let roots = store.agents[metadata_agent].roots.clone();
    start(store, metadata_agent, roots);
}

fn remove(database: &Connection, space: u8, number: u64, rest: &[u8]) {
    let key = [&[space][..], &number.to_be_bytes(), rest].concat();
    let removed = database.execute("DELETE FROM entries WHERE key = ?1", [key]).expect("a table");
    assert_eq!(removed, 1);
}

#[test]
fn unnamed_stripes_are_found_and_named_or_removed() {
    for removes in [false, true] {
        let mut store = store(3);
        let file = store.number("d/file");
        change(&mut store, |database| remove(database, b'i', file, b""));
        let unnamed = format!("number {file:016x}");
        let report = fsck(&store, &[], 1);
        let kinds = findings(&report);
        assert!(kinds.contains(&(unnamed.clone(), "unnamed".into())), "{kinds:?}");
        assert!(kinds.contains(&("namespace".into(), "record".into())), "{kinds:?}");
        let options: &[&str] = if removes { &["--repair", "--remove-unnamed"] } else { &["--repair"] };
        let report = fsck(&store, options, 0);
        assert_eq!(findings(&report), [], "it is repaired");
        assert!(report["mended"].as_array().is_some_and(|mended| mended.len() >= 2), "{report}");
        fsck(&store, &[], 0);
        assert_eq!(store.run(&["ls", "d"]), "e/\n", "the dangling name is removed");
        if removes {
            assert_eq!(store.run(&["ls"]), "d/\n");
            assert_eq!(store.stripe_files().len(), 3, "only the stripes of the other file");
        } else {
            let found = crate::common::succeed(store.command(&["cat", &format!("lost+found/{file:016x}")]));
            assert_eq!(found, contents(BYTES));
        }
    }
}

#[test]
fn a_directory_that_lost_its_name_gets_one() {
    let mut store = store(2);
    let (directory, lost) = (store.number("d"), store.number("d/e"));
    change(&mut store, |database| remove(database, b'e', directory, b"e"));
    assert_eq!(findings(&fsck(&store, &[], 1)), [("namespace".into(), "record".into())]);
    fsck(&store, &["--repair"], 0);
    let path = format!("lost+found/{lost:016x}/other");
    let read = crate::common::succeed(store.command(&["cat", &path]));
    assert_eq!(read, contents(BYTES));
    fsck(&store, &[], 0);
}

#[test]
fn damage_is_reported_by_path_and_holes_are_not_damage() {
    let mut store = store(2);
    let stripe = store.stripe_files().remove(0);
    let file = fs::File::options().write(true).open(&stripe).expect("a stripe");
    file.write_all_at(b"damage", 100_000).expect("room");
    let report = fsck(&store, &[], 1);
    let found = findings(&report);
    assert!(
        found == [("/d/file".into(), "damaged".into())] || found == [("/d/e/other".into(), "damaged".into())],
        "{found:?}"
    );
    let damaged = &found[0].0;
    let whole = if damaged == "/d/file" { "d/e" } else { "d/file" };
    fsck(&store, &[whole], 0);
    assert_eq!(findings(&fsck(&store, &["d"], 1)).len(), 1, "within the directory");
    // The agents' caches still contain the original data, so restart the agents.
    for index in 0..2 {
        stop(&mut store, index);
        let roots = store.agents[index].roots.clone();
        start(&mut store, index, roots);
    }
    let got = finish(store.command(&["get", damaged, "rest", "--skip-damaged"]));
    assert_eq!(got.status.code(), Some(1));
    let rest = fs::read(store.path("rest")).expect("it was copied");
    let wrong = rest.iter().zip(contents(BYTES)).filter(|(read, written)| **read != *written).count();
    assert!(rest.len() == BYTES && (1..=4096).contains(&wrong), "{wrong} of {}", rest.len());
    store.run(&["rm", damaged]);
    let report = fsck(&store, &[], 0);
    // Soon after its restart, the metadata server cannot exclude that a client still has the file open.
    assert_eq!((&report["removed"], &report["files"]), (&Value::from(1), &Value::from(1)));
    // The file has all its data on one disk, so no stripe on the other disk is missing.
    store.run(&["put", "local", "d/small", "--block", "1MiB"]);
    fsck(&store, &["d/small"], 0);
}

#[test]
fn files_on_a_missing_disk_are_reported() {
    let mut store = store(3);
    let (metadata_agent, _) = database(&store);
    let other = (metadata_agent + 1) % 3;
    stop(&mut store, other);
    let empty = store.path("empty");
    start(&mut store, other, vec![empty]);
    let report = fsck(&store, &[], 1);
    let missing = |path: &str| (path.to_owned(), "missing".to_owned());
    assert_eq!(findings(&report), [missing("/d/e/other"), missing("/d/file")]);
    // Nothing can be repaired, and trying it does no harm.
    fsck(&store, &["--repair"], 1);
    let roots = vec![store.path(&format!("agent{other}disk0"))];
    stop(&mut store, other);
    start(&mut store, other, roots);
    fsck(&store, &[], 0);
    let read = crate::common::succeed(store.command(&["cat", "d/file"]));
    assert_eq!(read, contents(BYTES));
}

/// Returns the names of the files that can be read. For each of the others, reading fails for the reason `why_not` and
/// prints no data.
fn readable(store: &Store, names: &[String], why_not: &str) -> Vec<String> {
    let is_readable = |name: &&String| {
        let output = finish(store.command(&["cat", name]));
        let errors = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => assert_eq!(output.stdout, name.as_bytes()),
            false => assert!(output.stdout.is_empty() && errors.contains(why_not), "{name}: {errors}"),
        }
        output.status.success()
    };
    names.iter().filter(is_readable).cloned().collect()
}

/// If agents of two sets are named together, no file is created on or removed from a disk of another set.
#[test]
fn agents_of_two_sets_are_not_mixed() {
    let (one, mut other) = (store(2), store(1));
    let (metadata_agent, _) = database(&one);
    let stranger = &one.agents[1 - metadata_agent];
    other.agents.push(Agent::start_at("127.0.0.1:0", vec![other.path("another")], &[]));
    let mixed = format!("{},{}", other.agents[0].address, stranger.address);
    for command in [
        &["put", "local", "d/new"][..],
        &["fsck"],
        &["fsck", "--repair", "--remove-unnamed"],
        &["fsck", "--repair"],
    ] {
        let stderr = fail(other.command(&[command, &["--agents", &mixed]].concat()), 1);
        assert!(
            stderr.contains(&stranger.address) && stderr.contains("another namespace"),
            "{command:?}: {stderr}"
        );
    }
    assert_eq!(findings(&fsck(&one, &[], 0)), []);
    one.run(&["get", "d/file", "back"]);
    assert_eq!(fs::read(one.path("back")).expect("it was copied"), fs::read(one.path("local")).expect("put"));
    assert!(fail(other.command(&["fsck", "--take-disks"]), 2).contains("--repair"));
    // An agent that belongs to no set can be added as usual.
    let wider = format!("{},{}", other.agents[0].address, other.agents[1].address);
    other.run(&["put", "local", "d/wider", "--agents", &wider]);
    other.run(&["fsck", "--agents", &wider]);
    // If one of the two namespaces is given up, the other one can take its disks.
    let taken = finish(other.command(&["fsck", "--repair", "--take-disks", "--agents", &mixed]));
    assert_eq!(taken.status.code(), Some(1), "stripes on the absent disk of that set are missing");
    let named = other.run(&["ls", "lost+found", "--agents", &mixed]);
    assert_eq!(named.lines().count(), 2, "{named}");
    other.run(&["put", "local", "d/new", "--agents", &mixed]);
}

/// The doctor reports a missing disk while `fsck` finds files that have stripes on it.
#[test]
fn a_missing_disk_is_a_problem_while_files_are_on_it() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("local", BYTES);
    store.run(&["mkdir", "d"]);
    store.run(&["put", "local", "d/file"]);
    let (metadata_agent, _) = database(&store);
    let other = 1 - metadata_agent;
    stop(&mut store, other);
    let empty = store.path("new disk");
    start(&mut store, other, vec![empty]);
    let text = fail(store.command(&["doctor", "--quick"]), 1);
    assert!(text.contains("1 problem found"), "{text}");
    assert!(!findings(&fsck(&store, &[], 1)).is_empty());
    store.run(&["rm", "d/file"]);
    let text = store.run(&["doctor", "--quick"]);
    assert!(text.contains("No problems found") && !text.contains("that no agent has"), "{text}");
    assert_eq!(findings(&fsck(&store, &[], 0)), []);
}

/// A file whose blocks are too large for the agents is rejected before it gets a name. If such a file already exists,
/// because the agents accepted larger blocks when it was uploaded, it is listed, reported, and can be removed.
#[test]
fn files_with_too_large_blocks_are_rejected_but_can_be_removed() {
    let mut store = Store::start(&[1]);
    store.make_file("local", BYTES);
    store.run(&["mkdir", "m"]);
    let refused = fail(store.command(&["put", "local", "m/x", "--block", "4MiB"]), 1);
    for part in
        ["m/x", "blocks of 4194304 bytes are too large", "at most 1048576", "--block SIZE", "--block-max"]
    {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!refused.contains(".starfish-"), "{refused}");
    assert_eq!(store.run(&["ls", "m"]), "");
    let restart = |store: &mut Store, options: &[&str]| {
        stop(store, 0);
        let (address, roots) = (store.agents[0].address.clone(), store.agents[0].roots.clone());
        store.agents[0] = Agent::start_at(&address, roots, options);
    };
    restart(&mut store, &["--block-max", "4MiB"]);
    store.run(&["put", "local", "m/x", "--block", "4MiB"]);
    let known = store.run(&["stat", "m/x"]);
    restart(&mut store, &[]);
    assert_eq!(store.run(&["ls", "m"]), "x\n");
    assert_eq!(store.run(&["stat", "m/x"]), known);
    let refused = fail(store.command(&["get", "m/x", "got"]), 1);
    assert!(refused.contains("m/x: blocks of 4194304 bytes") && refused.contains("--block-max"), "{refused}");
    store.run(&["rm", "m/x"]);
    assert_eq!(store.run(&["ls", "m"]), "");
    assert_eq!(findings(&fsck(&store, &[], 0)), []);
}

/// Starts three agents with a dozen small files, whose contents are their names. Then stops one agent, which is not the
/// metadata agent. Returns the agents, the names, and the index of the stopped agent.
fn store_without_an_agent() -> (Store, Vec<String>, usize) {
    let mut store = store(3);
    let names: Vec<String> = (0..12).map(|file| format!("d/small {file}")).collect();
    for name in &names {
        fs::write(store.path("small"), name).expect("room");
        store.run(&["put", "small", name]);
    }
    let (metadata_agent, _) = database(&store);
    let other = (metadata_agent + 1) % 3;
    stop(&mut store, other);
    (store, names, other)
}

#[test]
fn files_on_other_disks_are_readable_without_an_agent_or_its_disk() {
    let (mut store, names, other) = store_without_an_agent();
    let found = readable(&store, &names, "is not on the agents that answer");
    assert!((1..names.len()).contains(&found.len()), "{found:?}");
    assert!(store.run(&["stat", "d/file"]).contains("  ?  "));
    let failed = fail(store.command(&["get", "-r", "d", "got"]), 1);
    assert!(
        failed.contains(&store.agents[other].address) && failed.contains(" failed, see above"),
        "{failed}"
    );
    for name in &found {
        let got =
            fs::read(store.path("got").join(name.strip_prefix("d/").expect("in it"))).expect("it was copied");
        assert_eq!(got, name.as_bytes());
    }
    let saved = finish(store.command(&["get", "d/file", "rest", "--skip-damaged"]));
    assert_eq!(saved.status.code(), Some(1), "{}", String::from_utf8_lossy(&saved.stderr));
    assert_eq!(fs::read(store.path("rest")).expect("it was copied").len(), BYTES);
    // The agent restarts with an empty disk; the same files cannot be read.
    let new = store.path("new disk");
    start(&mut store, other, vec![new.clone()]);
    assert_eq!(readable(&store, &names, "has disk"), found);
    let output = finish(store.command(&["doctor", "--quick"]));
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("that no agent has") && text.contains("starfish fsck"), "{text}");
    // If the new disk has the identity of the lost one, the message is different.
    stop(&mut store, other);
    let identity = store.path(&format!("agent{other}disk0")).join(".starfish.disk");
    fs::copy(identity, new.join(".starfish.disk")).expect("an identity");
    start(&mut store, other, vec![new]);
    assert_eq!(readable(&store, &names, "is missing"), found);
    assert_eq!(findings(&fsck(&store, &[], 1)).len(), names.len() - found.len() + 2);
}

#[test]
fn the_readable_part_of_a_directory_is_copied_if_a_disk_is_lost() {
    let (mut store, names, other) = store_without_an_agent();
    let whole = readable(&store, &names, "is not on the agents that answer");
    let size = |path: &str| fs::metadata(store.path(path)).expect("it was copied").len();
    for (arguments, directory) in [(&["-r", "d", "rest"][..], "rest"), (&["-r", "d/*", "new/"], "new")] {
        fs::create_dir_all(store.path("new")).expect("room");
        let output = finish(store.command(&[&["get", "--skip-damaged"], arguments].concat()));
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{text}");
        let at = |name: &str| name.replacen('d', directory, 1);
        for name in &whole {
            assert_eq!(fs::read(store.path(&at(name))).expect("it was copied"), name.as_bytes());
            assert!(!text.contains(&format!("{name}: ")), "{text}");
        }
        for name in names.iter().filter(|name| !whole.contains(name)) {
            assert_eq!(fs::read(store.path(&at(name))).expect("it was copied"), vec![0; name.len()]);
            let bytes = name.len();
            assert!(text.contains(&format!("{name}: {bytes} of {bytes} bytes could not be read")), "{text}");
        }
        for name in ["d/file", "d/e/other"] {
            let rest = fs::read(store.path(&at(name))).expect("it was copied");
            let lost = rest.iter().zip(contents(BYTES)).filter(|(read, written)| **read != *written).count();
            assert!(rest.len() == BYTES && (1..BYTES / 2).contains(&lost), "{lost} of {}", rest.len());
            let line =
                text.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).expect("an error");
            assert!(line.contains(&format!("of {BYTES} bytes could not be read")), "{line}");
            let stored = fs::metadata(store.path(&at(name))).expect("it was copied").blocks() * 512;
            assert!(stored < BYTES as u64, "lost ranges occupy no space: {stored}");
        }
        let damaged = names.len() - whole.len() + 2;
        assert!(text.contains(&format!("{damaged} files are incomplete")), "{text}");
        assert!(text.contains(&store.agents[other].address), "{text}");
    }
    assert_eq!(size("rest/file"), BYTES as u64);
    // When the disk is back, a resumed `get` skips complete files and replaces damaged copies.
    let roots = store.agents[other].roots.clone();
    start(&mut store, other, roots);
    let output = finish(store.command(&["get", "-r", "d", "rest", "--resume", "--skip-damaged"]));
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains(&format!("{} of its files skipped, because they already exist", whole.len())),
        "{text}"
    );
    assert_eq!(fs::read(store.path("rest/file")).expect("it was copied"), contents(BYTES));
}

#[test]
fn a_file_with_several_names_is_reported_with_their_number() {
    let mut store = store(2);
    fs::create_dir(store.path("links")).expect("room");
    fs::write(store.path("links/one"), contents(BYTES)).expect("room");
    for other in ["links/two", "links/three"] {
        fs::hard_link(store.path("links/one"), store.path(other)).expect("a name");
    }
    store.run(&["put", "-r", "links"]);
    let (metadata_agent, _) = database(&store);
    stop(&mut store, 1 - metadata_agent);
    let new = store.path("new disk");
    start(&mut store, 1 - metadata_agent, vec![new]);
    let report = fsck(&store, &[], 1);
    let rows = report["findings"].as_array().expect("an array");
    assert_eq!(rows.len(), 3, "{report}");
    for row in rows {
        let is_of_links = row["file"].as_str().expect("text").contains("links/");
        let text = row["text"].as_str().expect("text");
        assert_eq!(text.ends_with("; the file has 2 other names, too"), is_of_links, "{row}");
    }
}

/// The other stripes of a file are checked even if one stripe has no valid header.
#[test]
fn a_stripe_without_a_header_does_not_stop_the_check() {
    let mut store = store(2);
    let stripe = store.stripe_files().remove(0);
    for index in 0..2 {
        stop(&mut store, index);
    }
    fs::File::create(&stripe).expect("a stripe file");
    for index in 0..2 {
        let roots = store.agents[index].roots.clone();
        start(&mut store, index, roots);
    }
    let found = findings(&fsck(&store, &[], 1));
    assert!(found.iter().any(|(_, kind)| kind == "missing"), "{found:?}");
    let damaged = found[0].0.clone();
    assert!(found.iter().all(|(file, _)| *file == damaged), "{found:?}");
    fsck(&store, &["--repair"], 1);
    store.run(&["rm", &damaged]);
    fsck(&store, &[], 0);
}

#[test]
fn stripes_of_a_replaced_disk_are_missing_and_not_read_as_zeros() {
    let mut store = store(3);
    let (metadata_agent, _) = database(&store);
    let other = (metadata_agent + 1) % 3;
    stop(&mut store, other);
    let (old, new) = (store.agents[other].roots[0].clone(), store.path("new disk"));
    fs::create_dir(&new).expect("a directory");
    fs::copy(old.join(".starfish.disk"), new.join(".starfish.disk")).expect("an identity");
    start(&mut store, other, vec![new]);
    let missing = |path: &str| (path.to_owned(), "missing".to_owned());
    assert_eq!(findings(&fsck(&store, &[], 1)), [missing("/d/e/other"), missing("/d/file")]);
    for reads in [&["cat", "d/file"][..], &["get", "d/file", "got"]] {
        let errors = fail(store.command(reads), 1);
        assert!(errors.contains("of 3 is missing"), "{errors}");
    }
    let saved = finish(store.command(&["get", "d/file", "rest", "--skip-damaged"]));
    assert_eq!(saved.status.code(), Some(1));
    let rest = fs::read(store.path("rest")).expect("it was copied");
    let kept = rest.iter().zip(contents(BYTES)).filter(|(read, written)| **read == *written).count();
    assert!(rest.len() == BYTES && (BYTES / 3..BYTES).contains(&kept), "{kept} of {}", rest.len());
    // A new file replaces one damaged file, and the other one is removed.
    store.run(&["put", "local", "d/file", "--replace"]);
    assert_eq!(crate::common::succeed(store.command(&["cat", "d/file"])), contents(BYTES));
    store.run(&["rm", "d/e/other"]);
    fsck(&store, &[], 0);
}

#[test]
fn a_resumed_put_replaces_files_with_lost_stripes() {
    let mut store = store(2);
    fs::create_dir(store.path("tree")).expect("room");
    fs::copy(store.path("local"), store.path("tree/large")).expect("room");
    fs::write(store.path("tree/empty"), b"").expect("room");
    let put = |store: &Store, arguments: &[&str]| {
        let output = finish(store.command(&[&["put", "--resume"], arguments].concat()));
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{stderr}");
        stderr
    };
    put(&store, &["-r", "tree", "d/"]);
    let (metadata_agent, _) = database(&store);
    let other = 1 - metadata_agent;
    stop(&mut store, other);
    let (old, new) = (store.agents[other].roots[0].clone(), store.path("new disk"));
    fs::create_dir(&new).expect("a directory");
    fs::copy(old.join(".starfish.disk"), new.join(".starfish.disk")).expect("an identity");
    start(&mut store, other, vec![new]);
    for (arguments, first, again) in [
        (&["local", "d/file"][..], "", "skipped, because it already exists"),
        (
            &["-r", "tree", "d/"],
            "1 of its files skipped, because they already exist",
            "2 of its files skipped, because they already exist",
        ),
    ] {
        assert!(
            put(&store, arguments).contains(first) && put(&store, arguments).contains(again),
            "{arguments:?}"
        );
    }
    for path in ["d/file", "d/tree/large"] {
        assert_eq!(crate::common::succeed(store.command(&["cat", path])), contents(BYTES), "{path}");
    }
}

#[test]
fn the_doctor_reports_the_metadata_agent_and_a_second_namespace() {
    let mut store = Store::start(&[1, 1]);
    let text = store.run(&["doctor", "--quick"]);
    let nothing = "These agents have no files yet.";
    assert!(text.contains(nothing) && text.contains("No problems found."), "{text}");
    store.run(&["mkdir", "d"]);
    let report = finish(store.command(&["doctor", "--quick", "--format", "json"]));
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let (metadata_agent, _) = database(&store);
    assert_eq!(report["namespace"]["agent"], Value::from(store.agents[metadata_agent].address.as_str()));
    assert_eq!(report["namespace"]["inodes"], Value::from(2));
    // The user explicitly creates a second namespace.
    let other = store.agents[1 - metadata_agent].address.as_str();
    store.run(&["fsck", "--repair", "--new-namespace", "--agents", other]);
    store.run(&["mkdir", "d", "--agents", other]);
    for command in [&["doctor", "--quick"][..], &["ls"], &["fsck"], &["put", "x"]] {
        fs::write(store.path("x"), b"x").expect("room");
        let output = finish(store.command(command));
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("each keep a namespace") && text.contains(other), "{text}");
        let kept = |agent: &str| format!("agent {agent} keeps one with 2 inodes");
        assert!(
            text.contains(&kept(other)) && text.contains(&kept(&store.agents[metadata_agent].address)),
            "{text}"
        );
    }
    // Follows the advice of the message.
    stop(&mut store, 1 - metadata_agent);
    let root = store.agents[1 - metadata_agent].roots[0].clone();
    fs::rename(root.join("namespace"), root.join("namespace.away")).expect("it exists");
    start(&mut store, 1 - metadata_agent, vec![root]);
    assert_eq!(store.run(&["ls"]), "d/\n");
}

#[test]
fn commands_to_some_agents_of_a_set_create_no_second_namespace() {
    let mut store = store(2);
    let (metadata_agent, _) = database(&store);
    let other = store.agents[1 - metadata_agent].address.clone();
    let commands = [&["mkdir", "mine"][..], &["put", "local"], &["ls"], &["fsck"], &["doctor", "--quick"]];
    for command in commands {
        let output = finish(store.command(&[command, &["--agents", &other]].concat()));
        let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains(&format!("agent {other} has disks of a namespace"))
                && text.contains("with stripes of 2"),
            "{text}"
        );
        assert!(text.contains("Name all agents of the set"), "{text}");
    }
    fsck(&store, &[], 0);
    // No agent begins a namespace while the disk with the existing one is missing.
    let roots = store.agents[metadata_agent].roots.clone();
    stop(&mut store, metadata_agent);
    let empty = store.path("empty");
    start(&mut store, metadata_agent, vec![empty]);
    let text = store.run_failing(&["mkdir", "mine"]);
    assert!(text.contains("start it with all its disks"), "{text}");
    stop(&mut store, metadata_agent);
    start(&mut store, metadata_agent, roots);
    assert_eq!(store.run(&["ls"]), "d/\n");
    fsck(&store, &[], 0);
}

#[test]
fn a_lost_namespace_is_recreated_only_with_new_namespace() {
    let mut store = store(2);
    let there = fail(store.command(&["fsck", "--repair", "--new-namespace"]), 1);
    assert!(there.contains("a namespace exists"), "{there}");
    let number = store.number("d/file");
    let (metadata_agent, database) = database(&store);
    stop(&mut store, metadata_agent);
    fs::remove_dir_all(database.parent().expect("a directory")).expect("it exists");
    let roots = store.agents[metadata_agent].roots.clone();
    start(&mut store, metadata_agent, roots);
    let lost = fail(store.command(&["fsck", "--repair"]), 1);
    assert!(lost.contains("--new-namespace"), "{lost}");
    fsck(&store, &["--repair", "--new-namespace"], 0);
    let read = crate::common::succeed(store.command(&["cat", &format!("lost+found/{number:016x}")]));
    assert_eq!(read, contents(BYTES));
    store.run(&["mkdir", "new"]);
    store.run(&["put", "local", "new/file"]);
    fsck(&store, &[], 0);
}

#[test]
fn an_agent_finds_the_namespace_on_any_of_its_disks() {
    let mut store = Store::start(&[2]);
    store.make_file("local", BYTES);
    store.run(&["mkdir", "d"]);
    store.run(&["put", "local", "d/file"]);
    let mut roots = store.agents[0].roots.clone();
    stop(&mut store, 0);
    roots.reverse();
    start(&mut store, 0, roots.clone());
    assert_eq!(store.run(&["ls", "-R"]), "d/\nd/file\n");
    store.run(&["put", "local", "d/other"]);
    fsck(&store, &[], 0);
    stop(&mut store, 0);
    let [one, other] = [&roots[0], &roots[1]].map(|root| root.join("namespace"));
    fs::create_dir(&one).expect("none is there");
    fs::copy(other.join("namespace.db"), one.join("namespace.db")).expect("a database");
    let mut command = crate::common::starfish(["agent", "--listen", "127.0.0.1:0", "--root"]);
    command.args(&roots);
    let two = fail(command, 1);
    assert!(
        two.contains(&format!("and {} is another", other.display())) && two.contains("Rename the directory"),
        "{two}"
    );
}

/// Uploads files of different sizes to all disks. Some of the files end within a block, and some at the end of a block.
/// Returns their numbers and contents.
fn files_of_all_sizes(store: &Store) -> Vec<(u64, Vec<u8>)> {
    let sizes = [1, 262_144, 300_000, 524_288, 600_000, 786_432, 2_000_000, 2_097_152];
    let mut files = Vec::new();
    for (index, bytes) in sizes.into_iter().cycle().take(3 * sizes.len()).enumerate() {
        let path = format!("d/file {index}");
        fs::write(store.path("of size"), contents(bytes)).expect("room");
        store.run(&["put", "of size", &path]);
        files.push((store.number(&path), contents(bytes)));
    }
    files
}

/// Checks each recovered file: it is intact, or reading it fails and `--skip-damaged` returns its readable blocks.
/// Returns the number of intact files.
fn check_recovered_files(store: &Store, files: &[(u64, Vec<u8>)]) -> usize {
    let listed = store.run(&["ls", "lost+found"]);
    let mut whole = 0;
    for (number, contents) in files.iter().filter(|(number, _)| listed.contains(&format!("{number:016x}"))) {
        let path = format!("lost+found/{number:016x}");
        let got = finish(store.command(&["get", &path, "got"]));
        let errors = String::from_utf8_lossy(&got.stderr);
        if got.status.success() {
            assert!(fs::read(store.path("got")).expect("it was copied") == *contents, "{path}");
            fs::remove_file(store.path("got")).expect("it exists");
            whole += 1;
            continue;
        }
        assert!(got.status.code() == Some(1) && errors.contains("is missing"), "{errors}");
        assert!(errors.contains("--skip-damaged"), "{errors}");
        let saved = finish(store.command(&["get", &path, "rest", "--skip-damaged"]));
        assert_eq!(saved.status.code(), Some(1), "{path}");
        let rest = fs::read(store.path("rest")).expect("it was copied");
        fs::remove_file(store.path("rest")).expect("it exists");
        for (index, block) in rest.chunks(262_144).enumerate() {
            let is_kept = contents[index * 262_144..].starts_with(block);
            assert!(is_kept || block.iter().all(|byte| *byte == 0), "{path}: block {index}");
        }
    }
    whole
}

#[test]
fn data_lost_with_the_metadata_disk_are_missing_and_not_holes() {
    let mut store = Store::start(&[1, 1, 2]);
    store.run(&["mkdir", "d"]);
    let files = files_of_all_sizes(&store);
    let (metadata_agent, _) = database(&store);
    let mut roots = store.agents[metadata_agent].roots.clone();
    roots[0] = store.path("new disk");
    stop(&mut store, metadata_agent);
    start(&mut store, metadata_agent, roots);
    let repaired = fsck(&store, &["--repair", "--new-namespace"], 1);
    let found = findings(&repaired);
    assert!(!found.is_empty() && found.iter().all(|(_, kind)| kind == "missing"), "{found:?}");
    assert_eq!(findings(&fsck(&store, &[], 1)), found, "the finding persists");
    let whole = check_recovered_files(&store, &files);
    assert!((3..files.len()).contains(&whole), "{whole}");
    let lost = &found[0].0;
    assert_eq!(findings(&fsck(&store, &[lost], 1)), [found[0].clone()]);
    let output = finish(store.command(&["doctor", "--quick"]));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        output.status.code() == Some(1) && text.contains("one that was lost with the namespace"),
        "{text}"
    );
    // No file needs an unknown disk any more.
    store.run(&["rm", "-r", "lost+found"]);
    assert_eq!(fsck(&store, &[], 0)["inodes"], Value::from(1));
}

#[test]
fn files_are_recovered_from_the_remaining_disks() {
    let mut store = Store::start(&[2, 2]);
    store.run(&["mkdir", "d"]);
    let files = files_of_all_sizes(&store);
    let (metadata_agent, _) = database(&store);
    let roots = store.agents[metadata_agent].roots[1..].to_vec();
    stop(&mut store, metadata_agent);
    start(&mut store, metadata_agent, roots);
    let repaired = fsck(&store, &["--repair", "--new-namespace"], 1);
    assert_eq!(repaired["failures"], Value::Array(Vec::new()));
    assert!(findings(&repaired).iter().all(|(_, kind)| kind == "missing"), "{repaired}");
    let whole = check_recovered_files(&store, &files);
    assert!((3..files.len()).contains(&whole), "{whole}");
    let listed = store.run(&["ls", "lost+found"]).lines().count();
    assert!((files.len() - 3..=files.len()).contains(&listed), "{listed} of {}", files.len());
}

#[test]
fn files_removed_without_an_agent_are_deleted_when_it_returns() {
    let mut store = store(3);
    let (metadata_agent, _) = database(&store);
    let (away, roots) =
        ((metadata_agent + 1) % 3, |store: &Store, index: usize| store.agents[index].roots.clone());
    let there = roots(&store, away);
    stop(&mut store, away);
    store.run(&["rm", "d/file"]);
    start(&mut store, away, there.clone());
    assert_eq!(store.stripe_files().len(), 3 + 1);
    assert_eq!(findings(&fsck(&store, &[], 0)), []);
    fsck(&store, &["--repair"], 0);
    assert_eq!(store.stripe_files().len(), 3, "only the stripes of the other file");
    // The agent that was down still has stripes of a removed file.
    let other = store.number("d/e/other");
    stop(&mut store, away);
    store.run(&["rm", "d/e/other"]);
    change(&mut store, |database| {
        remove(database, b'i', other, b"");
        remove(database, b'o', other, b"");
    });
    start(&mut store, away, there);
    let unnamed = format!("number {other:016x}");
    assert_eq!(findings(&fsck(&store, &[], 1)), [(unnamed, "unnamed".into())]);
    let report = fsck(&store, &["--repair"], 0);
    assert!(
        report["mended"].to_string().contains("it was removed while an agent was disconnected"),
        "{report}"
    );
    assert_eq!(store.stripe_files().len(), 0);
    assert_eq!(store.run(&["ls", "d"]), "e/\n");
}

#[test]
fn a_file_that_its_agents_reject_is_a_finding() {
    let mut store = store(2);
    let file = store.number("d/file");
    restore_names_after(&mut store, |store| {
        change(store, |database| remove(database, b'i', file, b""));
        fsck(store, &["--repair", "--remove-unnamed"], 0);
    });
    let refused = fail(store.command(&["get", "d/file", "got"]), 1);
    assert!(refused.contains("has been removed") || refused.contains("is missing"), "{refused}");
    for names in [&["d/file"][..], &["d"], &[]] {
        let found = findings(&fsck(&store, names, 1));
        assert!(!found.is_empty() && found.iter().all(|(file, _)| file.ends_with("d/file")), "{found:?}");
    }
    fsck(&store, &["d/e"], 0);
}

#[test]
fn fsck_with_some_agents_of_a_set_suggests_naming_all() {
    let store = store(2);
    let (metadata_agent, _) = database(&store);
    let agent = store.agents[metadata_agent].address.as_str();
    for names in [&["fsck"][..], &["fsck", "d/file"]] {
        let stderr = fail(store.command(&[names, &["--agents", agent]].concat()), 1);
        let at = |part: &str| stderr.find(part).unwrap_or_else(|| panic!("{part}: {stderr}"));
        assert!(at("First name all agents") < at("starfish rm"), "{stderr}");
        assert_eq!(stderr.matches("name all agents").count(), 1, "{stderr}");
    }
}

/// After a restore, files created since the backup have no names. Their contents are kept until they get new names.
#[test]
fn after_a_restore_of_names_newer_files_keep_their_contents() {
    let mut store = store(2);
    let since = restore_names_after(&mut store, |store| {
        let since = store.make_file("since", 700_000);
        store.run(&["put", "since", "d/since"]);
        since
    });
    let new = store.make_file("new", 300_000);
    store.run(&["put", "new", "d/new"]);
    fsck(&store, &["--repair"], 0);
    let found = store.run(&["ls", "lost+found"]);
    store.run(&["get", &format!("lost+found/{}", found.trim()), "found"]);
    store.run(&["get", "d/new", "back"]);
    assert_eq!((hash(&store.path("found")), hash(&store.path("back"))), (since, new));
}

#[test]
fn a_damaged_namespace_is_reported_with_its_remedies() {
    let mut store = store(2);
    let (metadata_agent, database) = database(&store);
    let roots = store.agents[metadata_agent].roots.clone();
    stop(&mut store, metadata_agent);
    let file = fs::File::options().write(true).open(&database).expect("a database");
    let bytes = file.metadata().expect("a database").len();
    file.write_all_at(&vec![0xa5; bytes as usize - 4096], 4096).expect("room");
    start(&mut store, metadata_agent, roots);
    for command in [&["ls", "-l"][..], &["get", "d/file", "got"], &["fsck"]] {
        let stderr = fail(store.command(command), 1);
        assert!(stderr.contains("--copy-namespace") && stderr.contains("--new-namespace"), "{stderr}");
        assert!(!stderr.contains("starfish rm"), "{stderr}");
    }
}
