//! Programs that end early: interrupted, without a reader of their output, without agents.

mod common;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{FS2PFS, Home, MYCAT, PFS2FS, PFSBZIP2, PFSSORT, text, wait};

#[test]
fn an_interrupted_program_leaves_no_files() {
    let home = Home::start(2);
    home.make("text", &text(100_000));
    let kept = (home.striped(), home.local());
    for (signal, program, arguments) in [
        ("INT", FS2PFS, &["-", "new"][..]),
        ("TERM", MYCAT, &["text", "-", "-o", "pfs:new"]),
        ("INT", MYCAT, &["text", "-", "-o", "new"]),
        ("INT", PFSSORT, &["pfs:text", "-", "-S", "256KiB", "-o", "pfs:new"]),
        ("HUP", PFSSORT, &["text", "-", "-S", "256KiB", "-o", "new"]),
        ("INT", PFSBZIP2, &["-", "pfs:new"]),
    ] {
        // Standard input does not end, so the program never finishes.
        let mut command = home.command(program, arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program");
        let start = Instant::now();
        let begun =
            || (home.striped(), home.local()) != kept || arguments.contains(&"new") && program == PFSSORT;
        while !begun() {
            assert!(start.elapsed() < Duration::from_secs(30), "{program} {arguments:?}");
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(50));
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("a kill command").success());
        assert_eq!(wait(&mut child).code(), Some(130), "{program} {arguments:?}");
        let mut stderr = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        assert_eq!(stderr, "", "{program} {arguments:?}");
        assert_eq!((home.striped(), home.local()), kept, "{program} {arguments:?}");
    }
}

/// `starfish rm --unfinished` removes the hidden file.
#[test]
fn a_killed_program_leaves_only_a_hidden_file() {
    let home = Home::start(2);
    for (program, arguments) in [(FS2PFS, &["-", "new"][..]), (MYCAT, &["-", "-o", "pfs:new"])] {
        let mut child = home.command(program, arguments).stdin(Stdio::piped()).spawn().expect("it");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(&vec![0; 12 << 20]).expect("it is read");
        child.kill().expect("it is ours");
        assert!(!wait(&mut child).success());
    }
    let left = home.striped();
    assert!(left.len() == 2 && left.iter().all(|name| node::is_hidden(name.as_bytes())), "{left:?}");
}

/// The input exceeds the limit of buffered data, so the program has begun to send data to the agents.
#[test]
fn an_interrupted_replacement_leaves_the_old_file() {
    let home = Home::start(2);
    std::fs::write(home.path("old"), text(1000)).expect("room");
    home.succeed(FS2PFS, &["old"]);
    for (program, arguments) in [
        (FS2PFS, &["-", "old", "--force"][..]),
        (MYCAT, &["-", "-o", "pfs:old", "--force"]),
        (MYCAT, &["-", "-o", "pfs:old", "--force", "--block", "8KiB"]),
        (PFSBZIP2, &["-", "pfs:old", "--force"]),
    ] {
        let mut child = home.command(program, arguments).stdin(Stdio::piped()).spawn().expect("it");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(&vec![0; 12 << 20]).expect("it is read");
        let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
        assert!(sent.expect("a kill command").success());
        assert_eq!(wait(&mut child).code(), Some(130), "{program} {arguments:?}");
        assert_eq!(home.striped(), ["old"], "{program} {arguments:?}");
        assert!(home.succeed(MYCAT, &["pfs:old"]) == text(1000), "{program} {arguments:?}");
    }
}

#[test]
fn programs_succeed_if_their_output_is_closed_early() {
    let home = Home::start(2);
    home.make("text", &text(300_000));
    for (program, arguments) in [(MYCAT, ["pfs:text"]), (PFSSORT, ["pfs:text"]), (PFS2FS, ["text"])] {
        let mut child = home.command(program, arguments).spawn().expect("the program");
        let mut few = [0; 10];
        child.stdout.take().expect("piped").read_exact(&mut few).expect("some output");
        assert!(wait(&mut child).success(), "{program}");
    }
}

#[test]
fn local_files_are_sorted_without_agents() {
    let home = Home::start(1);
    std::fs::write(home.path("text"), "b\na\n").expect("a file");
    let mut command = home.command(PFSSORT, ["text"]);
    command
        .env_remove("STARFISH_AGENTS")
        .env("XDG_CONFIG_HOME", "/proc/nonexistent")
        .env("XDG_STATE_HOME", "/nonexistent");
    assert_eq!(common::finish(command).stdout, b"a\nb\n");
    let mut command = home.command(PFSSORT, ["pfs:text"]);
    command
        .env_remove("STARFISH_AGENTS")
        .env("XDG_CONFIG_HOME", "/proc/nonexistent")
        .env("XDG_STATE_HOME", "/nonexistent");
    let stderr = String::from_utf8(common::finish(command).stderr).expect("text");
    assert!(stderr.contains("STARFISH_AGENTS"), "{stderr}");
}
