//! Names of files: paths, directories and whole directory trees, with real agents on loopback.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::{Agent, Store, contents, fail, finish, hash, wait};
use serde_json::Value;

/// Starts agents, and creates a directory `d` in their namespace.
fn store(disks: &[usize]) -> Store {
    let store = Store::start(disks);
    assert_eq!(store.run(&["mkdir", "d"]), "");
    store
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// Makes a directory tree with unusual names and files.
fn make_unusual_tree(top: &Path) {
    fs::create_dir_all(top.join("empty")).expect("room");
    fs::create_dir_all(top.join("deep/er/still")).expect("room");
    fs::write(top.join("nothing"), b"").expect("room");
    fs::write(top.join("with space"), b"1").expect("room");
    fs::write(top.join("größe"), contents(5000)).expect("room");
    fs::write(top.join("new\nline"), b"2").expect("room");
    fs::write(top.join("-dash"), b"3").expect("room");
    fs::write(top.join("star*[1]?"), b"4").expect("room");
    fs::write(top.join(".hidden"), b"5").expect("room");
    fs::write(top.join(OsStr::from_bytes(b"not\xffutf8")), b"6").expect("room");
    fs::write(top.join("x".repeat(255)), b"7").expect("room");
    fs::write(top.join("deep/er/still/large"), contents(1 << 20)).expect("room");
    symlink("../größe", top.join("deep/link")).expect("room");
    symlink("nowhere", top.join("dangling")).expect("room");
    let script = top.join("script");
    fs::write(&script, b"#!/bin/sh\n").expect("room");
    fs::set_permissions(&script, Permissions::from_mode(0o750)).expect("it belongs to the test");
    for (name, mode) in [("empty", 0o1777), ("deep/er/still", 0o2755), ("with space", 0o4755)] {
        fs::set_permissions(top.join(name), Permissions::from_mode(mode)).expect("it belongs to the test");
    }
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    File::options()
        .write(true)
        .open(&script)
        .and_then(|file| file.set_modified(old))
        .expect("it belongs to the test");
    for many in 0..60 {
        fs::write(top.join(format!("deep/er/{many}")), contents(many)).expect("room");
    }
    for directory in ["empty", "deep/er/still", "deep/er", "deep"] {
        File::open(top.join(directory))
            .and_then(|file| file.set_modified(old))
            .expect("it belongs to the test");
    }
}

/// Path, mode, modification time and contents.
type TreeEntry = (PathBuf, u32, (i64, i64), Vec<u8>);

/// Returns all entries of a directory tree.
fn tree_entries(top: &Path) -> Vec<TreeEntry> {
    let (mut all, mut directories) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let found = fs::symlink_metadata(&path).expect("it exists");
            let name = path.strip_prefix(top).expect("within").to_owned();
            let time = (found.mtime(), found.mtime_nsec());
            if found.is_dir() {
                all.push((name, found.mode(), time, Vec::new()));
                directories.push(path);
            } else if found.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                all.push((name, 0, (0, 0), target.as_os_str().as_bytes().to_vec()));
            } else {
                all.push((name, found.mode(), time, fs::read(&path).expect("a file")));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn names_of_files_are_paths_with_directories() {
    let store = Store::start(&[2, 1]);
    let hash = store.make_file("local", 300_000);
    for path in ["/", ".", "a/b", "a/..", "//"] {
        let stderr = store.run_failing(&["mkdir", path]);
        assert!(stderr.contains("-p"), "{path}: {stderr}");
        assert_eq!(store.run(&["ls", "-a"]), "", "{path}");
    }
    store.run(&["mkdir", "-p", "/", "results/a/b"]);
    assert!(store.run_failing(&["mkdir", "results"]).contains("exists"));
    store.run(&["mkdir", "-p", "results/a"]);
    assert_eq!(store.run(&["ls"]), "results/\n");

    store.run(&["put", "local", "results", "--verify"]);
    store.run(&["put", "local", "results/a/other", "--block", "4KiB", "--method", "disk-directed"]);
    assert_eq!(lines(&store.run(&["ls", "results"])), ["a/", "local"]);
    assert_eq!(
        lines(&store.run(&["ls", "-R"])),
        ["results/", "results/a/", "results/a/b/", "results/a/other", "results/local"]
    );
    assert_eq!(lines(&store.run(&["ls", "results/*"])), ["results/local", "", "results/a:", "b/", "other"]);
    for (path, options) in
        [("results/local", vec![]), ("/results/a/../a/other", vec!["--method", "disk-directed"])]
    {
        let command = [vec!["get", path, "got", "--force"], options].concat();
        store.run(&command);
        assert_eq!(crate::common::hash(&store.path("got")), hash, "{path}");
    }
    assert_eq!(
        crate::common::succeed(store.command(&["cat", "results/local", "results/a/other"])).len(),
        600_000
    );
    assert!(store.run_failing(&["put", "local", "results/local"]).contains("--replace"));
    assert!(store.run_failing(&["put", "local", "no/such"]).contains("mkdir -p"));
    assert!(
        store
            .run_failing(&["mkdir", "no/such/one"])
            .contains("With -p, mkdir also creates missing parent directories")
    );
    assert!(store.run_failing(&["get", "results/none"]).contains("no such file"));
    assert!(
        store.run_failing(&["get", "results", "x"]).contains("`starfish get -r` gets the whole directory")
    );
    assert!(store.run_failing(&["rm", "results"]).contains("rm -r"));
    for path in [".", "./", "/", "//", "results/.", "results/a/..", "results/a/../../"] {
        assert!(store.run_failing(&["rm", "-r", path]).contains("cannot be removed"), "{path}");
    }
    assert_eq!(lines(&store.run(&["ls", "results/a"])), ["b/", "other"]);
    let stat = store.run(&["stat", "results/a/other"]);
    assert!(stat.contains("bytes     300000") && stat.contains("blocks of 4 KiB over 3 stripes"), "{stat}");
    assert!(store.run(&["stat", "results"]).contains("directory"));
    assert!(store.run_failing(&["rm", "results/none"]).contains("no such file"));
    store.run(&["rm", "-f", "results/none", "none*"]);
    assert!(store.run(&["ls", "-l", "--human-readable", "results/a"]).contains(" 293.0 KiB "));
    let long = store.run(&["ls", "-l", "results"]);
    let first = long.lines().next().unwrap_or_default();
    assert!(first.starts_with("drwxr-xr-x") && first.contains("  -  "), "{long}");
    assert!(store.run(&["ls", "-l", "--format", "json", "results"]).contains("\"path\""));
    let refused = store.run_failing(&["get", "-r", "results", "local"]);
    assert!(refused.contains("local: it is a file, not a directory"), "{refused}");

    // `mv` to a new name, into a directory, and over another file.
    store.run(&["mv", "results/local", "results/moved"]);
    store.run(&["mv", "results/moved", "results/a/other", "results/a/b"]);
    assert_eq!(lines(&store.run(&["ls", "results/a/b"])), ["moved", "other"]);
    assert!(store.run_failing(&["mv", "-n", "results/a/b/moved", "results/a/b/other"]).contains("exists"));
    store.run(&["mv", "results/a/b/moved", "results/a/b/other"]);
    assert!(store.run_failing(&["mv", "results", "results/a/b"]).contains("into itself"));
    store.run(&["rm", "-r", "result?"]);
    assert_eq!(store.run(&["ls"]), "");
    assert_eq!(store.stripe_files().len(), 0, "the contents are removed with their names");
}

/// While the metadata agent does not answer, no agent begins a second namespace.
#[test]
fn a_set_without_its_metadata_agent_gets_no_second_namespace() {
    let mut store = store(&[1, 1]);
    store.make_file("local", 600_000);
    store.run(&["put", "local", "d/file", "--block", "64KiB"]);
    let doctor = store.run(&["doctor", "--quick"]);
    let metadata_agent = doctor
        .split("agent ")
        .find_map(|rest| rest.split_once(" is its metadata server"))
        .expect("a metadata agent")
        .0;
    let agent =
        store.agents.iter_mut().find(|agent| agent.address == metadata_agent).expect("one of the agents");
    agent.child.kill().and_then(|()| agent.child.wait()).expect("it ends");
    for command in [
        &["get", "d/file", "x"][..],
        &["ls"],
        &["rm", "-rf", "d"],
        &["mv", "d/file", "d/other"],
        &["put", "--without-missing", "local", "d/other"],
    ] {
        let stderr = store.run_failing(command);
        assert!(
            stderr.contains("its metadata server does not answer, or cannot use its disk"),
            "{command:?}: {stderr}"
        );
    }
}

#[test]
fn a_tree_with_unusual_names_is_copied_unchanged() {
    let store = store(&[1, 2]);
    make_unusual_tree(&store.path("tree"));
    store.run(&["put", "-r", "tree", "other", "--method", "disk-directed"]);
    store.run(&["get", "-r", "other", "other", "--method", "disk-directed"]);
    assert_eq!(tree_entries(&store.path("other")), tree_entries(&store.path("tree")));
    store.run(&["rm", "-r", "other"]);
    store.run(&["put", "-r", "tree", "copy", "--progress", "never"]);
    store.run(&["get", "-r", "copy", "back"]);
    store.run(&["get", "copy/script", "script"]);
    let found = fs::metadata(store.path("script")).expect("it was copied");
    assert_eq!((found.mode() & 0o777, found.mtime_nsec()), (0o750, 123_456_789));
    assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));
    // Control characters in names are escaped on the terminal.
    assert!(store.run(&["ls", "copy"]).contains("new\\nline\n"));
    assert!(
        !store.run(&["ls", "copy"]).contains(".hidden")
            && store.run(&["ls", "-a", "copy"]).contains(".hidden")
    );
    fs::create_dir(store.path("some")).expect("room");
    store.run(&["get", "copy/star*[1]?", "literally"]);
    assert_eq!(fs::read(store.path("literally")).expect("it was copied"), b"4");
    store.run(&["get", "copy/deep/e?/[0-9]", "some/"]);
    assert_eq!(fs::read_dir(store.path("some")).expect("a directory").count(), 10);
    // Copies the tree into an existing directory, twice.
    store.run(&["put", "-r", "tree", "d/"]);
    store.run(&["get", "-r", "d/tree", "some/"]);
    assert_eq!(tree_entries(&store.path("some/tree")), tree_entries(&store.path("tree")));
    let again = fail(store.command(&["put", "-r", "tree", "d/"]), 1);
    assert!(again.contains("files already exist and were not replaced"), "{again}");
    assert!(again.matches("already exists").count() == 3 && again.contains("--resume"), "{again}");
    let again = fail(store.command(&["get", "-r", "d/tree", "some/"]), 1);
    assert!(again.matches("already exists\n").count() == 3 && again.contains("--resume"), "{again}");
    store.run(&["put", "-r", "tree", "d/", "--replace"]);
    store.run(&["rm", "-r", "copy", "d"]);
    assert_eq!(store.run(&["ls", "-aR"]), "");
    assert_eq!(store.stripe_files().len(), 0);
    let report = store.run(&["fsck"]);
    assert!(
        report.contains("The namespace has 1 inode.\n") && report.contains("no problems found"),
        "{report}"
    );
}

