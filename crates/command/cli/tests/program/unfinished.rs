//! Files that were not written to their end: told, refused, replaced and collected, whoever was killed.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Agent, Store, finish, wait};
use crate::killing::{contents, draw, kill_after, rounds};

const KIB: usize = 1024;

/// Starts a `put` that takes a second, and returns as soon as there is anything of the file: agents take it in faster
/// than they write it, and finish what has been committed, whoever has gone meanwhile.
fn begin_put(store: &Store, arguments: &[&str]) -> Child {
    let is_begun = |path: &PathBuf| {
        let is_unfinished = path.extension().is_some_and(|end| end == "begun");
        is_unfinished && fs::metadata(path).is_ok_and(|stripe| stripe.len() > 0)
    };
    let put = store.command(arguments).spawn().expect("the program");
    let start = Instant::now();
    while !store.stripe_files().iter().any(is_begun) {
        assert!(start.elapsed() < Duration::from_secs(60), "it begins no file");
        thread::sleep(Duration::from_millis(5));
    }
    put
}

/// What there is under a name: the finished file, or why there is none.
fn get(store: &Store, name: &str) -> Result<Vec<u8>, String> {
    let output = finish(store.command(&["get", name, "back", "--force"]));
    match output.status.success() {
        true => Ok(fs::read(store.path("back")).expect("it was got")),
        false => Err(String::from_utf8(output.stderr).expect("text")),
    }
}

fn is_told(why: &str) -> bool {
    why.contains("unfinished") || why.contains("no such file")
}

/// The stripes that are on the agents' disks.
fn stripes(store: &Store) -> Vec<String> {
    let roots = store.agents.iter().flat_map(|agent| &agent.roots);
    let names = roots.flat_map(|root| fs::read_dir(root).expect("a disk"));
    let names = names.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn what_was_not_put_to_its_end_is_told_refused_replaced_and_collected() {
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    let (old, new) = (contents(300 * KIB, 1), contents(40 << 20, 2));
    fs::write(store.path("old"), &old).expect("room");
    fs::write(store.path("new"), &new).expect("room");
    for method in ["traditional", "disk-directed"] {
        let _ = fs::remove_file(store.path("back"));
        let put = ["put", "new", "file", "--method", method];
        assert!(!kill_after(begin_put(&store, &put), Duration::ZERO), "it takes a second");
        let told = store.run_failing(&["get", "file", "back"]);
        for part in ["file: it is unfinished", "put it again", "get --unfinished", "rm --unfinished"] {
            assert!(told.contains(part), "{told}");
        }
        assert!(!store.path("back").exists());
        assert!(store.run(&["ls", "-l"]).contains("file  (unfinished since 20"), "{method}");
        assert!(store.run(&["stat", "file"]).contains("unfinished since 20"), "{method}");
        let diagnosis = store.run(&["doctor", "--quick"]);
        assert!(diagnosis.contains("1 file is unfinished, since 20"), "{diagnosis}");
        assert!(store.run_failing(&["rm", "file"]).contains("rm --unfinished"), "{method}");
        let part = fs::read(store.path("part"));
        assert!(part.is_err());
        store.run(&["get", "file", "part", "--unfinished", "--force"]);
        let part = fs::read(store.path("part")).expect("it was got");
        assert!(part.iter().zip(&new).all(|(part, new)| part == new || *part == 0));
        fs::remove_file(store.path("part")).expect("it is there");
        // It is not in the way of the next, and what is replaced stays until that is there.
        store.run(&["put", "old", "file"]);
        assert_eq!(get(&store, "file").as_deref(), Ok(&*old), "{method}");
        let put = ["put", "new", "file", "--replace", "--method", method];
        assert!(!kill_after(begin_put(&store, &put), Duration::ZERO), "it takes a second");
        assert_eq!(get(&store, "file").as_deref(), Ok(&*old), "{method}");
        let listed = store.run(&["ls", "-l"]);
        assert!(listed.lines().count() == 2 && listed.contains("unfinished since"), "{listed}");
        assert_eq!(store.run(&["rm", "--unfinished", "--older-than", "1h"]), "");
        let collected = store.run(&["rm", "--unfinished", "--older-than", "0s"]);
        assert!(collected.starts_with("file  (unfinished since 20"), "{collected}");
        assert_eq!(get(&store, "file").as_deref(), Ok(&*old), "{method}");
        store.run(&["rm", "file"]);
        assert_eq!(stripes(&store), Vec::<String>::new(), "{method}");
    }
}

#[test]
fn a_file_that_is_being_written_is_left_alone() {
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    fs::write(store.path("new"), contents(40 << 20, 3)).expect("room");
    let mut put = begin_put(&store, &["put", "new", "file"]);
    let told = store.run_failing(&["put", "new", "file", "--replace"]);
    assert!(told.contains("another program is writing a file of that name"), "{told}");
    assert!(store.run_failing(&["rm", "file", "--unfinished"]).contains("is writing"));
    assert_eq!(store.run(&["rm", "--unfinished"]), "");
    assert!(wait(&mut put).success());
    assert_eq!(get(&store, "file"), Ok(contents(40 << 20, 3)));
}

/// A file of each round is put, by either method, in place of an earlier one or of none, and the program or an agent is
/// killed at any time. What is called whole is whole; the rest is named and collected.
#[test]
fn no_file_that_is_called_whole_has_a_byte_that_was_not_written() {
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
        thread::sleep(Duration::from_micros(draw(3, 60_000)));
        let victim = draw(4, 6) as usize;
        if victim < 3 {
            let agent = &mut store.agents[victim];
            agent.child.kill().expect("a child of ours");
            agent.child.wait().expect("it ends");
            let (address, roots) = (agent.address.clone(), agent.roots.clone());
            *agent = Agent::start_at(&address, roots, &[]);
        } else {
            put.kill().expect("a child of ours");
        }
        let is_done = wait(&mut put).success();
        match get(&store, "file") {
            Ok(found) if found == data => whole += 1,
            Ok(found) => {
                assert!(!is_done && Some(found) == before, "round {round}: neither the old nor the new file");
                refused += 1;
            }
            Err(why) => {
                assert!(!is_done && before.is_none() && is_told(&why), "round {round}: {why}");
                refused += 1;
            }
        }
        // What was left is collected, and whatever was whole still is.
        let kept = get(&store, "file").ok();
        store.run(&["rm", "--unfinished"]);
        assert_eq!(get(&store, "file").ok(), kept, "round {round}");
        if draw(5, 3) == 0 && kept.is_some() {
            store.run(&["rm", "file"]);
            assert_eq!(stripes(&store), Vec::<String>::new(), "round {round}: space comes back");
        }
    }
    println!("{whole} times the new file, {refused} times not");
    if get(&store, "file").is_ok() {
        store.run(&["rm", "file"]);
    }
    assert_eq!(stripes(&store), Vec::<String>::new());
}
