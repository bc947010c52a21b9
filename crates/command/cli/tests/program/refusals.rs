//! Commands that the program rejects before it does any work, and warnings: invalid arguments, options without effect,
//! and probable mistakes.

use std::fs::File;
use std::process::Command;

use crate::common::{Agent, Store, contents, fail, finish, key_file, starfish, succeed};

/// Returns the message of an agent that must reject these options.
fn refused(options: &[&str]) -> String {
    fail(starfish([&["agent", "--listen", "127.0.0.1:0"], options].concat()), 2)
}

/// For example, the message for a machine in place of a plan says that the file describes a machine.
#[test]
fn an_argument_of_the_wrong_kind_is_described() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (machine, disk, plan) = (path("machine.toml"), path("disk.toml"), path("plan.toml"));
    std::fs::write(&machine, succeed(starfish(["machines", "golden"]))).expect("room");
    std::fs::write(&disk, include_str!("../../../../../machines/disks/streaming-20.toml")).expect("room");
    let stderr = fail(starfish(["run", &machine]), 2);
    assert!(stderr.contains("describes a machine, not a plan") && stderr.contains("--machine"), "{stderr}");
    let stderr = fail(starfish(["simulate", "--machine", &disk]), 2);
    assert!(
        stderr.contains("describes a disk, not a machine") && stderr.contains("--set disks.model="),
        "{stderr}"
    );
    let head = "name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]\n";
    std::fs::write(&plan, format!("{head}[vary]\nnodes.io = [1, 2]\n")).expect("room");
    let stderr = fail(starfish(["run", &plan]), 2);
    assert!(stderr.contains("set = { \"nodes.io\" = ... }"), "{stderr}");
    std::fs::write(&plan, head).expect("room");
    let stderr = fail(starfish(["run", &plan, "--out", &machine]), 1);
    assert!(stderr.contains("it is a file, not a directory"), "{stderr}");
    let store = Store::start(&[1]);
    store.make_file("local", 10);
    let stderr = fail(store.command(&["put", "local", "--recursive"]), 2);
    assert!(stderr.contains("it is a file, not a directory") && stderr.contains("--recursive"), "{stderr}");
}

#[test]
fn an_agent_rejects_missing_foreign_and_duplicate_disks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (root, other) = (path("mounted"), path("other"));
    // This is not an error of usage, because the disk may be mounted soon. So the exit code lets the caller try again.
    let not_yet =
        |options: &[&str]| fail(starfish([&["agent", "--listen", "127.0.0.1:0"], options].concat()), 1);
    let stderr = not_yet(&["--root", &root]);
    assert!(stderr.contains("no such directory") && stderr.contains("mounted?"), "{stderr}");
    assert!(stderr.contains("--create") && !std::path::Path::new(&root).exists(), "{stderr}");
    // `Agent` adds the option `--create`.
    drop(Agent::start(vec![root.clone().into()], &[]));
    // A mount point whose disk is not mounted, and a disk that is not marked for use by an agent.
    std::fs::create_dir_all(format!("{other}/lost+found")).expect("room");
    for stray in [None, Some("NOTES")] {
        stray
            .iter()
            .for_each(|stray| std::fs::write(format!("{other}/{stray}"), "of something else").expect("room"));
        let stderr = not_yet(&["--root", &root, &other]);
        assert!(stderr.contains(&format!("--root {other}: it is not a Starfish disk")), "{stderr}");
        assert!(stderr.contains("mounted?") && stderr.contains("add --create"), "{stderr}");
    }
    for twice in [&root, &format!("{other}/../mounted")] {
        std::fs::create_dir_all(&other).expect("room");
        let stderr = refused(&["--root", &root, twice]);
        assert!(stderr.contains(&format!("the same directory as {root}")), "{stderr}");
    }
    // A disk and its copy must not be used together: data written to one would be missing on the other.
    let copy = path("copied");
    std::fs::create_dir(&copy).expect("room");
    for root in [&root, &copy] {
        std::fs::write(format!("{root}/.starfish.disk"), "0123456789abcdef\n").expect("room");
    }
    let stderr = not_yet(&["--root", &root, &copy]);
    assert!(
        stderr.contains(&*root) && stderr.contains(&*copy) && stderr.contains("is a copy of the other"),
        "{stderr}"
    );
    let stderr = refused(&["--root", &other, "--port", "3"]);
    assert!(stderr.contains("'--listen'") && !stderr.contains("--prefetch"), "{stderr}");
    let stderr = refused(&["--root", &other, &other, "--create"]);
    assert!(stderr.contains("the same directory"), "{stderr}");
    let stderr = fail(starfish(["agent", "--listen", "127.0.0.1:0", "--root", "/proc", "--create"]), 1);
    assert!(stderr.contains("/proc: no file can be created in it") && !stderr.contains("exist"), "{stderr}");
}