#[test]
fn names_that_are_not_utf8_are_listed_moved_and_removed() {
    let store = store(&[1, 1]);
    let odd = OsStr::from_bytes(b"not\xfftext");
    fs::create_dir(store.path("tree")).expect("room");
    fs::create_dir(store.path("tree").join(odd)).expect("room");
    fs::write(store.path("tree").join(odd).join(odd), b"odd").expect("room");
    symlink(odd, store.path("tree/link")).expect("room");
    store.run(&["put", "-r", "tree", "d/"]);
    let path = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    let run = |words: &[&OsStr]| {
        let mut command = store.command(&[words[0].to_str().expect("text")]);
        command.args(&words[1..]);
        finish(command)
    };
    let output_of = |words: &[&OsStr]| {
        let output = run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    store.run(&["get", "-r", "d/tree", "back"]);
    assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));
    assert_eq!(store.run(&["ls", "d/tree"]), "link\nnot\\xfftext/\n");
    let within = path(b"d/tree/not\xfftext");
    assert_eq!(output_of(&["ls".as_ref(), &within]), "not\\xfftext\n");
    let (file, moved) = (path(b"d/tree/not\xfftext/not\xfftext"), path(b"d/tree/not\xfftext/\xfe"));
    output_of(&["mv".as_ref(), &file, &moved]);
    // In a pattern, a question mark also matches a byte that is not valid UTF-8.
    fs::create_dir(store.path("got")).expect("room");
    store.run(&["get", "d/tree/not?text/?", "got/"]);
    assert_eq!(fs::read(store.path("got").join(OsStr::from_bytes(b"\xfe"))).expect("it was copied"), b"odd");
    output_of(&["mv".as_ref(), &moved, &file]);
    output_of(&["rm".as_ref(), &file]);
    output_of(&["rm".as_ref(), "-r".as_ref(), &within]);
    let gone = run(&["rm".as_ref(), &within]);
    let stderr = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(
        gone.status.code() == Some(1) && stderr.contains("d/tree/not\\xfftext: no such file"),
        "{stderr}"
    );
    assert_eq!((store.run(&["ls", "d/tree"]), store.stripe_files().len()), ("link\n".to_owned(), 0));
    // Commands that need a file name in UTF-8 reject this name.
    for command in ["put", "cat", "stat"] {
        let refused = run(&[command.as_ref(), &file]);
        assert_eq!(refused.status.code(), Some(2), "{command}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("UTF-8"), "{command}");
    }
}

