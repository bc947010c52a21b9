//! Refusals before any work, and warnings: invalid arguments, options without effect, and probable mistakes.

use std::fs::File;
use std::process::Command;

use crate::common::{Agent, Store, contents, fail, finish, key_file, starfish, succeed};

/// Returns the message of an agent that must not start with these options.
fn refused(options: &[&str]) -> String {
    fail(starfish([&["agent", "--listen", "127.0.0.1:0"], options].concat()), 2)
}

/// A machine's description is rejected as a plan, a disk as a machine, a file as a directory.
#[test]
fn an_argument_of_the_wrong_kind_is_described() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (machine, disk, plan) = (path("machine.toml"), path("disk.toml"), path("plan.toml"));
    std::fs::write(&machine, succeed(starfish(["machines", "golden"]))).expect("room");
    std::fs::write(&disk, include_str!("../../../../../machines/disks/streaming-20.toml")).expect("room");
    let told = fail(starfish(["run", &machine]), 2);
    assert!(told.contains("describes a machine, not a plan") && told.contains("--machine"), "{told}");
    let told = fail(starfish(["simulate", "--machine", &disk]), 2);
    assert!(
        told.contains("describes a disk, not a machine") && told.contains("--set disks.model="),
        "{told}"
    );
    let head = "name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]\n";
    std::fs::write(&plan, format!("{head}[vary]\nnodes.io = [1, 2]\n")).expect("room");
    let told = fail(starfish(["run", &plan]), 2);
    assert!(told.contains("set = { \"nodes.io\" = ... }"), "{told}");
    std::fs::write(&plan, head).expect("room");
    let told = fail(starfish(["run", &plan, "--out", &machine]), 1);
    assert!(told.contains("it is a file, not a directory"), "{told}");
    let store = Store::start(&[1]);
    store.make_file("local", 10);
    let told = fail(store.command(&["put", "local", "--recursive"]), 2);
    assert!(told.contains("it is a file, not a directory") && told.contains("--recursive"), "{told}");
}

#[test]
fn an_agent_rejects_missing_foreign_and_duplicate_disks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (root, other) = (path("mounted"), path("other"));
    // Not a failure of usage: the disk may be mounted in a moment, and the caller may try again.
    let not_yet =
        |options: &[&str]| fail(starfish([&["agent", "--listen", "127.0.0.1:0"], options].concat()), 1);
    let told = not_yet(&["--root", &root]);
    assert!(told.contains("no such directory") && told.contains("mounted?"), "{told}");
    assert!(told.contains("--create") && !std::path::Path::new(&root).exists(), "{told}");
    // `Agent` adds --create.
    drop(Agent::start(vec![root.clone().into()], &[]));
    // A mount point without its disk, and a disk that is not marked for use.
    std::fs::create_dir_all(format!("{other}/lost+found")).expect("room");
    for stray in [None, Some("NOTES")] {
        stray
            .iter()
            .for_each(|stray| std::fs::write(format!("{other}/{stray}"), "of something else").expect("room"));
        let told = not_yet(&["--root", &root, &other]);
        assert!(told.contains(&format!("--root {other}: it is not a Starfish disk")), "{told}");
        assert!(told.contains("mounted?") && told.contains("add --create"), "{told}");
    }
    for twice in [&root, &format!("{other}/../mounted")] {
        std::fs::create_dir_all(&other).expect("room");
        let told = refused(&["--root", &root, twice]);
        assert!(told.contains(&format!("the same directory as {root}")), "{told}");
    }
    // A copy of a disk, used together with it: data written to one would be missing in the other.
    let copy = path("copied");
    std::fs::create_dir(&copy).expect("room");
    for root in [&root, &copy] {
        std::fs::write(format!("{root}/.starfish.disk"), "0123456789abcdef\n").expect("room");
    }
    let told = not_yet(&["--root", &root, &copy]);
    assert!(
        told.contains(&*root) && told.contains(&*copy) && told.contains("is a copy of the other"),
        "{told}"
    );
    let told = refused(&["--root", &other, "--port", "3"]);
    assert!(told.contains("'--listen'") && !told.contains("--prefetch"), "{told}");
    let told = refused(&["--root", &other, &other, "--create"]);
    assert!(told.contains("the same directory"), "{told}");
    let told = fail(starfish(["agent", "--listen", "127.0.0.1:0", "--root", "/proc", "--create"]), 1);
    assert!(told.contains("/proc: no file can be created in it") && !told.contains("exist"), "{told}");
}