#[test]
fn an_empty_option_is_rejected_and_an_empty_variable_is_ignored() {
    let store = Store::start(&[1]);
    for (option, value) in
        [("--agents", ""), ("--agents", " "), ("--agents", ","), ("--key", ""), ("--trace", "")]
    {
        let stderr = fail(store.command(&["ls", option, value]), 2);
        assert!(stderr.contains(&format!("{option}: it is empty")) && stderr.contains("leave"), "{stderr}");
    }
    let stderr = fail(store.command(&["bench", "--agents", ""]), 2);
    assert!(stderr.contains("--agents: it is empty"), "{stderr}");
    // An empty variable does not name a file.
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
        let stderr = fail(starfish(command), 2);
        assert!(stderr.contains("it is both input and output"), "{stderr}");
        assert!(std::fs::read(input).expect("a file") == before, "{input} was changed");
    }
}

#[test]
fn an_agent_rejects_a_cache_larger_than_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().to_str().expect("UTF-8");
    let stderr = refused(&["--root", root, "--cache", "100TiB"]);
    assert!(
        stderr.contains("--cache 100.0 TiB: this computer has ") && stderr.contains(" of memory"),
        "{stderr}"
    );
    let stderr = refused(&["--root", root, "--prefetch", "99999999999"]);
    assert!(stderr.contains("--prefetch 99999999999: the cache holds only 256 blocks"), "{stderr}");
}

#[test]
fn invalid_and_inefficient_block_sizes_are_reported() {
    let store = Store::start(&[1]);
    store.make_file("local", 300);
    for block in ["0", "5MiB"] {
        let stderr = fail(store.command(&["put", "local", "--block", block]), 2);
        assert!(stderr.contains("from 1 B to 4 MiB") && stderr.contains("--block-max"), "{stderr}");
    }
    let stderr = fail(store.command(&["put", "local", "--block", "-5"]), 2);
    assert!(stderr.contains("invalid value '-5'") && stderr.contains("number of bytes"), "{stderr}");
    let stderr = store.run_failing(&["put", "local", "--block", "4MiB"]);
    assert!(stderr.contains("at most 1048576") && stderr.contains("`--block-max`"), "{stderr}");
    let output = finish(store.command(&["put", "local", "--block", "3"]));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && stderr.contains("--block 3 B: each block is a separate request"),
        "{stderr}"
    );
}

#[test]
fn holes_need_no_free_space() {
    let store = Store::start(&[1, 2]);
    let huge = File::create(store.path("huge")).expect("room");
    huge.set_len(15 << 40).expect("a sparse file");
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
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("standard input: it is closed"), "{stderr}");
    assert_eq!(store.run(&["ls"]), "");
    // An input that is open but empty makes an empty file.
    succeed(store.command(&["put", "-", "empty"]));
    assert!(store.run(&["stat", "empty"]).contains("bytes     0\n"));
}

#[test]
fn put_warns_if_the_new_name_is_that_of_a_local_file() {
    let store = Store::start(&[1]);
    std::fs::write(store.path("a.dat"), contents(10)).expect("room");
    std::fs::write(store.path("b.dat"), contents(20)).expect("room");
    let output = finish(store.command(&["put", "a.dat", "b.dat"]));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("a.dat will be put as b.dat") && stderr.contains("only one file"), "{stderr}");
    for arguments in [&["put", "a.dat", "c.dat"][..], &["put", "a.dat", "a.dat"]] {
        assert_eq!(finish(store.command(arguments)).stderr, b"", "{arguments:?}");
    }
}