/// Returns the inode number of a local file and its number of links.
fn identity(path: &Path) -> (u64, u64) {
    let found = fs::symlink_metadata(path).expect("it exists");
    (found.ino(), found.nlink())
}

#[test]
fn hard_links_stay_hard_links() {
    let store = store(&[1, 2]);
    fs::create_dir_all(store.path("tree/deep")).expect("room");
    fs::write(store.path("tree/b"), b"one file").expect("room");
    fs::write(store.path("tree/other"), b"one file").expect("room");
    for name in ["tree/a", "tree/deep/c"] {
        fs::hard_link(store.path("tree/b"), store.path(name)).expect("one file system");
    }
    let check = |top: &str| {
        let of = |name: &str| identity(&store.path(&format!("{top}/{name}")));
        assert_eq!((of("a"), of("b"), of("deep/c")), (of("a"), of("a"), of("a")), "{top}");
        assert_eq!((of("a").1, of("other").1), (3, 1), "{top}");
        assert_eq!(fs::read(store.path(&format!("{top}/deep/c"))).expect("a file"), b"one file");
    };
    store.run(&["put", "-r", "tree", "d/"]);
    assert_eq!(store.stripe_files().len(), 2, "two files");
    store.run(&["get", "-r", "d/tree", "back"]);
    check("back");
    let refused = fail(store.command(&["put", "-r", "tree", "d/"]), 1);
    assert!(refused.contains("4 files failed, 2 of them because they already exist"), "{refused}");
    let refused = fail(store.command(&["get", "-r", "d/tree", "back"]), 1);
    assert!(refused.contains("4 files already exist"), "{refused}");

    // Hard links that were copied as separate files become one file again.
    store.run(&["rm", "d/tree/b", "d/tree/deep/c"]);
    store.run(&["put", "tree/b", "d/tree/b"]);
    fs::remove_file(store.path("back/a")).expect("it belongs to the test");
    fs::write(store.path("back/a"), b"changed").expect("it belongs to the test");
    for (what, command) in [
        ("put", &["put", "-r", "tree", "d/", "--resume"][..]),
        ("get", &["get", "-r", "d/tree", "back", "--resume"]),
        ("put", &["put", "-r", "tree", "d/", "--replace"]),
        ("get", &["get", "-r", "d/tree", "back", "--force"]),
    ] {
        store.run(command);
        if what == "get" {
            check("back");
            assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));
        }
    }
    let resumed = finish(store.command(&["put", "-r", "tree", "d/", "--resume"]));
    assert!(String::from_utf8_lossy(&resumed.stderr).contains("4 of its files skipped"));
    assert!(!store.run(&["ls", "-aR"]).contains(".starfish-"));
    assert_eq!(store.stripe_files().len(), 2, "two files");
}

/// Returns the space of a local file in bytes.
fn allocated_bytes(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").blocks() * 512
}

#[test]
fn holes_stay_holes() {
    const MIB: u64 = 1 << 20;
    let store = Store::start(&[1, 2]);
    fs::create_dir(store.path("tree")).expect("room");
    let files = [
        ("whole", vec![(0, 3 * MIB)], 3 * MIB),
        ("hole", vec![], 300 * MIB),
        ("short hole", vec![], 1000),
        ("many", vec![(MIB + 5, 10), (40 * MIB, 2 * MIB), (99 * MIB, MIB)], 100 * MIB),
        ("last", vec![(0, 5), (70 * MIB + 1, MIB)], 200 * MIB + 3),
    ];
    for (name, stretches, length) in &files {
        let file = File::create(store.path(&format!("tree/{name}"))).expect("room");
        for &(offset, bytes) in stretches {
            file.write_all_at(&contents(bytes as usize), offset).expect("room");
        }
        file.set_len(*length).expect("room");
    }
    let data_of = |name: &str| files.iter().find(|file| file.0 == name).expect("one").1.iter();
    let check = |name: &str, got: &Path| {
        assert_eq!(hash(got), hash(&store.path(&format!("tree/{name}"))), "{name}");
        // A file of one block is copied without its holes. So up to 4096 bytes of the copy can be zeros instead of
        // holes.
        let most = 4096 + data_of(name).map(|(_, bytes)| bytes + 2 * MIB).sum::<u64>();
        assert!(allocated_bytes(got) <= most, "{name}: {} of {most}", allocated_bytes(got));
    };
    let stored = || store.stripe_files().iter().map(|path| allocated_bytes(path)).sum::<u64>();

    let one = store.path("one");
    for (name, ..) in &files {
        let before = stored();
        let hashed = store.run(&["put", &format!("tree/{name}"), "file", "--replace", "--verify", "--hash"]);
        assert!(hashed.starts_with(&hash(&store.path(&format!("tree/{name}"))).to_string()), "{hashed}");
        assert!(stored().saturating_sub(before) < 12 * MIB, "{name}: {}", stored());
        let got = store.run(&["get", "file", "one", "--force", "--hash"]);
        assert!(got.starts_with(&hash(&one).to_string()), "{got}");
        check(name, &one);
    }
    store.run(&["rm", "file"]);
    store.run(&["mkdir", "d"]);
    store.run(&["put", "-r", "tree", "d/"]);
    assert!(stored() < 25 * MIB, "{}", stored());
    store.run(&["get", "-r", "d/tree", "back"]);
    for (name, ..) in &files {
        check(name, &store.path(&format!("back/{name}")));
    }
    // A stream gets zeros in place of holes.
    assert_eq!(
        crate::common::succeed(store.command(&["cat", "d/tree/many"])),
        fs::read(store.path("tree/many")).expect("a file")
    );
    let appended = fs::OpenOptions::new().append(true).open(&one).expect("it belongs to the test");
    let before = appended.metadata().expect("a file").len();
    let mut append = store.command(&["get", "d/tree/many", "-"]);
    assert!(append.stdout(appended).status().expect("the program").success());
    assert_eq!(fs::metadata(&one).expect("a file").len(), before + 100 * MIB);
}

