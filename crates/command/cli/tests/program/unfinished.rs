//! Unfinished files, which are hidden, replaced and removed, even if any process is killed.

use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Agent, Store, finish, wait};
use crate::killing::{contents, draw, kill_after, rounds};
use crate::mount_point::within;

const KIB: usize = 1024;

/// Starts a `put` that takes a second. Returns when the new file has a name and some data.
fn begin_put(store: &Store, arguments: &[&str]) -> Child {
    let hidden = || store.run(&["ls", "-a"]).matches(".starfish-").count();
    let (before, stripes_before) = (hidden(), store.stripe_files());
    let put = store.command(arguments).spawn().expect("the program");
    // A stripe alone may belong to an earlier `put`: agents still write data that a killed program has sent.
    within(Duration::from_secs(60), "it begins a file", || {
        let has_data = |path: &_| fs::metadata(path).is_ok_and(|stripe| stripe.len() > 0);
        let is_new = |path: &_| !stripes_before.contains(path) && has_data(path);
        store.stripe_files().iter().any(is_new) && hidden() > before
    });
    put
}

/// Returns the contents of a file, or the error message.
fn get(store: &Store, name: &str) -> Result<Vec<u8>, String> {
    let output = finish(store.command(&["get", name, "back", "--force"]));
    match output.status.success() {
        true => Ok(fs::read(store.path("back")).expect("it was copied")),
        false => Err(String::from_utf8(output.stderr).expect("text")),
    }
}

/// Removes unfinished files when the agents know that these are closed, and returns the output.
fn collect(store: &Store) -> String {
    let mut removed = String::new();
    within(Duration::from_secs(60), "nothing hidden is left", || {
        removed += &store.run(&["rm", "--unfinished", "--older-than", "0s"]);
        !store.run(&["ls", "-aR"]).contains(".starfish-")
    });
    removed
}

#[test]
fn an_unfinished_put_is_hidden_replaced_and_collected() {
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    let (old, new) = (contents(300 * KIB, 1), contents(40 << 20, 2));
    fs::write(store.path("old"), &old).expect("room");
    fs::write(store.path("new"), &new).expect("room");
    for method in ["traditional", "disk-directed"] {
        let _ = fs::remove_file(store.path("back"));
        let put = ["put", "new", "file", "--method", method];
        assert!(!kill_after(begin_put(&store, &put), Duration::ZERO), "it takes a second");
        assert!(store.run_failing(&["get", "file", "back"]).contains("file: no such file"), "{method}");
        assert!(!store.path("back").exists());
        assert_eq!(store.run(&["ls"]), "", "{method}");
        // An unfinished file does not prevent the next put. A file that is being replaced exists until the new one is
        // complete.
        store.run(&["put", "old", "file"]);
        assert_eq!(get(&store, "file").as_deref(), Ok(&*old), "{method}");
        let put = ["put", "new", "file", "--replace", "--method", method];
        assert!(!kill_after(begin_put(&store, &put), Duration::ZERO), "it takes a second");
        assert_eq!(get(&store, "file").as_deref(), Ok(&*old), "{method}");
        let hidden = store.run(&["ls", "-a"]);
        assert_eq!(hidden.matches(".starfish-").count(), 2, "{hidden}");
        store.run(&["fsck"]);
        assert_eq!(store.run(&["rm", "--unfinished", "--older-than", "1h"]), "");
        let collected = collect(&store);
        assert_eq!(collected.matches("  (since 20").count(), 2, "{collected}");
        assert_eq!(get(&store, "file").as_deref(), Ok(&*old), "{method}");
        store.run(&["rm", "file"]);
        assert!(store.stripe_files().is_empty(), "{method}");
    }
}

#[test]
fn a_put_does_not_replace_a_file_created_during_it() {
    let store = Store::start(&[1, 1]);
    let old = contents(300 * KIB, 1);
    fs::write(store.path("old"), &old).expect("room");
    let mut put = store.command(&["put", "-", "file"]).stdin(Stdio::piped()).spawn().expect("the program");
    let mut input = put.stdin.take().expect("piped");
    input.write_all(&contents(3 << 20, 3)).expect("it reads");
    within(Duration::from_secs(60), "it begins", || store.run(&["ls", "-a"]).contains(".starfish-"));
    store.run(&["put", "old", "file"]);
    drop(input);
    assert_eq!(wait(&mut put).code(), Some(1));
    assert_eq!(get(&store, "file").as_deref(), Ok(&*old));
    assert_eq!((store.run(&["ls", "-a"]), store.stripe_files().len()), ("file\n".to_owned(), 2));
}

/// In each round, one of the methods puts a new file or replaces a file, and the program or an agent is killed at a
/// random time. A file with a name must be complete; all others must be hidden and then removed.
#[test]
fn a_complete_file_has_only_written_bytes_after_any_kill() {
    let mut store = Store::start(&[1, 1, 1]);
    let (mut whole, mut refused) = (0, 0);
    for round in 0..rounds() {
        let draw = |what, below| draw(&[round, what], below);
        let before = get(&store, "file").ok();
        let data = contents(1 + draw(1, 6 << 20) as usize, round);
        fs::write(store.path("new"), &data).expect("room");
        let method = if draw(2, 2) == 0 { "traditional" } else { "disk-directed" };
        let mut put =
            store.command(&["put", "new", "file", "--replace", "--block", "64KiB", "--method", method]);
        let mut put = put.spawn().expect("the program");
        thread::sleep(Duration::from_micros(draw(3, 200_000)));
        let victim = draw(4, 6) as usize;
        if victim < 3 {
            let agent = &mut store.agents[victim];
            agent.child.kill().expect("a child process of the test");
            agent.child.wait().expect("it ends");
            let (address, roots) = (agent.address.clone(), agent.roots.clone());
            *agent = Agent::start_at(&address, roots, &[]);
        } else {
            put.kill().expect("a child process of the test");
        }
        let is_done = wait(&mut put).success();
        match get(&store, "file") {
            Ok(found) if found == data => whole += 1,
            Ok(found) => {
                assert!(!is_done && Some(found) == before, "round {round}: neither the old nor the new file");
                refused += 1;
            }
            Err(why) => {
                assert!(!is_done && before.is_none() && why.contains("no such file"), "round {round}: {why}");
                refused += 1;
            }
        }
        // Unfinished files are removed, and complete files remain.
        let kept = get(&store, "file").ok();
        store.run(&["rm", "--unfinished", "--older-than", "0s"]);
        assert_eq!(get(&store, "file").ok(), kept, "round {round}");
        if draw(5, 3) == 0 && kept.is_some() {
            store.run(&["rm", "file"]);
        }
    }
    println!("{whole} times the new file, {refused} times not");
    store.run(&["rm", "-f", "file"]);
    collect(&store);
    // For a minute after its restart, the metadata agent does not know which files are open.
    within(Duration::from_secs(120), "space comes back", || {
        store.run(&["fsck", "--repair"]);
        store.stripe_files().is_empty()
    });
}
