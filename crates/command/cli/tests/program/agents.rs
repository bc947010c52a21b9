//! Agents as processes: how they start, stop and die, and how they treat connections of other programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::common::{Agent, Store, contents, fail, finish, hash, heeding, starfish, succeed, wait};

#[test]
fn signals_shut_an_agent_down_cleanly() {
    let mut store = Store::start(&[1, 1]);
    let original = store.make_file("file", 3_000_000);
    store.run(&["put", "file"]);
    for (index, (signal, code)) in [("INT", 130), ("TERM", 0)].into_iter().enumerate() {
        store.agents[index].signal(signal);
        assert_eq!(wait(&mut store.agents[index].child).code(), Some(code), "{signal}");
    }
    // New agents with the same disks have the same files.
    let restart = |agent: &Agent| Agent::start(agent.roots.clone(), &[]);
    store.agents = store.agents.iter().map(restart).collect();
    store.run(&["get", "file", "back"]);
    assert_eq!(hash(&store.path("back")), original);
}

#[test]
fn signals_ignored_at_the_start_do_not_stop_an_agent() {
    let mut store = Store::start(&[1]);
    let original = store.make_file("file", 3_000_000);
    // This is how `nohup`, and a script with `&`, start an agent.
    let mut ignoring = heeding("env");
    ignoring.args(["--ignore-signal=HUP,INT", env!("CARGO_BIN_EXE_starfish")]);
    store.agents = vec![Agent::start_by(ignoring, "127.0.0.1:0", vec![store.path("disk")], &[])];
    for signal in ["HUP", "INT"] {
        store.agents[0].signal(signal);
        store.run(&["put", "--replace", "file"]);
        store.run(&["get", "--force", "file", "back"]);
        assert_eq!(hash(&store.path("back")), original);
    }
    store.agents[0].signal("TERM");
    assert!(wait(&mut store.agents[0].child).success());
}

#[test]
fn an_agent_with_until_input_ends_stops_with_its_input() {
    let mut store = Store::start(&[1]);
    drop(store.agents[0].child.stdin.take());
    assert!(wait(&mut store.agents[0].child).success());
}

#[test]
fn an_agent_killed_during_a_read_is_named() {
    // A slow disk gives the test time to kill an agent during a read.
    let mut store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20", "--cache", "8MiB"]);
    store.make_file("file", 40 << 20);
    // This first use makes the first agent the metadata server.
    store.run(&["ls", "--agents", &store.agents[0].address]);
    store.run(&["put", "file"]);
    for (victim, method) in [(1, "traditional"), (0, "disk-directed")] {
        let mut get = store.command(&["get", "file", "back", "--method", method]);
        let mut get = get.env("STARFISH_SILENCE", "2").spawn().expect("the program");
        thread::sleep(Duration::from_millis(400));
        store.agents[victim].child.kill().expect("a child process of the test");
        assert_eq!(wait(&mut get).code(), Some(1), "{method}");
        let mut error = String::new();
        get.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        let address = &store.agents[victim].address;
        // On a busy computer, the agent may be killed before the client has connected.
        let is_named = [format!("agent {address} disconnected"), format!("that answer. agent {address}: ")];
        assert!(is_named.iter().any(|named| error.contains(named)), "{method}: {error}");
        assert!(!store.path("back").exists());
        let error = store.run_failing(&["get", "file", "back"]);
        assert!(error.contains(&format!("agent {address}")) && error.contains("Is it running?"), "{error}");
        let (address, roots) = (address.clone(), store.agents[victim].roots.clone());
        store.agents[victim] = Agent::start_at(&address, roots, &["--disk-model", "streaming-20"]);
    }
}

#[test]
fn journal_lines_have_priorities_and_no_times() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("journal");
    // systemd identifies the stream of standard error by device and inode.
    let script = "exec 2>> \"$1\"; export JOURNAL_STREAM=$(stat -L -c %d:%i /dev/fd/2); shift; exec \"$@\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(&log).arg(env!("CARGO_BIN_EXE_starfish"));
    let mut agent = Agent::start_by(shell, "127.0.0.1:0", vec![directory.path().join("disk")], &[]);
    let mut stranger = TcpStream::connect(&agent.address).expect("it listens");
    stranger.write_all(&[b'x'; 100]).expect("the agent accepts bytes");
    let start = std::time::Instant::now();
    let text = || std::fs::read_to_string(&log).expect("a log");
    while !text().contains("<4>refused 127.0.0.1:") {
        assert!(start.elapsed() < Duration::from_secs(30), "{}", text());
        thread::sleep(Duration::from_millis(10));
    }
    assert!(text().starts_with("<6>started: starfish "), "{}", text());
    agent.signal("TERM");
    assert!(wait(&mut agent.child).success());
    let mut wrong = starfish(["agent", "--create", "--root", "/tmp", "--listen", "127.0.0.1:0"]);
    let wrong = wrong.env("STARFISH_LOG", "loud").output();
    assert!(String::from_utf8_lossy(&wrong.expect("the program").stderr).contains("STARFISH_LOG=loud"));
}