#[test]
fn a_reader_sees_the_old_or_the_new_file_during_a_replacement() {
    let store = store(&[1, 1, 1]);
    let files: Vec<Vec<u8>> = (1..=2).map(|seed| contents(700_000 * seed)).collect();
    for (index, file) in files.iter().enumerate() {
        fs::write(store.path(&format!("local{index}")), file).expect("room");
    }
    store.run(&["put", "local0", "d/file"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut reads = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let read = crate::common::succeed(store.command(&["cat", "d/file"]));
                        assert!(files.contains(&read), "{} bytes of neither", read.len());
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        for round in 0..12 {
            store.run(&["put", &format!("local{}", (round + 1) % 2), "d/file", "--replace"]);
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("no panic") > 0);
        }
    });
    assert_eq!(store.stripe_files().len(), 3, "the stripes of the replaced file are removed");
}

#[test]
fn an_interrupted_tree_has_only_whole_files_and_can_be_resumed() {
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    store.run(&["mkdir", "d"]);
    fs::create_dir(store.path("tree")).expect("room");
    for file in 0..24 {
        fs::write(store.path(&format!("tree/{file}")), contents(1 << 20)).expect("room");
    }
    for signal in ["INT", "KILL"] {
        let mut child = store.command(&["put", "-r", "tree", "d/", "--resume"]).spawn().expect("the program");
        let begun = Instant::now();
        while store.run(&["ls", "-R", "d"]).lines().count() < 4 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no file is finished");
        }
        let sent = std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("a kill command").success());
        let status = wait(&mut child);
        if signal == "INT" {
            assert_eq!(status.code(), Some(130));
            let mut stderr = String::new();
            child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
            assert!(stderr.contains("d/: interrupted. ") && stderr.contains("--resume"), "{stderr}");
            assert!(!store.run(&["ls", "-aR"]).contains(".starfish-"), "no partial file is left");
        }
        // All existing files are complete.
        let there = store.run(&["ls", "-R", "d"]);
        for path in there.lines().filter(|path| !path.ends_with('/')) {
            let (_, name) = path.rsplit_once('/').expect("a path");
            let got = crate::common::succeed(store.command(&["cat", path]));
            assert_eq!(got, fs::read(store.path(&format!("tree/{name}"))).expect("a file"), "{path}");
        }
    }
    let resumed = finish(store.command(&["put", "-r", "tree", "d/", "--resume"]));
    let stderr = String::from_utf8(resumed.stderr).expect("text");
    assert!(resumed.status.success(), "{stderr}");
    let skipped = stderr.split(' ').find_map(|word| word.parse::<usize>().ok()).expect("a number");
    assert!((1..24).contains(&skipped), "{stderr}");
    // The unfinished file of the killed command is found and removed.
    store.run(&["rm", "--unfinished", "--older-than", "0s"]);
    assert!(!store.run(&["ls", "-aR"]).contains(".starfish-"));
    store.run(&["get", "-r", "d/tree", "back"]);
    assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));

    // `get` does not copy unfinished files. It removes local unfinished files that a killed `get` has left.
    let mut child =
        store.command(&["put", "-", "d/tree/unfinished"]).stdin(Stdio::piped()).spawn().expect("one");
    let begun = Instant::now();
    while !store.run(&["ls", "-a", "d/tree"]).contains(".starfish-") {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
    }
    fs::write(store.path("back/.starfish-aBcDeF"), b"half").expect("room");
    store.run(&["get", "-r", "d/tree", "back", "--resume"]);
    assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));
    child.kill().expect("a child process of the test");
    wait(&mut child);
    // Resumes a `get` after the test has removed one local file and changed another one.
    fs::remove_file(store.path("back/7")).expect("it belongs to the test");
    fs::write(store.path("back/8"), b"changed").expect("it belongs to the test");
    let refused = fail(store.command(&["get", "-r", "d/tree", "back"]), 1);
    assert!(refused.contains("23 files already exist"), "{refused}");
    let resumed = finish(store.command(&["get", "-r", "d/tree", "back", "--resume"]));
    let stderr = String::from_utf8(resumed.stderr).expect("text");
    assert!(resumed.status.success() && stderr.contains("23 of its files skipped"), "{stderr}");
    assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));
}

#[test]
fn a_file_being_put_is_not_removed_as_unfinished() {
    let mut store = store(&[1]);
    let remove = ["rm", "--unfinished", "--older-than", "0s"];
    let is_unfinished = |store: &Store| store.run(&["ls", "-a", "d"]).contains(".starfish-");
    let begin = |store: &Store, name: &str| {
        let mut command = store.command(&["put", "-", name]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(b"first ").expect("it reads");
        let begun = Instant::now();
        while !is_unfinished(store) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
        }
        (child, input)
    };
    let (mut child, mut input) = begin(&store, "d/slow");
    assert_eq!(store.run(&remove), "");
    // After a restart, the metadata server knows that the file is open, even before the program that writes it has
    // reconnected and reported that.
    let (address, roots) = (store.agents[0].address.clone(), store.agents[0].roots.clone());
    store.agents[0].signal("TERM");
    assert!(wait(&mut store.agents[0].child).success());
    store.agents[0] = Agent::start_at(&address, roots, &[]);
    assert_eq!(store.run(&remove), "");
    input.write_all(b"last").expect("it reads");
    drop(input);
    assert!(wait(&mut child).success());
    assert_eq!(store.run(&["cat", "d/slow"]), "first last");
    // The unfinished file of a killed command is removed.
    let (mut child, _input) = begin(&store, "d/killed");
    child.kill().expect("a child process of the test");
    wait(&mut child);
    let begun = Instant::now();
    while is_unfinished(&store) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it stays");
        store.run(&remove);
    }
}

#[test]
fn names_and_attributes_are_printed_as_json_and_csv() {
    let store = store(&[1, 1]);
    store.make_file("local", 600_000);
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&store.run(&[arguments, &["--format", "json"]].concat())).expect("JSON")
    };
    store.run(&["put", "local", "d/a, \"b\"", "--disks", "1"]);
    store.run(&["mkdir", "d/e"]);
    let listed = json(&["ls", "-R"]);
    let of = |index: usize, key: &str| listed[index][key].clone();
    assert_eq!((of(0, "path"), of(0, "kind"), of(0, "size")), ("d".into(), "directory".into(), 2.into()));
    assert_eq!(of(1, "path"), "d/a, \"b\"");
    assert_eq!((of(1, "kind"), of(1, "size")), ("file".into(), 600_000.into()));
    assert!(of(1, "modified").as_str().is_some_and(|date| date.ends_with('Z')), "{listed}");
    assert_eq!((of(2, "path"), listed.as_array().map(Vec::len)), ("d/e".into(), Some(3)));
    let csv = store.run(&["ls", "d", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("path,kind,size,mode,user,group,modified", 3));
    assert!(lines[1].starts_with("\"d/a, \"\"b\"\"\",file,600000,"), "{csv}");
    let known = json(&["stat", "d/a, \"b\""]);
    assert_eq!((&known["size"], &known["names"]), (&600_000.into(), &1.into()));
    assert_eq!((&known["stripes"][0]["bytes"], &known["stripes"][1]), (&600_000.into(), &Value::Null));
    assert_eq!(json(&["stat", "d"])["stripes"], Value::Array(Vec::new()));
    let stderr = fail(store.command(&["put", "local", "d/more", "--disks", "3"]), 1);
    assert!(stderr.contains("over 3 disks: the agents have 2"), "{stderr}");
}