#[test]
fn options_without_effect_are_rejected() {
    for option in ["--outstanding=2", "--scheduling=fcfs", "--thread-per-request", "--prefetch=2"] {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        let stderr = fail(starfish(["simulate", "--method", "disk-directed", option]), 2);
        assert!(stderr.contains(&format!("{name}: it has no effect")), "{stderr}");
    }
    for option in ["--shape=0x0", "--grid=3x3"] {
        let stderr = fail(starfish(["simulate", "--pattern", "rb,ra", option]), 2);
        assert!(stderr.contains("no selected pattern is a matrix"), "{stderr}");
    }
    for (arguments, why) in [
        ("--pattern rb --method traditional --memget-writes", "--memget-writes: no data are written"),
        ("--pattern wb --method traditional,two-phase --prefetch 0", "--prefetch: no data are read"),
        ("--pattern rb --method traditional --queued always", "--queued: the traditional method makes no"),
    ] {
        let stderr = fail(starfish(["simulate"].into_iter().chain(arguments.split(' '))), 2);
        assert!(stderr.contains(why) && stderr.contains("another --method or --pattern"), "{stderr}");
    }
    let stderr = fail(starfish(["simulate", "--trials", "0"]), 2);
    assert!(
        stderr.contains("expected a whole number, 1 or more") && !stderr.contains("4294967295"),
        "{stderr}"
    );
    let stderr = fail(starfish(["simulate", "--file-size", "8", "--record", "64"]), 2);
    assert!(stderr.contains("make it 64 bytes"), "{stderr}");
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
        let stderr = fail(command, 2);
        assert!(stderr.contains(usage), "{stderr}");
    }
    // The help text still names the variables.
    let help = String::from_utf8(succeed(starfish(["stat", "--help"]))).expect("text");
    assert!(help.contains("[env: STARFISH_AGENTS=]"), "{help}");
}

#[test]
fn zero_disks_are_rejected() {
    for arguments in [&["put", "local", "--disks", "0"][..], &["mount", "directory", "--disks", "0"]] {
        let stderr = fail(starfish(arguments), 2);
        assert!(stderr.contains("'--disks <N>': expected a whole number, 1 or more"), "{stderr}");
    }
}

#[test]
fn errors_name_the_missing_directory_or_the_overlong_name() {
    let store = Store::start(&[1]);
    store.make_file("local", 300);
    store.run(&["put", "local"]);
    let stderr = fail(store.command(&["get", "local", "no/such/copy"]), 2);
    assert!(
        stderr.contains("the directory no/such does not exist") && !stderr.contains(".starfish"),
        "{stderr}"
    );
    let long = "n".repeat(5000);
    for arguments in [&["put", "local", &long][..], &["get", &long, "copy"]] {
        let stderr = String::from_utf8(finish(store.command(arguments)).stderr).expect("text");
        assert!(stderr.contains("too long") && stderr.len() < 600, "{stderr}");
    }
    let stderr = store.run_failing(&["put", "local", &long[..256]]);
    assert!(stderr.contains("255 bytes"), "{stderr}");
}

#[test]
fn a_removed_disk_is_reported_as_a_missing_disk_directory() {
    let store = Store::start(&[1, 1]);
    let root = &store.agents[1].roots[0];
    std::fs::remove_dir_all(root).expect("it exists");
    let output = finish(store.command(&["doctor", "--quick"]));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains(&format!("agent {}: disk directory ", store.agents[1].address)), "{stdout}");
    assert!(stdout.contains("removed after the agent started") && stdout.contains("mounted?"), "{stdout}");
    assert!(!stdout.contains("no answer") && !stdout.contains("starfish ls"), "{stdout}");
}

#[test]
fn ranges_are_given_in_words_and_cp_suggests_put_and_get() {
    let stderr = fail(starfish(["run", "plan.toml", "--threads", "0"]), 2);
    assert!(stderr.contains("'0' for '--threads <N>': expected a number from 1 to 1024"), "{stderr}");
    let stderr = fail(starfish(["replay", "log", "--first", "0"]), 2);
    assert!(
        stderr.contains("expected at least 1") || stderr.contains("expected a number from 1"),
        "{stderr}"
    );
    let stderr = fail(starfish(["cp", "a", "b"]), 2);
    assert!(stderr.contains("'put', 'get'") && !stderr.contains("completions"), "{stderr}");
}
