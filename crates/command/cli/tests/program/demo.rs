//! The demo, and the output of the program that new users see first.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::{fail, finish, starfish, succeed, wait};

fn left_in(directory: &std::path::Path) -> usize {
    std::fs::read_dir(directory).expect("a directory").count()
}

#[test]
fn the_demo_copies_a_file_unchanged_and_leaves_no_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let temporary = directory.path().join("tmp");
    std::fs::create_dir(&temporary).expect("a directory");
    let file = directory.path().join("some file");
    std::fs::write(&file, crate::common::contents(2_000_001)).expect("a file");
    let mut demo = starfish(["demo", "--disk-model", "none", file.to_str().expect("UTF-8")]);
    demo.env("TMPDIR", &temporary);
    let text = String::from_utf8(succeed(demo)).expect("text");
    let hash = blake3::hash(&crate::common::contents(2_000_001)).to_string();
    assert!(text.contains(&format!("identical blake3 {hash}")), "{text}");
    assert!(text.contains("measured: these four agents") && text.contains("the 1996 machine"), "{text}");
    assert!(text.matches(" MiB/s").count() >= 12, "{text}");
    assert_eq!(left_in(&temporary), 0);
}

#[test]
fn modelled_disks_are_not_faster_than_their_simulation() {
    let text = String::from_utf8(succeed(starfish(["demo", "--file-size", "4MiB"]))).expect("text");
    assert!(text.contains("as slow as streaming, 20 MiB/s"), "{text}");
    let row = |name: &str| {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        let words = line[name.len()..].split_whitespace().filter_map(|word| word.parse().ok());
        words.collect::<Vec<f64>>()
    };
    let measured = row("measured: these four agents");
    let simulated = row("simulated: the same set-up");
    assert_eq!((measured.len(), simulated.len()), (4, 4), "{text}");
    // A busy computer may be slow, but no modelled disk is faster than its model.
    for (measured, simulated) in measured.iter().zip(&simulated) {
        assert!(*measured <= 1.1 * simulated, "{text}");
    }
}

#[test]
fn an_interrupted_demo_leaves_no_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut demo = starfish(["demo", "--file-size", "64MiB"]);
    let mut demo = demo.env("TMPDIR", directory.path()).spawn().expect("the program");
    while left_in(directory.path()) == 0 && demo.try_wait().expect("a child process of the test").is_none() {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(300));
    let sent = Command::new("kill").args(["-s", "INT", &demo.id().to_string()]).status();
    assert!(sent.expect("a kill command").success());
    assert_eq!(wait(&mut demo).code(), Some(130));
    assert_eq!(left_in(directory.path()), 0);
}

#[test]
fn the_error_of_an_agent_that_cannot_start_is_shown() {
    let mut demo = starfish(["demo", "--file-size", "1MiB"]);
    demo.env("STARFISH_DRIVER", "kqueue");
    let error = fail(demo, 1);
    assert!(error.contains("agent 0 ended") && error.contains("no driver is called `kqueue`"), "{error}");
}

#[test]
fn the_help_of_every_command_has_examples() {
    let help = String::from_utf8(succeed(starfish(["--help"]))).expect("text");
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The description of a command may continue on the next line.
    let first = commands.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names: Vec<&str> = first.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 12, "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = String::from_utf8(succeed(starfish([name, "--help"]))).expect("text");
        assert!(help.contains("Examples:\n  starfish "), "{name}: {help}");
    }
}

#[test]
fn completions_and_machines_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let text = String::from_utf8(succeed(starfish(["completions", shell]))).expect("text");
        assert!(text.contains("STARFISH_COMPLETE=") && text.contains("starfish"), "{shell}");
    }
    assert!(fail(starfish(["completions", "bash", "ls"]), 2).contains("pfsgrep"));
    let list = String::from_utf8(succeed(starfish(["machines"]))).expect("text");
    assert!(list.contains("starfish-1996") && list.contains("hp97560"), "{list}");
    let rows: serde_json::Value =
        serde_json::from_slice(&succeed(starfish(["machines", "--format", "json"]))).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(list.lines().count()));
    assert_eq!((&rows[0]["name"], &rows[0]["io_nodes"]), (&"starfish-1996".into(), &16.into()));
    let csv = String::from_utf8(succeed(starfish(["machines", "--format", "csv"]))).expect("text");
    assert!(csv.starts_with("kind,name,title,compute_nodes,") && csv.contains("\ndisk,hp97560,"), "{csv}");
    assert!(fail(starfish(["machines", "golden", "--format", "csv"]), 2).contains("cannot be used with"));
    let one = String::from_utf8(succeed(starfish(["machines", "starfish-1996"]))).expect("text");
    assert!(one.contains("[network]"), "{one}");
    assert!(fail(starfish(["machines", "cray"]), 2).contains("cray"));
}

#[test]
fn patterns_are_listed_and_drawn() {
    let text = |arguments: &[&str]| String::from_utf8(succeed(starfish(arguments))).expect("text");
    assert_eq!(text(&["patterns"]).lines().count(), 19);
    assert!(text(&["patterns", "rnc", "--nodes", "3", "--shape", "1x6"]).ends_with("\n\n  0 1 2 0 1 2\n"));
    assert!(text(&["patterns", "rbb", "--nodes", "8", "--grid", "1x8"]).contains("\n  0 1 2 3 4 5 6 7\n"));
    for (expected, arguments) in [
        ("letter", &["patterns", "rx"][..]),
        ("1 to 4096 records", &["patterns", "rb", "--shape", "0x4"]),
        ("1 to 4096 records", &["patterns", "rb", "--shape", "65x64"]),
        ("12 places does not fit 4 compute nodes", &["patterns", "rbb", "--grid", "4x3"]),
        ("it has no effect", &["patterns", "rb", "--grid", "2x2"]),
        ("name only one", &["patterns", "rb", "rc", "--format", "svg"]),
        ("PATTERN", &["patterns", "--nodes", "3"]),
    ] {
        let stderr = fail(starfish(arguments), 2);
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn an_impossible_demo_is_rejected_before_it_starts() {
    for (arguments, part) in [
        (["demo", "no/such/file"].as_slice(), "no/such/file: No such file"),
        (&["demo", "--file-size", "15TiB"], "it needs 45.0 TiB, and the disks have room for only"),
    ] {
        let output = finish(starfish(arguments));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("blake3"), "{stderr}");
    }
    let empty = tempfile::NamedTempFile::new().expect("a temporary file");
    let path = empty.path().to_str().expect("UTF-8");
    assert!(fail(starfish(["demo", path]), 2).contains("it is empty"));
    assert!(fail(starfish(["demo", "--file-size", "0"]), 2).contains("expected at least one byte"));
}