#[test]
fn lists_have_local_times_readable_sizes_and_escaped_names() {
    let store = store(&[1]);
    store.make_file("local", 3 << 20);
    File::open(store.path("local"))
        .and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(86_400)))
        .expect("a time");
    store.run(&["put", "local", "a\x1b[2Jb"]);
    let printed = |arguments: &[&str], zone: &str| {
        let mut command = store.command(arguments);
        command.env("TZ", zone);
        let output = finish(command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    // Time zones with names are looked up in the system's database, if this computer has one.
    for (zone, time) in
        [("UTC0", "1970-01-02 00:00:00"), ("<+05>-5", "1970-01-02 05:00:00")].into_iter().chain(
            Path::new("/usr/share/zoneinfo/Asia/Tokyo")
                .exists()
                .then_some(("Asia/Tokyo", "1970-01-02 09:00:00")),
        )
    {
        let listed = printed(&["ls", "-lh"], zone);
        let line = listed.lines().next().expect("a line");
        assert!(line.ends_with(&format!("  3.0 MiB  {time}  a\\u{{1b}}[2Jb")), "{listed}");
        let known = printed(&["stat", "a\x1b[2Jb"], zone);
        assert!(known.starts_with("path      a\\u{1b}[2Jb\n"), "{known}");
        assert!(known.contains(&format!("modified  {time}\n")), "{known}");
        assert!(known.contains("over 1 stripe\n"), "{known}");
        assert!(printed(&["ls", "--format", "csv"], zone).contains(",1970-01-02T00:00:00Z\n"));
    }
    assert!(store.run(&["ls", "--help"]).contains("Usage: starfish ls"));
    assert!(fail(store.command(&["ls", "-h"]), 2).contains("--long"));
    // Names are escaped in messages on the terminal, too.
    fs::write(store.path("c\x1bd"), b"x").expect("room");
    let put = finish(store.command(&["put", "c\x1bd", "local"]));
    let stderr = String::from_utf8(put.stderr).expect("text");
    assert!(put.status.success() && stderr.contains("c\\u{1b}d will be put as local"), "{stderr}");
}

#[test]
fn options_for_one_file_are_rejected_for_several() {
    let store = store(&[1]);
    store.make_file("local", 10);
    store.run(&["put", "local", "d/one"]);
    for (arguments, option) in
        [(&["get", "d/o*", "--hash"][..], "--hash"), (&["get", "-r", "d", "copy", "--hash"], "--hash")]
    {
        let stderr = fail(store.command(arguments), 2);
        assert!(stderr.contains(option), "{stderr}");
    }
    assert!(!store.path("one").exists() && !store.path("copy").exists());
    store.run(&["get", "d/o*", "."]);
    assert!(store.path("one").exists());
    // Skipping a directory is a failure, even if other files have been copied.
    store.run(&["mkdir", "d/only"]);
    fs::remove_file(store.path("one")).expect("it was copied");
    for pattern in ["d/on?y", "d/o*"] {
        let stderr = fail(store.command(&["get", pattern, "."]), 1);
        assert!(stderr.contains("d/only: it is a directory, skipped without -r"), "{stderr}");
    }
    assert!(store.path("one").exists() && !store.path("only").exists());
}

#[test]
fn user_files_with_hidden_names_are_not_unfinished() {
    let store = store(&[1]);
    store.make_file("local", 10);
    let own = "d/.starfish-0123456789abcdef";
    store.run(&["put", "local", "d/file"]);
    store.run(&["mv", "d/file", own]);
    // The file of a killed command has the mark of an unfinished file.
    let mut child = store.command(&["put", "-", "d/killed"]).stdin(Stdio::piped()).spawn().expect("one");
    let begun = Instant::now();
    while store.run(&["ls", "-a", "d"]).lines().count() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
    }
    child.kill().expect("a child process of the test");
    wait(&mut child);
    let got = finish(store.command(&["get", "-r", "d", "back"]));
    let stderr = String::from_utf8(got.stderr).expect("text");
    assert!(got.status.success() && stderr.contains("skipped 1 unfinished"), "{stderr}");
    assert_eq!(hash(&store.path("back/.starfish-0123456789abcdef")), hash(&store.path("local")));
    while store.run(&["ls", "-a", "d"]).lines().count() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it stays");
        store.run(&["rm", "--unfinished", "--older-than", "0s"]);
    }
    store.run(&["get", own, "again"]);
}

#[test]
fn a_file_that_changes_during_a_put_is_not_stored() {
    // A slow disk gives the test time to change the file.
    let store = Store::start_with(&[1], &["--disk-model", "streaming-20", "--cache", "8MiB"]);
    store.run(&["mkdir", "d"]);
    fs::create_dir(store.path("tree")).expect("a directory");
    fs::write(store.path("tree/small"), b"small").expect("room");
    let local = store.path("tree/local");
    for length in [10, 40_000_001] {
        for arguments in [&["put", "tree/local", "d/file"][..], &["put", "-r", "tree", "d/tree", "--resume"]]
        {
            fs::write(&local, contents(40_000_000)).expect("room");
            let file = File::options().write(true).open(&local).expect("it belongs to the test");
            let child = store.command(arguments).spawn().expect("the program");
            let begun = Instant::now();
            while !store.run(&["ls", "-aR", "d"]).contains(".starfish-") {
                assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
            }
            file.set_len(length).expect("it belongs to the test");
            let output = child.wait_with_output().expect("a child process of the test");
            let stderr = String::from_utf8(output.stderr).expect("text");
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(
                stderr.contains(&format!("its size was 40000000 bytes, and is {length} now")),
                "{stderr}"
            );
            let left = store.run(&["ls", "-aR", "d"]);
            assert!(!left.contains("local") && !left.contains(".starfish-"), "{left}");
        }
        assert_eq!(store.run(&["cat", "d/tree/small"]), "small");
    }
}