#[test]
fn an_empty_option_is_rejected_and_an_empty_variable_is_ignored() {
    let store = Store::start(&[1]);
    for (option, value) in
        [("--agents", ""), ("--agents", " "), ("--agents", ","), ("--key", ""), ("--trace", "")]
    {
        let told = fail(store.command(&["ls", option, value]), 2);
        assert!(told.contains(&format!("{option}: it is empty")) && told.contains("leave"), "{told}");
    }
    let told = fail(store.command(&["bench", "--agents", ""]), 2);
    assert!(told.contains("--agents: it is empty"), "{told}");
    // Empty variables name no file.
    std::fs::create_dir(store.path("starfish")).expect("room");
    std::fs::copy(key_file(), store.path("starfish/key")).expect("room");
    for variable in ["STARFISH_KEY_FILE", "STARFISH_TRACE"] {
        let mut command = store.command(&["ls"]);
        command.env("XDG_CONFIG_HOME", store.directory.path()).env(variable, "");
        assert!(finish(command).status.success(), "{variable}");
    }
    let mut command = starfish(["ls", "--agents", &store.agents[0].address]);
    command.env("STARFISH_AGENTS", "");
    assert!(finish(command).status.success());
}

#[test]
fn no_output_replaces_its_input() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (machine, trace, plan) = (path("machine.toml"), path("run.tlv"), path("plan.toml"));
    std::fs::write(&machine, succeed(starfish(["machines", "golden"]))).expect("room");
    let simulate = [
        "simulate",
        "--pattern",
        "rb",
        "--file-size",
        "64KiB",
        "--trials",
        "1",
        "--method",
        "disk-directed",
        "--layout",
        "contiguous",
        "--machine",
        &machine,
    ];
    succeed(starfish([&simulate[..], &["--trace", &trace]].concat()));
    std::fs::write(&plan, "name = \"plan\"\npattern = \"rb\"\n").expect("room");
    let same = format!("{}/./machine.toml", directory.path().display());
    for (input, command) in [
        (&machine, [&simulate[..], &["--trace", &same]].concat()),
        (&trace, vec!["view", &trace, "--html", &trace]),
        (&trace, vec!["trace", "export", &trace, "--to", "csv", "-o", &trace]),
        (&plan, vec!["run", &plan, "--html", &plan]),
    ] {
        let before = std::fs::read(input).expect("a file");
        let told = fail(starfish(command), 2);
        assert!(told.contains("it is both input and output"), "{told}");
        assert!(std::fs::read(input).expect("a file") == before, "{input} has been changed");
    }
}

#[test]
fn an_agent_rejects_a_cache_larger_than_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().to_str().expect("UTF-8");
    let told = refused(&["--root", root, "--cache", "100TiB"]);
    assert!(told.contains("--cache 100.0 TiB: this computer has ") && told.contains(" of memory"), "{told}");
    let told = refused(&["--root", root, "--prefetch", "99999999999"]);
    assert!(told.contains("--prefetch 99999999999: the cache holds only 256 blocks"), "{told}");
}

#[test]
fn invalid_and_inefficient_block_sizes_are_reported() {
    let store = Store::start(&[1]);
    store.make_file("local", 300);
    for block in ["0", "5MiB"] {
        let told = fail(store.command(&["put", "local", "--block", block]), 2);
        assert!(told.contains("from 1 B to 4 MiB") && told.contains("--block-max"), "{told}");
    }
    let told = fail(store.command(&["put", "local", "--block", "-5"]), 2);
    assert!(told.contains("invalid value '-5'") && told.contains("number of bytes"), "{told}");
    let told = store.run_failing(&["put", "local", "--block", "4MiB"]);
    assert!(told.contains("at most 1048576") && told.contains("`--block-max`"), "{told}");
    let output = finish(store.command(&["put", "local", "--block", "3"]));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && told.contains("--block 3 B: each block is a separate request"),
        "{told}"
    );
}

#[test]
fn holes_need_no_free_space() {
    let store = Store::start(&[1, 2]);
    let huge = File::create(store.path("huge")).expect("room");
    huge.set_len(15 << 40).expect("it has holes only");
    for method in ["traditional", "disk-directed"] {
        store.run(&["put", "huge", method, "--method", method]);
    }
    assert_eq!(store.run(&["ls"]), "disk-directed\ntraditional\n");
}

#[test]
fn a_closed_standard_input_is_not_an_empty_file() {
    let store = Store::start(&[1]);
    let agents = &store.agents[0].address;
    let script = format!("exec \"$0\" put - x --agents {agents} <&-");
    let mut closed = Command::new("sh");
    closed.args(["-c", &script, env!("CARGO_BIN_EXE_starfish")]);
    let output = closed.output().expect("a shell");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("standard input: it is closed"), "{told}");
    assert_eq!(store.run(&["ls"]), "");
    // An empty input is an empty file.
    succeed(store.command(&["put", "-", "empty"]));
    assert!(store.run(&["stat", "empty"]).contains("bytes     0\n"));
}