#[test]
fn foreign_connections_do_not_disturb_an_agent() {
    let store = Store::start(&[1, 1]);
    let original = store.make_file("file", 500_000);
    store.run(&["put", "file"]);
    let address = &store.agents[0].address;
    // Some of the connections stay open without sending anything more.
    let mut strangers = Vec::new();
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0; 100_000],
        &contents(100_000),
        b"STARFISH",
        b"",
    ] {
        let mut stream = TcpStream::connect(address).expect("it listens");
        // The agent may close the connection during the write.
        let _ = stream.write_all(garbage);
        strangers.push(stream);
    }
    store.run(&["get", "file", "back"]);
    assert_eq!(hash(&store.path("back")), original);
}

#[test]
fn an_agent_that_cannot_start_reports_the_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().to_str().expect("UTF-8");
    let agent = |options: &[&str]| starfish([&["agent", "--root", root], options].concat());
    let error = fail(agent(&["--listen", "here"]), 2);
    assert!(error.contains("--listen here") && error.contains("127.0.0.1:7117"), "{error}");
    let error = fail(agent(&["--listen", "127.0.0.1:0", "--disk-model", "floppy"]), 2);
    assert!(error.contains("floppy") && error.contains("streaming-20"), "{error}");
    let error = fail(agent(&["--listen", "127.0.0.1:0", "--cache", "1MiB"]), 2);
    assert!(error.contains("room for only 1 block\n") && error.contains("Give at least 8 MiB"), "{error}");
    let error = fail(agent(&["--listen", "127.0.0.1:0", "--block-max", "64MiB"]), 2);
    assert!(error.contains("--block-max 64 MiB"), "{error}");
    let error = fail(agent(&["--listen", "127.0.0.1:0", "--copy-namespace", "/nonexistent/copies"]), 1);
    assert!(error.contains("--copy-namespace") && error.contains("mkdir -p /nonexistent/copies"), "{error}");
    let error =
        fail(starfish(["agent", "--create", "--root", "/nonexistent/disk/x", "--listen", "127.0.0.1:0"]), 1);
    assert!(error.contains("/nonexistent/disk/x"), "{error}");
    let mut unknown = agent(&["--listen", "127.0.0.1:0"]);
    unknown.env("STARFISH_DRIVER", "kqueue");
    assert!(fail(unknown, 2).contains("STARFISH_DRIVER=kqueue"));

    let first = Agent::start(vec![directory.path().to_owned()], &[]);
    let error = fail(agent(&["--listen", "127.0.0.1:0"]), 1);
    assert!(error.contains("in use by another agent") && error.contains("another directory"), "{error}");
    let error =
        fail(starfish(["agent", "--create", "--root", &format!("{root}/x"), "--listen", &first.address]), 1);
    assert!(error.contains("in use") && error.contains("Another program listens on port"), "{error}");
}

#[test]
fn put_prints_the_same_hash_with_both_drivers() {
    let store = Store::start(&[1]);
    let original = store.make_file("file", 300_000);
    for driver in ["polling", "io_uring"] {
        let mut put = store.command(&["put", "file", "--replace", "--hash"]);
        put.env("STARFISH_DRIVER", driver);
        let output = finish(put);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if driver == "io_uring" && error.contains("needs no io_uring") {
            continue;
        }
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("{original}  file\n"),
            "{driver}: {error}"
        );
    }
}