#[test]
fn a_resumed_put_skips_an_unchanged_file() {
    let store = store(&[1, 1]);
    store.make_file("local", 3 << 20);
    let put = |arguments: &[&str]| {
        let command = [&["put", "local", "d/file", "--resume"], arguments].concat();
        let output = finish(store.command(&command));
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{stderr}");
        stderr.contains("d/file: skipped, because it already exists")
    };
    for method in ["traditional", "disk-directed"] {
        assert!(!put(&["--method", method]), "there is no file to skip yet");
        let number = store.run(&["stat", "d/file"]);
        assert!(put(&["--method", method]));
        assert_eq!(store.run(&["stat", "d/file"]), number, "it is the same file");
        // A file with another size or modification time is replaced.
        store.make_file("local", 1 << 20);
        assert!(!put(&["--method", method]));
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let local = File::options().write(true).open(store.path("local")).expect("it belongs to the test");
        local.set_modified(changed).expect("it belongs to the test");
        assert!(!put(&["--method", method]) && put(&["--method", method]));
        store.run(&["get", "d/file", "back", "--force"]);
        assert_eq!(hash(&store.path("back")), hash(&store.path("local")));
        store.run(&["rm", "d/file"]);
    }
    // The same holds if the destination is a directory.
    store.run(&["put", "local", "d", "--resume"]);
    let again = finish(store.command(&["put", "local", "d", "--resume"]));
    assert!(String::from_utf8_lossy(&again.stderr).contains("d/local: skipped, because it already exists"));
    let stream = fail(store.command(&["put", "-", "d/stream", "--resume"]), 2);
    assert!(stream.contains("it needs a regular file"), "{stream}");
}

#[test]
fn an_interrupted_replacement_leaves_the_old_file() {
    let store = store(&[1]);
    store.make_file("local", 1000);
    store.run(&["put", "local", "d/file"]);
    let mut child = store.command(&["put", "-", "d/file", "--replace"]);
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().expect("the program");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&contents(3 << 20)).expect("read");
    while !store.run(&["ls", "-a", "d"]).contains(".starfish-") {
        thread::sleep(Duration::from_millis(20));
    }
    let sent = std::process::Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.expect("a kill command").success());
    assert_eq!(wait(&mut child).code(), Some(130));
    drop(input);
    assert_eq!(store.run(&["ls", "-a", "d"]), "file\n");
    store.run(&["get", "d/file", "back"]);
    assert_eq!(hash(&store.path("back")), hash(&store.path("local")));
    assert_eq!(store.stripe_files().len(), 1);
}

#[test]
fn two_sources_for_one_name_are_rejected() {
    let store = store(&[1]);
    for directory in ["one", "two"] {
        fs::create_dir_all(store.path(directory).join("sub")).expect("room");
        fs::write(store.path(directory).join("result.dat"), directory).expect("room");
        fs::write(store.path(directory).join("sub/file"), directory).expect("room");
        store.run(&["put", "-r", directory, "d/"]);
    }
    store.run(&["mkdir", "archive"]);
    fs::create_dir(store.path("got")).expect("room");
    let before = store.run(&["ls", "-R"]);
    for (arguments, both) in [
        (&["mv", "d/*/result.dat", "archive"][..], "both d/one/result.dat and d/two/result.dat"),
        (&["mv", "d/two/result.dat", "d/one/result.dat", "archive"], "both d/two/result.dat and d/one/"),
        (&["mv", "-n", "d/*/sub", "archive"], "both d/one/sub and d/two/sub"),
        (&["get", "d/*/result.dat", "got/", "--force"], "both d/one/result.dat and d/two/result.dat"),
        (&["get", "-r", "d/*/sub", "got", "--resume"], "both d/one/sub and d/two/sub"),
    ] {
        let stderr = store.run_failing(arguments);
        assert!(stderr.contains(both) && stderr.contains("would get this name"), "{arguments:?}: {stderr}");
    }
    assert_eq!(store.run(&["ls", "-R"]), before, "nothing has been moved");
    assert_eq!(fs::read_dir(store.path("got")).expect("a directory").count(), 0);
    store.run(&["mv", "d/one/result.dat", "d/two/sub", "archive"]);
    assert_eq!(store.run(&["cat", "archive/result.dat", "archive/sub/file"]), "onetwo");
    let names = ["cat", "archive", "archive/result.dat", "nowhere", "archive/sub/file"];
    let output = finish(store.command(&names));
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b"onetwo"[..]), "{stderr}");
    assert!(stderr.contains("archive: it is a directory") && stderr.contains("nowhere: no such"), "{stderr}");
}

/// Starts an agent with a namespace and a slow disk. A `get` of `FILE_BYTES` takes long enough to be observed.
fn slow_store() -> Store {
    let store = Store::start_with(&[1], &["--disk-model", "streaming-20", "--cache", "8MiB"]);
    store.run(&["mkdir", "d"]);
    store
}

const FILE_BYTES: usize = 20_000_000;

/// Waits until a local directory has a temporary file with contents, and returns the path of that file.
fn wait_for_temporary_file(directory: &Path) -> PathBuf {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
        let entries = fs::read_dir(directory).into_iter().flatten();
        let mut paths = entries.map(|entry| entry.expect("an entry").path());
        let is_temporary = |path: &Path| path.to_str().is_some_and(|path| path.contains("/.starfish-"));
        let has_some = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() > 0);
        if let Some(path) = paths.find(|path| is_temporary(path) && has_some(path)) {
            return path;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_file_that_changes_during_a_get_is_not_copied() {
    let store = slow_store();
    store.make_file("local", FILE_BYTES);
    store.run(&["put", "local", "d/file"]);
    let session = node::Session::start(store.settings()).expect("the agent runs");
    fs::create_dir(store.path("got")).expect("room");
    for arguments in [&["get", "d/file", "got/file"][..], &["get", "-r", "d/file", "got/", "--resume"]] {
        let child = store.command(arguments).spawn().expect("the program");
        wait_for_temporary_file(&store.path("got"));
        let file = session.open("d/file", node::OpenOptions::new().write(true)).expect("it exists");
        file.write_at(5, b"other".to_vec()).expect("written");
        file.close().expect("closed");
        let output = child.wait_with_output().expect("a child process of the test");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains("it changed while it was read"), "{stderr}");
        assert_eq!(fs::read_dir(store.path("got")).expect("a directory").count(), 0, "{arguments:?}");
    }
    store.run(&["get", "d/file", "got/file"]);
}