#[test]
fn put_warns_if_the_new_name_is_that_of_a_local_file() {
    let store = Store::start(&[1]);
    std::fs::write(store.path("a.dat"), contents(10)).expect("room");
    std::fs::write(store.path("b.dat"), contents(20)).expect("room");
    let output = finish(store.command(&["put", "a.dat", "b.dat"]));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("a.dat will be put as b.dat") && told.contains("only one file"), "{told}");
    for arguments in [&["put", "a.dat", "c.dat"][..], &["put", "a.dat", "a.dat"]] {
        assert_eq!(finish(store.command(arguments)).stderr, b"", "{arguments:?}");
    }
}

#[test]
fn options_without_effect_are_rejected() {
    for option in ["--outstanding=2", "--scheduling=fcfs", "--thread-per-request", "--prefetch=2"] {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        let told = fail(starfish(["simulate", "--method", "disk-directed", option]), 2);
        assert!(told.contains(&format!("{name}: it has no effect")), "{told}");
    }
    for option in ["--shape=0x0", "--grid=3x3"] {
        let told = fail(starfish(["simulate", "--pattern", "rb,ra", option]), 2);
        assert!(told.contains("no selected pattern is a matrix"), "{told}");
    }
    for (arguments, why) in [
        ("--pattern rb --method traditional --memget-writes", "--memget-writes: no data are written"),
        ("--pattern wb --method traditional,two-phase --prefetch 0", "--prefetch: no data are read"),
        ("--pattern rb --method traditional --queued always", "--queued: the traditional method makes no"),
    ] {
        let told = fail(starfish(["simulate"].into_iter().chain(arguments.split(' '))), 2);
        assert!(told.contains(why) && told.contains("another --method or --pattern"), "{told}");
    }
    let told = fail(starfish(["simulate", "--trials", "0"]), 2);
    assert!(told.contains("expected a whole number, 1 or more") && !told.contains("4294967295"), "{told}");
    let told = fail(starfish(["simulate", "--file-size", "8", "--record", "64"]), 2);
    assert!(told.contains("make it 64 bytes"), "{told}");
}

#[test]
fn a_usage_line_has_the_given_options_and_no_variables() {
    for (arguments, usage) in [
        (&["stat"][..], "Usage: starfish stat <NAME>\n"),
        (&["get", "--hsh", "x"], "Usage: starfish get --hash <NAME> [LOCAL]\n"),
        (&["stat", "--agents", "a:1"], "Usage: starfish stat --agents <HOST:PORT,...> <NAME>\n"),
    ] {
        let mut command = starfish(arguments);
        command.env("STARFISH_AGENTS", "a:1");
        let told = fail(command, 2);
        assert!(told.contains(usage), "{told}");
    }
    // Help still names the variables.
    let help = String::from_utf8(succeed(starfish(["stat", "--help"]))).expect("text");
    assert!(help.contains("[env: STARFISH_AGENTS=]"), "{help}");
}

#[test]
fn zero_disks_are_rejected() {
    for arguments in [&["put", "local", "--disks", "0"][..], &["mount", "directory", "--disks", "0"]] {
        let told = fail(starfish(arguments), 2);
        assert!(told.contains("'--disks <N>': expected a whole number, 1 or more"), "{told}");
    }
}

#[test]
fn errors_name_the_missing_directory_or_the_overlong_name() {
    let store = Store::start(&[1]);
    store.make_file("local", 300);
    store.run(&["put", "local"]);
    let told = fail(store.command(&["get", "local", "no/such/copy"]), 2);
    assert!(told.contains("the directory no/such does not exist") && !told.contains(".starfish"), "{told}");
    let long = "n".repeat(5000);
    for arguments in [&["put", "local", &long][..], &["get", &long, "copy"]] {
        let told = String::from_utf8(finish(store.command(arguments)).stderr).expect("text");
        assert!(told.contains("too long") && told.len() < 600, "{told}");
    }
    let told = store.run_failing(&["put", "local", &long[..256]]);
    assert!(told.contains("255 bytes"), "{told}");
}

#[test]
fn a_removed_disk_is_reported_as_a_missing_disk_directory() {
    let store = Store::start(&[1, 1]);
    let root = &store.agents[1].roots[0];
    std::fs::remove_dir_all(root).expect("it is there");
    let output = finish(store.command(&["doctor", "--quick"]));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(&format!("agent {}: disk directory ", store.agents[1].address)), "{told}");
    assert!(told.contains("removed after the agent started") && told.contains("mounted?"), "{told}");
    assert!(!told.contains("no answer") && !told.contains("starfish ls"), "{told}");
}

#[test]
fn ranges_are_given_in_words_and_cp_suggests_put_and_get() {
    let told = fail(starfish(["run", "plan.toml", "--threads", "0"]), 2);
    assert!(told.contains("'0' for '--threads <N>': expected a number from 1 to 1024"), "{told}");
    let told = fail(starfish(["replay", "log", "--first", "0"]), 2);
    assert!(told.contains("expected at least 1") || told.contains("expected a number from 1"), "{told}");
    let told = fail(starfish(["cp", "a", "b"]), 2);
    assert!(told.contains("'put', 'get'") && !told.contains("completions"), "{told}");
}