#[test]
fn an_interrupted_put_leaves_nothing_on_the_agents() {
    // A slow disk gives the test time to interrupt the put.
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20", "--cache", "8MiB"]);
    store.make_file("file", 200 << 20);
    let other = store.make_file("other", 1000);
    store.run(&["put", "other"]);
    for (method, signal) in [("traditional", "INT"), ("disk-directed", "INT"), ("traditional", "TERM")] {
        let mut put = store.command(&["put", "file", "--method", method]).spawn().expect("the program");
        let stripe_bytes = || -> u64 {
            let sizes =
                store.stripe_files().into_iter().map(|path| path.metadata().map_or(0, |found| found.len()));
            sizes.sum()
        };
        while stripe_bytes() < 2 << 20 {
            assert_eq!(put.try_wait().expect("a child process of the test"), None, "{method}");
            thread::sleep(Duration::from_millis(5));
        }
        let sent = std::process::Command::new("kill").args(["-s", signal, &put.id().to_string()]).status();
        assert!(sent.expect("a kill command").success());
        assert_eq!(wait(&mut put).code(), Some(130), "{method}");
        let mut stderr = String::new();
        put.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        assert_eq!(stderr, "starfish: file: interrupted. The new file was removed\n", "{method}");
        assert_eq!(store.run(&["ls", "-a"]), "other\n", "{method}");
        assert_eq!(store.stripe_files().len(), 1, "only the stripe of the other file, {method}");
    }

    // An interrupted replacement does not change the existing file.
    let mut put = store.command(&["put", "-", "other"]);
    put.stdin(Stdio::piped());
    assert_eq!(
        put.spawn().expect("the program").wait().expect("a child process of the test").code(),
        Some(1)
    );
    store.run(&["get", "other", "back"]);
    assert_eq!(hash(&store.path("back")), other);
}

#[test]
fn an_interrupted_get_leaves_no_files() {
    let store = Store::start_with(&[1], &["--disk-model", "streaming-20", "--cache", "8MiB"]);
    store.make_file("file", 20 << 20);
    store.run(&["put", "file"]);
    let mut get = store.command(&["get", "file", "back"]);
    let mut get = get.stderr(Stdio::piped()).spawn().expect("the program");
    thread::sleep(Duration::from_millis(300));
    let sent = std::process::Command::new("kill").args(["-s", "INT", &get.id().to_string()]).status();
    assert!(sent.expect("a kill command").success());
    assert_eq!(wait(&mut get).code(), Some(130));
    let entries = std::fs::read_dir(store.directory.path()).expect("the directory");
    let names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 2, "only the disk and the local file, not {names:?}");
    let mut stderr = String::new();
    BufReader::new(get.stderr.take().expect("piped")).read_line(&mut stderr).expect("text");
    assert_eq!(stderr, "");
}

/// Creates a key in the directory of the test.
fn make_key(store: &Store, name: &str, encrypts: bool) -> String {
    let path = store.path(name);
    assert_eq!(node::key::make(&path, encrypts), Ok(true));
    path.display().to_string()
}

#[test]
fn an_agent_rejects_clients_with_another_key() {
    let mut store = Store::start(&[]);
    let [ours, theirs, clear] = [("ours", true), ("theirs", true), ("clear", false)]
        .map(|(name, encrypts)| make_key(&store, name, encrypts));
    let log = store.path("log");
    let logged = || {
        let mut shell = heeding("sh");
        shell
            .args(["-c", &format!("exec \"$0\" \"$@\" 2>> '{}'", log.display())])
            .arg(env!("CARGO_BIN_EXE_starfish"));
        shell.env("STARFISH_LOG", "warn");
        shell
    };
    let agent = Agent::start_by(logged(), "127.0.0.1:0", vec![store.path("disk")], &["--key", &ours]);
    let ls = |key: &str| {
        let mut command = starfish(["ls", "--agents", &agent.address]);
        command.env("STARFISH_KEY_FILE", key);
        command
    };
    succeed(ls(&ours));
    for (key, expected) in [
        (&theirs, "it has a different cluster key"),
        (&clear, "it encrypts its connections, but this side does not"),
    ] {
        let error = fail(ls(key), 1);
        assert!(error.contains(expected) && error.contains("mode 0600"), "{key}: {error}");
    }
    // Without a key, the command contacts no agent.
    let error = fail(ls("/proc/nonexistent/key"), 2);
    assert!(error.contains("no such file") && error.contains("`starfish key new`"), "{error}");
    let log = std::fs::read_to_string(&log).expect("a log");
    for expected in [
        "a different cluster key. One of the two",
        "does not encrypt its connections, but this side does. The key file there contains `clear`",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    store.agents.push(agent);
}

#[test]
fn the_first_agent_of_a_user_creates_the_key() {
    let store = Store::start(&[]);
    let disk = store.path("disk").display().to_string();
    let agent = |listen: &str, options: &[&str]| {
        let mut command =
            starfish(["agent", "--create", "--root", &*disk, "--until-input-ends", "--listen", listen]);
        command.args(options).env_remove("STARFISH_KEY_FILE").env("XDG_CONFIG_HOME", store.path("config"));
        command
    };
    // The standard input of the agent is empty, so the agent ends at once. Other users of this computer can reach it on
    // loopback until then.
    for (listen, makes) in [("127.0.0.1:0", true), ("0.0.0.0:0", false)] {
        let output = finish(agent(listen, &[]));
        assert!(output.status.success());
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(stderr.contains("Created the cluster key"), makes, "{stderr}");
    }
    let key = store.path("config/starfish/key").display().to_string();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).expect("it belongs to this user");
    let error = fail(agent("127.0.0.1:0", &["--key", &key]), 2);
    assert!(error.contains("its mode is 0644") && error.contains(&format!("chmod 600 {key}")), "{error}");
    let error = fail(agent("127.0.0.1:0", &["--key", "/nonexistent/key"]), 2);
    assert!(error.contains("no such file"), "{error}");
}