#[test]
fn an_incomplete_local_copy_is_private() {
    let mode = |path: &Path| fs::metadata(path).expect("it exists").mode() & 0o777;
    let store = slow_store();
    let (tree, file) = (store.path("tree"), store.path("tree/file"));
    fs::create_dir(&tree).expect("room");
    store.make_file("tree/file", FILE_BYTES);
    for (of_tree, of_file) in [(0o700, 0o600), (0o755, 0o644)] {
        fs::set_permissions(&tree, Permissions::from_mode(of_tree)).expect("it belongs to the test");
        fs::set_permissions(&file, Permissions::from_mode(of_file)).expect("it belongs to the test");
        let name = format!("d/{of_tree:o}");
        store.run(&["put", "-r", "tree", &name]);
        let back = store.path(&format!("new/back{of_tree:o}"));
        let mut command = store.command(&["get", "-r", &name]);
        let mut child = command.arg(&back).spawn().expect("the program");
        let half = wait_for_temporary_file(&back);
        assert_eq!((mode(&back), mode(&half)), (0o700, 0o600));
        assert!(wait(&mut child).success());
        assert_eq!((mode(&back), mode(&back.join("file"))), (of_tree, of_file));
        // This also holds if the copy replaces a file that others may read.
        fs::create_dir_all(store.path("one"))
            .and_then(|()| fs::write(store.path("one/back"), ""))
            .expect("room");
        let one = ["get", &format!("{name}/file"), "one/back", "--force"];
        let mut child = store.command(&one).spawn().expect("the program");
        assert_eq!(mode(&wait_for_temporary_file(&store.path("one"))), 0o600);
        assert!(wait(&mut child).success());
        assert_eq!(mode(&store.path("one/back")), of_file);
    }
}

#[test]
fn links_replace_files_and_links_but_not_directories() {
    let store = store(&[1]);
    fs::create_dir_all(store.path("tree/directory")).expect("room");
    fs::write(store.path("tree/file"), "file").expect("room");
    symlink("first", store.path("tree/link")).expect("room");
    store.run(&["put", "-r", "tree", "d/"]);
    store.run(&["get", "-r", "d/tree", "back"]);
    let replace = |name: &str, remove: fn(&Path) -> std::io::Result<()>| {
        remove(&store.path("tree").join(name)).expect("it belongs to the test");
        symlink("second", store.path("tree").join(name)).expect("room");
    };
    replace("link", |path| fs::remove_file(path));
    replace("file", |path| fs::remove_file(path));
    assert!(fail(store.command(&["put", "-r", "tree", "d/"]), 1).contains("2 files already exist"));
    for command in
        [&["put", "-r", "tree", "d/", "--replace"][..], &["get", "-r", "d/tree", "back", "--force"]]
    {
        store.run(command);
    }
    assert_eq!(tree_entries(&store.path("back")), tree_entries(&store.path("tree")));
    // A file or a link does not replace a directory.
    replace("directory", |path| fs::remove_dir(path));
    assert!(fail(store.command(&["put", "-r", "tree", "d/", "--replace"]), 1).contains("one file failed"));
    assert!(!store.run(&["ls", "-aR"]).contains(".starfish-"));
    assert_eq!(store.stripe_files().len(), 0);
}

#[test]
fn a_tree_stays_below_its_destination() {
    let store = store(&[1]);
    let (outside, precious) = (store.path("outside"), store.path("outside/precious"));
    fs::create_dir_all(store.path("tree/directory")).expect("room");
    fs::create_dir(&outside).expect("room");
    for name in ["tree/directory/precious", "tree/file", "tree/new"] {
        fs::write(store.path(name), "stored").expect("room");
    }
    store.run(&["put", "-r", "tree", "d/"]);
    // Puts links to a directory, to a file and to a missing file at places where the copied tree has a directory and
    // files.
    let plant = || {
        let _ = fs::remove_dir_all(store.path("back"));
        fs::create_dir(store.path("back")).expect("room");
        fs::write(&precious, "precious").expect("room");
        fs::set_permissions(&precious, Permissions::from_mode(0o640)).expect("it belongs to the test");
        fs::set_permissions(&outside, Permissions::from_mode(0o711)).expect("it belongs to the test");
    };
    let check = |command: &[&str]| {
        let found = fs::metadata(&precious).expect("it exists");
        assert_eq!(fs::read_to_string(&precious).expect("text"), "precious", "{command:?}");
        assert_eq!(
            (found.mode() & 0o777, fs::metadata(&outside).expect("it exists").mode() & 0o777),
            (0o640, 0o711)
        );
        assert_eq!(fs::read_dir(&outside).expect("it exists").count(), 1, "{command:?}");
    };
    let planted = [("directory", &*outside), ("file", &*precious), ("new", Path::new("../outside/new"))];
    for (name, target) in planted {
        plant();
        let link = store.path("back").join(name);
        symlink(target, &link).expect("room");
        let command = ["get", "-r", "d/tree", "back"];
        let stderr = fail(store.command(&command), 1);
        assert!(stderr.contains(&format!("back/{name}")) && stderr.contains("--force"), "{name}: {stderr}");
        assert!(link.is_symlink(), "{name}");
        check(&command);
        for option in ["--force", "--resume"] {
            plant();
            symlink(target, &link).expect("room");
            let command = ["get", "-r", "d/tree", "back", option];
            store.run(&command);
            check(&command);
            assert_eq!(
                tree_entries(&store.path("back")),
                tree_entries(&store.path("tree")),
                "{name} {option}"
            );
        }
    }
    // A link that the user names as the destination is followed.
    symlink("back", store.path("named")).expect("room");
    store.run(&["get", "-r", "d/tree", "named", "--force"]);
    assert!(store.path("named").is_symlink());
}

#[test]
fn mkdir_follows_links_to_directories() {
    let store = store(&[1]);
    fs::create_dir_all(store.path("tree/real")).expect("room");
    symlink("real", store.path("tree/link")).expect("room");
    symlink("nowhere", store.path("tree/dangling")).expect("room");
    fs::write(store.path("tree/file"), "text").expect("room");
    store.run(&["put", "-r", "tree"]);
    store.run(&["mkdir", "-p", "tree/link", "tree/link/one/two"]);
    assert_eq!(store.run(&["ls", "-R", "tree/real"]), "tree/real/one/\ntree/real/one/two/\n");
    for path in ["tree/file", "tree/file/sub", "tree/dangling"] {
        let stderr = store.run_failing(&["mkdir", "-p", path]);
        assert!(stderr.contains("already exists") && !stderr.contains("-p"), "{path}: {stderr}");
    }
    assert!(store.run_failing(&["mkdir", "tree/real"]).contains("With -p"));
}