#[test]
fn a_key_is_rotated_without_rejecting_clients() {
    let mut store = Store::start(&[]);
    let [here, there] = ["here", "there"].map(|name| store.path(name).display().to_string());
    let key = |words: &[&str]| {
        let mut command = starfish(["key"]);
        command.args(words);
        String::from_utf8(succeed(command)).expect("text")
    };
    let made = key(&["new", "--key", &here]);
    assert!(made.contains("encrypted") && key(&["show", "--key", &here]) == made, "{made}");
    let digits = std::fs::read_to_string(&here).expect("a key");
    assert!(!made.contains(digits.trim()), "{made}");
    let refused = fail(starfish(["key", "new", "--key", &here]), 1);
    assert!(refused.contains("it already contains a key") && refused.contains("key rotate"), "{refused}");
    std::fs::copy(&here, &there).expect("room");
    let start = |store: &Store| {
        let options = ["--key", &there];
        Agent::start_by(starfish([""; 0]), "127.0.0.1:0", vec![store.path("disk")], &options)
    };
    let ls = |agent: &Agent| succeed(starfish(["ls", "--agents", &agent.address, "--key", &here]));
    let restart = |store: &mut Store| {
        store.agents.clear();
        store.agents.push(start(store));
    };
    restart(&mut store);
    ls(&store.agents[0]);
    assert!(key(&["rotate", "--key", &here]).contains("previous"));
    ls(&store.agents[0]);
    let early = fail(starfish(["key", "rotate", "--key", &here]), 1);
    assert!(early.contains("--finish"), "{early}");
    std::fs::copy(&here, &there).expect("room");
    restart(&mut store);
    ls(&store.agents[0]);
    assert!(!key(&["rotate", "--finish", "--key", &here]).contains("previous"));
    ls(&store.agents[0]);
    std::fs::copy(&here, &there).expect("room");
    restart(&mut store);
    ls(&store.agents[0]);
    std::fs::write(&here, digits).expect("room");
    fail(starfish(["ls", "--agents", &store.agents[0].address, "--key", &here]), 1);
}

#[test]
fn silent_connections_do_not_exhaust_the_descriptors_of_an_agent() {
    let mut store = Store::start(&[]);
    let mut shell = heeding("sh");
    let program = env!("CARGO_BIN_EXE_starfish");
    shell.args(["-c", "ulimit -n 160; exec \"$0\" \"$@\"", program]).env("STARFISH_LOG", "off");
    let agent = Agent::start_by(shell, "127.0.0.1:0", vec![store.path("disk")], &[]);
    let address = agent.address.clone();
    store.agents.push(agent);
    let silent: Vec<_> =
        (0..300).map(|_| TcpStream::connect(&address).expect("a place in the queue")).collect();
    let original = store.make_file("file", 3_000_000);
    // Uploads more files than the agent may have open at the same time.
    for number in 0..50 {
        store.run(&["put", "file", &format!("file{number}"), "--block", "1MiB"]);
    }
    store.run(&["get", "file49", "back"]);
    assert_eq!(hash(&store.path("back")), original);
    drop(silent);
}