#[test]
fn one_failing_path_does_not_stop_mv_or_fsck_of_the_others() {
    let store = store(&[1]);
    for name in ["one", "two", "three"] {
        fs::write(store.path(name), name).expect("room");
        store.run(&["put", name]);
    }
    let text = store.run_failing(&["mv", "one", "missing", "two", "none*", "d"]);
    assert!(text.contains("missing: no such file") && text.contains("none*: no file matches"), "{text}");
    assert_eq!(store.run(&["ls", "-R"]), "d/\nd/one\nd/two\nthree\n");
    // With several sources, the destination must be a directory, even if only one source exists.
    let text = store.run_failing(&["mv", "three", "missing", "new"]);
    assert!(text.contains("missing: no such file") && text.contains("new: no such directory"), "{text}");
    let text = store.run_failing(&["mv", "three", "nowhere/three"]);
    assert!(text.contains("nowhere/: no such directory") && text.contains("mkdir -p"), "{text}");
    assert_eq!(store.run(&["ls", "-R"]), "d/\nd/one\nd/two\nthree\n");
    let output = finish(store.command(&["fsck", "missing", "d/one", "three"]));
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("missing: no such file") && text.contains("2 files, 8 B read back"), "{text}");
}

#[test]
fn patterns_skip_entries_that_are_not_directories() {
    let store = store(&[1]);
    store.make_file("x", 10);
    store.run(&["mkdir", "-p", "g/d1", "g/d2"]);
    for name in ["g/d1/x", "g/d2/x", "g/file"] {
        store.run(&["put", "x", name]);
    }
    // A link to a file, and a link to itself.
    fs::create_dir(store.path("links")).expect("room");
    for (name, target) in [("one", "../g/file"), ("round", "round")] {
        symlink(target, store.path("links").join(name)).expect("a link");
    }
    store.run(&["put", "-r", "links", "g/"]);
    store.run(&["mv", "g/links/one", "g/links/round", "g"]);
    assert_eq!(lines(&store.run(&["ls", "g/*/x"])), ["g/d1/x", "g/d2/x"]);
    for command in ["ls", "get"] {
        assert!(store.run_failing(&[command, "g/file/*"]).contains("no file matches"));
    }
    fs::create_dir(store.path("got")).expect("room");
    store.run(&["get", "g/d1*/x", "got"]);
    store.run(&["mv", "g/*1/x", "g/d1/y"]);
    store.run(&["rm", "g/*/x"]);
    assert_eq!(lines(&store.run(&["ls", "g/*/?"])), ["g/d1/y"]);
}

#[test]
fn a_dangling_link_is_listed_and_reported_with_its_target() {
    let store = store(&[1]);
    fs::create_dir(store.path("links")).expect("room");
    symlink("no/such", store.path("links/dangling")).expect("a link");
    store.run(&["put", "-r", "links"]);
    assert_eq!(store.run(&["ls", "links/dangling"]), "links/dangling\n");
    assert!(store.run(&["ls", "-l", "links/dangling"]).ends_with("links/dangling -> no/such\n"));
    for command in [&["get", "links/dangling", "got"][..], &["cat", "links/dangling"]] {
        let stderr = store.run_failing(command);
        assert!(stderr.contains("it is a link to no/such, which does not exist"), "{stderr}");
    }
    store.run(&["get", "-r", "links/dangling", "copy"]);
    assert_eq!(fs::read_link(store.path("copy")).expect("a link"), Path::new("no/such"));
}

#[test]
fn recent_unfinished_files_are_reported_with_a_remedy() {
    let store = store(&[1]);
    let mut child = store.command(&["put", "-", "d/killed"]).stdin(Stdio::piped()).spawn().expect("one");
    let begun = Instant::now();
    while store.run(&["ls", "-a", "d"]).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
    }
    child.kill().expect("a child process of the test");
    wait(&mut child);
    let report = || String::from_utf8(finish(store.command(&["rm", "--unfinished"])).stderr).expect("text");
    let left = report();
    assert!(left.contains("1 file is younger than 1h and was kept"), "{left}");
    assert!(left.contains("--older-than 0s"), "{left}");
    while !store.run(&["ls", "-a", "d"]).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it stays");
        store.run(&["rm", "--unfinished", "--older-than", "0s"]);
    }
    assert_eq!(report(), "");
}

#[test]
fn an_empty_name_is_rejected() {
    let store = store(&[1]);
    store.make_file("local", 10);
    store.run(&["put", "local", "d/local"]);
    for command in [
        &["put", "local", ""][..],
        &["put", "-r", "local", ""],
        &["mv", "d/local", ""],
        &["get", "-r", "", "copy"],
        &["get", "", "copy"],
        &["ls", ""],
        &["rm", "-r", ""],
        &["mkdir", "-p", ""],
        &["cat", ""],
    ] {
        let stderr = fail(store.command(command), 2);
        assert!(stderr.contains("it is empty"), "{command:?}: {stderr}");
    }
    assert_eq!(store.run(&["ls", "-R"]), "d/\nd/local\n");
}

#[test]
fn an_agent_that_is_down_is_named_and_affects_only_its_files() {
    let mut store = store(&[1, 1]);
    store.make_file("local", 600_000);
    store.run(&["put", "local", "d/file", "--block", "64KiB"]);
    let doctor = store.run(&["doctor", "--quick"]);
    let metadata_agent = doctor
        .split("agent ")
        .find_map(|rest| rest.split_once(" is its metadata server"))
        .expect("a metadata agent")
        .0;
    let agent = store.agents.iter_mut().find(|agent| agent.address != metadata_agent).expect("the other one");
    let address = agent.address.clone();
    agent.child.kill().and_then(|()| agent.child.wait()).expect("it ends");
    // All names can still be listed.
    assert_eq!(store.run(&["ls"]), "d/\n");
    assert!(store.run(&["ls", "-l", "d"]).contains(" 600000 "));
    store.run(&["mkdir", "-p", "other/directory"]);
    store.run(&["mv", "other", "d/other"]);
    assert_eq!(store.run(&["ls", "-R", "d"]), "d/file\nd/other/\nd/other/directory/\n");
    store.run(&["rm", "-r", "d/other"]);
    for command in [&["get", "d/file", "rest"][..], &["get", "-r", "d", "tree"], &["get", "d/f*", "."]] {
        let output = finish(store.command(&[command, &["--skip-damaged"]].concat()));
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("could not be read") && stderr.contains(&address), "{command:?}: {stderr}");
        assert!(!stderr.contains("damaged") && !stderr.contains("fsck"), "{command:?}: {stderr}");
    }
    assert_eq!(fs::metadata(store.path("rest")).expect("a file").len(), 600_000);
}
