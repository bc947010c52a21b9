//! `starfish mount` and `starfish umount` as processes. Tests of the crate `mount` check the contents of mounted
//! directories.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use prerequisites::{cannot_mount, has, skip};

use crate::common::{Agent, Store, ask, fail, finish, give_environment_of, key_file, signal, succeed, wait};
use crate::exposition::{parse, value};
use crate::mount_point::{MountPoint, unmounted, within};

#[test]
fn a_background_mount_stays_until_it_is_unmounted() {
    let Some(point) = MountPoint::new() else { return };
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    assert!(point.is_mounted());
    let again = fail(point.command(&["mount"], &["--background", "--log", "second.log"]), 1);
    assert!(again.contains("already mounted there") && again.contains("starfish umount"), "{again}");
    fs::write(point.path.join("file"), b"text").expect("a file");
    let used = fs::File::open(point.path.join("file")).expect("a file");
    let busy = fail(point.command(&["umount"], &[]), 1);
    assert!(busy.contains("busy") && busy.contains("--lazy"), "{busy}");
    drop(used);
    point.unmount();
    assert!(!point.is_mounted() && !point.path.join("file").exists());
    let none = fail(point.command(&["umount"], &[]), 1);
    assert!(none.contains("no Starfish namespace is mounted there"), "{none}");
    succeed(point.command(&["mount"], &["--background", "--read-only", "--log", "mount.log"]));
    assert_eq!(fs::read(point.path.join("file")).expect("a file"), b"text");
    point.unmount();
    fs::write(point.path.join("mine"), b"text").expect("a file");
    let filled = finish(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    let stderr = String::from_utf8_lossy(&filled.stderr).into_owned();
    assert!(filled.status.success() && stderr.contains("not empty"), "{stderr}");
    point.unmount();
}

/// An unprivileged user cannot call mount(2), and mounts with fusermount3 instead.
#[test]
fn an_unprivileged_user_can_mount() {
    const NOBODY: u32 = 65534;
    let Some(_can_mount) = MountPoint::new() else { return };
    // The first user to access the namespace creates it and owns its root.
    let store = Store::start(&[1]);
    let point = MountPoint { path: store.directory.path().join("mounted here"), store };
    fs::create_dir(&point.path).expect("a directory");
    let is_root = nix::unistd::getuid().is_root();
    // Copy of the agents' key that the unprivileged user may read.
    let key = point.store.path("key of nobody");
    fs::copy(key_file(), &key).expect("a key");
    let unprivileged = |mut command: Command| {
        if is_root {
            command.uid(NOBODY).gid(NOBODY).env("STARFISH_KEY_FILE", &key);
        }
        command
    };
    if is_root {
        for directory in [point.store.directory.path(), &point.path, &key] {
            chown(directory, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        if let Err(why) = unprivileged(point.store.command(&["--version"])).output() {
            return skip(format_args!("only root reaches the program: {why}"));
        }
    }
    let output = finish(unprivileged(point.command(&["mount"], &["--background", "--log", "nobody.log"])));
    if !output.status.success() {
        return cannot_mount(&String::from_utf8_lossy(&output.stderr));
    }
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "mkdir made && echo text > made/file && cat made/file && stat -c %u made/file && id -u",
    ]);
    shell.current_dir(&point.path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finish(unprivileged(shell));
    succeed(unprivileged(point.command(&["umount"], &[])));
    let text = String::from_utf8(output.stdout).expect("text");
    let [contents, owner, user] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr))
    };
    assert!(contents == "text" && owner == user && !point.is_mounted(), "{text}");
}

/// After an unmount all data are on the disks, although agents keep partial blocks in their caches for seconds.
#[test]
fn data_survive_killed_agents_after_an_unmount() {
    let Some(mut point) = MountPoint::new() else { return };
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    let files: Vec<_> = (0..20).map(|file| (format!("file {file}"), vec![file as u8; 1000 + file])).collect();
    for (name, contents) in &files {
        fs::write(point.path.join(name), contents).expect("a file");
    }
    point.unmount();
    for agent in &point.store.agents {
        agent.signal("KILL");
    }
    for agent in &mut point.store.agents {
        agent.child.wait().expect("it ends");
        *agent = Agent::start_at(&agent.address, agent.roots.clone(), &[]);
    }
    succeed(point.command(&["mount"], &["--background", "--read-only", "--log", "mount.log"]));
    for (name, contents) in &files {
        assert!(fs::read(point.path.join(name)).expect("a file") == *contents, "{name}");
    }
    point.unmount();
}

/// A clean shutdown of agents, as for an update, loses no data that programs have written to a mount, in closed files
/// and in open ones.
#[test]
fn a_clean_shutdown_of_agents_loses_no_data_of_a_mount() {
    let Some(mut point) = MountPoint::new() else { return };
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    let (open, closed) = (point.path.join("open"), point.path.join("closed"));
    // Another process has the file open. This process must not have it open: each agent that it starts would
    // inherit the open file and close it first, and this close would wait for agents that do not run yet.
    let mut writer = Command::new("sh");
    writer
        .args(["-c", "exec 3> \"$0\"; printf 'first, ' >&3; read go; printf 'and then' >&3 && sync \"$0\""]);
    let mut writer = writer.arg(&open).stdin(Stdio::piped()).spawn().expect("a shell");
    within(Duration::from_secs(20), "it exists", || open.exists());
    fs::write(&closed, [7; 300_000]).expect("a file");
    for agent in &mut point.store.agents {
        agent.signal("TERM");
        assert!(agent.child.wait().expect("it ends").success());
        *agent = Agent::start_at(&agent.address, agent.roots.clone(), &[]);
    }
    assert!(fs::read(&closed).expect("nothing is lost of it") == [7; 300_000]);
    writer.stdin.take().expect("piped").write_all(b"\n").expect("it listens");
    assert!(writer.wait().expect("it ends").success(), "nothing is lost of it");
    assert_eq!(fs::read(&open).expect("a file"), b"first, and then");
    drop(fs::write(&closed, b"accepted and not flushed"));
    for agent in &mut point.store.agents {
        agent.signal("TERM");
        assert!(agent.child.wait().expect("it ends").success());
    }
    // The mount cannot know that no data are lost; only the agents know that.
    let unknown = fail(point.command(&["umount"], &[]), 1);
    assert!(unknown.contains("agents do not answer") && unknown.contains("shut down cleanly"), "{unknown}");
    assert!(!unknown.contains("some data are not on the disks") && !point.is_mounted(), "{unknown}");
}

/// SQLite's WAL mode maps memory that all processes with the database must share. The second mount rejects this
/// mapping, and the commits on the first mount are kept. Each mount is a separate process: a process that maps files
/// of a mount that it serves may deadlock when it unmaps them.
#[test]
fn a_second_mount_rejects_a_database_in_wal_mode() {
    let Some(point) = MountPoint::new() else { return };
    let second = point.store.path("second");
    fs::create_dir(&second).expect("a directory");
    let mounts = [&point.path, &second].map(|path| path.to_str().expect("text"));
    for mount in mounts {
        succeed(point.store.command(&["mount", mount, "--background", "--log", "mount.log"]));
    }
    let open = |mount: usize| {
        rusqlite::Connection::open(Path::new(mounts[mount]).join("numbers.db")).expect("a database")
    };
    let insert = |database: &rusqlite::Connection| database.execute("INSERT INTO numbers VALUES (1)", []);
    let count = |database: &rusqlite::Connection| {
        database.query_row("SELECT count(*) FROM numbers", [], |row| row.get::<_, i64>(0))
    };
    let here = open(0);
    let mode = here.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0));
    assert_eq!(mode.as_deref(), Ok("wal"));
    here.execute_batch("CREATE TABLE numbers (number INTEGER)").expect("a table");
    let here_too = open(0);
    for _ in 0..5 {
        insert(&here).expect("no other mount has the database open");
        insert(&here_too).expect("programs on the same mount share memory");
        let there = open(1);
        insert(&there).expect_err("it is refused");
        count(&there).expect_err("reading, too");
    }
    assert_eq!([count(&here), count(&here_too)], [Ok(10), Ok(10)]);
    drop((here, here_too));
    let there = open(1);
    insert(&there).expect("no other program has the database open now");
    assert_eq!(count(&there), Ok(11));
    insert(&open(0)).expect_err("the other mount has the database open now");
    drop(there);
    for mount in mounts {
        unmounted(|| point.store.command(&["umount", mount]));
    }
}

#[test]
fn holes_of_a_put_file_occupy_no_space() {
    let Some(point) = MountPoint::new() else { return };
    fs::create_dir(point.store.path("tree")).expect("a directory");
    let file = fs::File::create(point.store.path("tree/sparse")).expect("a file");
    file.set_len(64 << 20).expect("it can be extended");
    file.write_all_at(&[1; 1000], 32 << 20).expect("room");
    drop(file);
    point.store.run(&["put", "tree/sparse", "alone"]);
    point.store.run(&["put", "-r", "tree"]);
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    for name in ["alone", "tree/sparse"] {
        let known = fs::metadata(point.path.join(name)).expect("attributes");
        assert_eq!(known.len(), 64 << 20);
        assert!((1000..2 << 20).contains(&(known.blocks() * 512)), "{name}: {} blocks", known.blocks());
    }
    point.unmount();
}

#[test]
fn a_signal_to_the_mount_unmounts_it() {
    let Some(point) = MountPoint::new() else { return };
    for (name, code) in [("TERM", 0), ("INT", 130)] {
        let mut child = point.command(&["mount"], &["--read-only"]).spawn().expect("the program");
        point.wait_until_mounted();
        signal(&child, name);
        within(Duration::from_secs(20), "it is unmounted", || !point.is_mounted());
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{name}");
    }
}

#[test]
fn a_killed_mount_is_replaced_by_the_next_or_unmounted() {
    let Some(point) = MountPoint::new() else { return };
    let kill_one = || {
        let mut child = point.command(&["mount"], &[]).spawn().expect("the program");
        within(Duration::from_secs(20), "it is mounted", || {
            fs::read_dir(&point.path).is_ok_and(|_| point.is_mounted())
        });
        child.kill().expect("a child process of the test");
        child.wait().expect("it ends");
        assert!(point.is_mounted(), "the killed mount still exists");
    };
    // The next mount removes the killed mount, and so does an unmount.
    kill_one();
    kill_one();
    point.unmount();
    assert!(!point.is_mounted());
}

/// The agents of a set may start in any order, for example after a reboot.
#[test]
fn a_mount_waits_for_missing_agents() {
    let Some(mut point) = MountPoint::new() else { return };
    point.store.agents[1].signal("TERM");
    assert!(wait(&mut point.store.agents[1].child).success());
    let address = point.store.agents[1].address.clone();
    for options in [&[][..], &["--wait", "0.5"], &["--wait", "0.5", "--background", "--log", "mount.log"]] {
        let output = finish(point.command(&["mount"], options));
        let refused = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{options:?}: {refused}");
        assert!(refused.contains(&address) && refused.contains("--wait TIME"), "{options:?}: {refused}");
        assert!(!point.is_mounted());
    }
    let options = ["--background", "--wait", "60", "--log", "waiting.log"];
    let waiting = point.command(&["mount"], &options).spawn().expect("the program");
    let log = point.store.path("waiting.log");
    let is_waiting =
        || fs::read_to_string(&log).is_ok_and(|log| log.contains("waiting up to 60 s for agents"));
    within(Duration::from_secs(20), "it reports that it waits", is_waiting);
    let roots = point.store.agents[1].roots.clone();
    point.store.agents[1] = Agent::start_at(&address, roots, &[]);
    let output = waiting.wait_with_output().expect("it ends");
    assert!(output.status.success() && point.is_mounted(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::write(point.path.join("file"), b"text").expect("a file");
    point.unmount();
}

/// A mount without one agent can use the files on the other agents and create new files. A later mount with all agents
/// can use all files.
#[test]
fn a_mount_needs_only_the_metadata_agent_to_start() {
    const FILES: usize = 4;
    let Some(mut point) = MountPoint::new() else { return };
    point.store.make_file("local", 5000);
    let names: Vec<String> = (0..FILES).map(|file| format!("file-{file}")).collect();
    for name in &names {
        // The first stripes of files created one after the other are on different disks.
        point.store.run(&["put", "local", name, "--disks", "1"]);
    }
    let doctor = point.store.run(&["doctor", "--quick"]);
    let metadata_agent = doctor
        .split("agent ")
        .find_map(|rest| rest.split_once(" is its metadata server"))
        .expect("a metadata agent")
        .0;
    let other = usize::from(point.store.agents[0].address == metadata_agent);
    let stop = |agent: &mut Agent| agent.child.kill().and_then(|()| agent.child.wait()).expect("it ends");
    stop(&mut point.store.agents[other]);
    let refused = fail(point.command(&["mount"], &["--background", "--log", "refused.log"]), 1);
    assert!(refused.contains("--without-missing"), "{refused}");
    let options = ["--background", "--without-missing", "--log", "without.log"];
    succeed(point.command(&["mount"], &options));
    let (address, roots) =
        (point.store.agents[other].address.clone(), point.store.agents[other].roots.clone());
    let log = fs::read_to_string(point.store.path("without.log")).expect("a log");
    assert!(log.contains("mounting without agents") && log.contains(&address), "{log}");
    let read = |name: &String| fs::read(point.path.join(name)).map_err(|error| error.raw_os_error());
    let (whole, failed): (Vec<_>, Vec<_>) = names.iter().map(read).partition(Result::is_ok);
    assert_eq!((whole.len(), failed.len()), (FILES / 2, FILES / 2));
    assert!(failed.into_iter().all(|failed| failed == Err(Some(nix::libc::EIO))));
    fs::write(point.path.join("new"), "text").expect("room on the other one");
    point.unmount();
    point.store.agents[other] = Agent::start_at(&address, roots, &[]);
    succeed(point.command(&["mount"], &["--background", "--log", "again.log"]));
    for name in &names {
        assert_eq!(fs::read(point.path.join(name)).expect("it is whole").len(), 5000);
    }
    assert_eq!(fs::read(point.path.join("new")).expect("it is whole"), b"text");
    point.unmount();
    stop(&mut point.store.agents[1 - other]);
    let refused = fail(point.command(&["mount"], &options), 1);
    assert!(
        refused.contains("its metadata server does not answer, or cannot use its disk")
            && !point.is_mounted(),
        "{refused}"
    );
}

#[test]
fn mount_8_can_call_the_program_as_its_helper() {
    let Some(point) = MountPoint::new() else { return };
    let helper = point.store.directory.path().join("mount.fuse.starfish");
    symlink(env!("CARGO_BIN_EXE_starfish"), &helper).expect("a link");
    let call = |source: &str, options: &str| {
        let mut command = Command::new(&helper);
        give_environment_of(&point.store.command(&[]), &mut command);
        command.args([Path::new(source), &point.path]).args(["-o", options]);
        command.current_dir(point.store.directory.path());
        finish(command)
    };
    let agents: Vec<&str> = point.store.agents.iter().map(|agent| agent.address.as_str()).collect();
    let called = call(&agents.join(","), "rw,_netdev,attr_timeout=0,log=mount.log");
    assert!(called.status.success(), "{called:?}");
    assert!(point.is_mounted());
    point.unmount();
    let refused = call("none", "colour=green");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && stderr.contains("--colour"), "{stderr}");
}

#[test]
fn a_missing_mount_point_is_reported() {
    let store = Store::start(&[1]);
    let stderr = store.run_failing(&["mount", "nowhere"]);
    assert!(stderr.contains("no such directory") && stderr.contains("Create it first"), "{stderr}");
}

#[test]
fn a_mount_is_refused_if_its_options_let_no_file_be_created() {
    let Some(point) = MountPoint::new() else { return };
    for (option, value, part) in
        [("--block", "2MiB", "2097152"), ("--disks", "9", "9"), ("--cache", "1KiB", "1024")]
    {
        let stderr = fail(point.command(&["mount"], &[option, value]), 1);
        assert!(stderr.contains(part) && !point.is_mounted(), "{stderr}");
    }
}

/// Returns true if no process holds the lock of a file.
fn is_free(file: &Path) -> bool {
    let file = fs::File::options().read(true).write(true).open(file).expect("a file");
    match file.try_lock() {
        Ok(()) => true,
        Err(fs::TryLockError::WouldBlock) => false,
        Err(fs::TryLockError::Error(error)) => panic!("{error}"),
    }
}

#[test]
fn the_locks_of_a_killed_mount_expire() {
    let Some(point) = MountPoint::new() else { return };
    let other = point.store.path("other");
    fs::create_dir(&other).expect("a directory");
    let mut killed = point.command(&["mount"], &[]).spawn().expect("the program");
    point.wait_until_mounted();
    succeed(point.store.command(&["mount", "other", "--background", "--log", "other.log"]));
    let held = fs::File::create(point.path.join("file")).expect("a file");
    held.lock().expect("it is free");
    assert!(!is_free(&other.join("file")));
    killed.kill().expect("a child process of the test");
    killed.wait().expect("it ends");
    assert!(!is_free(&other.join("file")), "an unreachable owner may still be writing");
    within(Duration::from_secs(20), "the lock is free", || is_free(&other.join("file")));
    drop(held);
    unmounted(|| point.store.command(&["umount", "other"]));
}

#[test]
fn locks_survive_a_restart_of_the_metadata_agent() {
    let Some(mut point) = MountPoint::new() else { return };
    let other = point.store.path("other");
    fs::create_dir(&other).expect("a directory");
    succeed(point.command(&["mount"], &["--background", "--log", "first.log"]));
    succeed(point.store.command(&["mount", "other", "--background", "--log", "other.log"]));
    let held = fs::File::create(point.path.join("file")).expect("a file");
    held.lock().expect("it is free");
    for agent in &mut point.store.agents {
        agent.child.kill().expect("a child process of the test");
        agent.child.wait().expect("it ends");
        *agent = Agent::start_at(&agent.address, agent.roots.clone(), &[]);
    }
    // For a time after its restart, the metadata agent only lets previous owners reclaim their locks, and grants no new
    // ones.
    assert!(!is_free(&other.join("file")));
    (&held).write_all(b"still mine").expect("it has its lock");
    held.unlock().expect("it has one");
    assert!(is_free(&other.join("file")));
    assert_eq!(fs::read(other.join("file")).expect("a file"), b"still mine");
    drop(held);
    unmounted(|| point.store.command(&["umount", "other"]));
    point.unmount();
}

/// Mounts with metrics, and returns their address. The attribute timeout is long, because other tests may slow this one
/// down.
fn mount_with_metrics(point: &MountPoint) -> String {
    let usual = ["--background", "--log", "mount.log", "--metrics", "0", "--attr-timeout", "60"];
    let mut command = point.command(&["mount"], &usual);
    command.env("STARFISH_LOG", "info");
    succeed(command);
    let log = fs::read_to_string(point.store.path("mount.log")).expect("a log");
    let address_line = log.split_once("metrics: http://").and_then(|(_, rest)| rest.split_once("/metrics"));
    let (address, _) = address_line.unwrap_or_else(|| panic!("{log}"));
    address.to_owned()
}

#[test]
fn listed_files_are_not_looked_up_again() {
    const FILES: usize = 600;
    let Some(point) = MountPoint::new() else { return };
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    let directory = point.path.join("many");
    fs::create_dir(&directory).expect("a directory");
    (0..FILES).for_each(|file| fs::write(directory.join(format!("{file:04}")), "").expect("a file"));
    point.unmount();
    let address = mount_with_metrics(&point);
    let listed: Vec<_> = fs::read_dir(&directory).expect("a directory").collect();
    assert_eq!(listed.len(), FILES);
    listed.into_iter().for_each(|entry| fs::remove_file(entry.expect("an entry").path()).expect("removed"));
    let (_, body) = ask(&address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let read = parse(&body);
    let count = |operation| value(&read, "starfish_mount_request_seconds_count", &[("operation", operation)]);
    let (lookups, unlinks) = (count("lookup").unwrap_or_default(), count("unlink"));
    assert!(unlinks == Some(FILES as f64) && lookups < 10.0, "{lookups} lookups, {unlinks:?} unlinks");
    point.unmount();
}

#[test]
fn stats_in_name_order_take_few_requests() {
    const FILES: usize = 600;
    let Some(point) = MountPoint::new() else { return };
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    let names: Vec<_> = (0..FILES).map(|file| point.path.join(format!("{file:04}"))).collect();
    names.iter().for_each(|name| fs::write(name, "").expect("a file"));
    point.unmount();
    let address = mount_with_metrics(&point);
    let requests = || {
        let (_, body) = ask(&address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let asked = [("operation", "names"), ("class", "control")];
        value(&parse(&body), "starfish_mount_agent_request_seconds_count", &asked).unwrap_or_default()
    };
    let before = requests();
    names.iter().for_each(|name| assert!(fs::metadata(name).expect("it exists").is_file()));
    let taken = requests() - before;
    assert!(taken < FILES as f64 / 4.0, "{taken}");
    point.unmount();
}

#[test]
fn a_mount_exports_its_requests_as_metrics() {
    let Some(point) = MountPoint::new() else { return };
    let address = mount_with_metrics(&point);
    fs::write(point.path.join("file"), vec![7; 1_000_000]).expect("a file");
    assert_eq!(fs::read(point.path.join("file")).expect("a file").len(), 1_000_000);
    assert!(!point.path.join("nothing").exists());
    let (head, body) = ask(&address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let read = parse(&body);
    let total = |name: &str, labels: &[(&str, &str)]| {
        value(&read, name, labels).unwrap_or_else(|| panic!("{name}: {body}"))
    };
    assert_eq!(total("starfish_mount_written_bytes_total", &[]), 1e6);
    assert!(total("starfish_mount_read_bytes_total", &[]) >= 1e6);
    for operation in ["lookup", "create", "write", "read", "flush", "release"] {
        let count = total("starfish_mount_request_seconds_count", &[("operation", operation)]);
        assert!(count > 0.0, "{operation}");
    }
    assert!(total("starfish_mount_request_failures_total", &[("errno", "ENOENT")]) > 0.0);
    let asked = [("operation", "names"), ("class", "control")];
    assert!(total("starfish_mount_agent_request_seconds_count", &asked) > 0.0);
    assert_eq!(total("starfish_mount_waiting_requests", &[]), 0.0);
    assert!(total("starfish_mount_sent_bytes_total", &[]) >= 1e6);
    point.unmount();
}

#[test]
fn the_doctor_reports_mounts_and_their_states() {
    let Some(point) = MountPoint::new() else { return };
    let doctor = || finish(point.store.command(&["doctor", "--quick"]));
    let text_of = |output: std::process::Output| {
        String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
    };
    let directory = point.path.display().to_string();
    assert!(!text_of(doctor()).contains(&directory), "nothing is mounted");
    let mut child = point.command(&["mount"], &[]).spawn().expect("the program");
    point.wait_until_mounted();
    let agents: Vec<&str> = point.store.agents.iter().map(|agent| &*agent.address).collect();
    let well = doctor();
    assert!(well.status.success());
    let well = text_of(well);
    assert!(well.contains(&format!("{directory} is a mount of {}.", agents.join(", "))), "{well}");
    signal(&child, "STOP");
    let stopped = doctor();
    signal(&child, "CONT");
    assert_eq!(stopped.status.code(), Some(1));
    let stopped = text_of(stopped);
    assert!(stopped.contains(&format!("mount {directory}: it has not answered")), "{stopped}");
    child.kill().expect("a child process of the test");
    child.wait().expect("it ends");
    let ended = text_of(doctor());
    assert!(ended.contains("its process has ended") && ended.contains("starfish umount"), "{ended}");
    point.unmount();
}

/// Mounts the files of an agent whose disk is in memory and has this size. Returns `None` if this computer does not
/// permit that.
fn mount_of_small_disk(size: &str) -> Option<(MountPoint, SmallDisk)> {
    let mut store = Store::start(&[]);
    let small = SmallDisk::of(&store, size)?;
    store.agents.push(Agent::start(vec![small.0.clone()], &[]));
    let point = MountPoint::of(store)?;
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    Some((point, small))
}

/// A stopped mount may be resumed at any time. So an unmount waits for it and reports that it waits.
#[test]
fn umount_waits_for_a_stopped_mount_and_reports_that() {
    let Some(point) = MountPoint::new() else { return };
    let child = point.command(&["mount"], &[]).spawn().expect("the program");
    point.wait_until_mounted();
    signal(&child, "STOP");
    let umount = || {
        let mut umount = point.command(&["umount"], &[]);
        let mut umount = umount.stderr(Stdio::piped()).spawn().expect("the program");
        let mut stderr = BufReader::new(umount.stderr.take().expect("piped")).lines();
        let mut line = || stderr.next().expect("a line").expect("text");
        let stderr = [line(), line()].concat();
        assert!(stderr.contains("it has not answered") && stderr.contains("--lazy"), "{stderr}");
        assert!(
            stderr.contains("kill -CONT")
                && umount.try_wait().expect("a child process of the test").is_none(),
            "{stderr}"
        );
        umount
    };
    let mut interrupted = umount();
    signal(&interrupted, "INT");
    assert!(!wait(&mut interrupted).success() && point.is_mounted());
    let mut waiting = umount();
    signal(&child, "CONT");
    assert!(wait(&mut waiting).success() && !point.is_mounted());
    let mut child = child;
    assert!(wait(&mut child).success());
}

#[test]
fn a_full_disk_is_reported_by_a_write_or_by_fsync() {
    let Some((point, small)) = mount_of_small_disk("8m") else { return };
    let file = fs::File::create(point.path.join("large")).expect("a file");
    // Any of these calls may report the full disk, and one of them must.
    let written = (0..64).try_for_each(|_| (&file).write_all(&[1; 1 << 20]));
    let outcome = written.and_then(|()| file.sync_all());
    let error = outcome.expect_err("there is no room");
    assert_eq!(error.raw_os_error(), Some(nix::libc::ENOSPC), "{error}");
    drop(file);
    fs::remove_file(point.path.join("large")).expect("a name");
    let fits = |bytes| {
        fs::File::create(point.path.join("small")).and_then(|file| {
            (&file).write_all(&vec![2; bytes])?;
            file.sync_all()
        })
    };
    within(Duration::from_secs(20), "there is room again", || fits(1_000_000).is_ok());
    point.unmount();
    drop(point);
    drop(small);
}

/// Files can be removed even if failed attempts to create names have used the last space.
#[test]
fn files_can_be_removed_from_a_full_metadata_disk() {
    let Some((point, small)) = mount_of_small_disk("16m") else { return };
    let full = point.path.join("full");
    fs::create_dir(&full).expect("room");
    let file = |number: usize| {
        let file = fs::File::create(full.join(format!("file{number}")))?;
        (&file).write_all(&vec![1; 100_000])?;
        file.sync_all()
    };
    let files = (0..).take_while(|&number| file(number).is_ok()).count();
    let make = |number: usize| fs::create_dir(full.join(format!("directory{number}")));
    let refused = (0..10_000).find_map(|number| make(number).err()).expect("there is no room");
    assert_eq!(refused.raw_os_error(), Some(nix::libc::ENOSPC), "{refused}");
    (0..3).for_each(|number| fs::remove_file(full.join(format!("file{number}"))).expect("a name"));
    succeed(point.store.command(&["rm", "-r", "full"]));
    assert!(files > 50, "{files}");
    within(Duration::from_secs(20), "its name is removed", || !full.exists());
    within(Duration::from_secs(20), "there is room again", || {
        fs::create_dir(point.path.join("again")).is_ok()
    });
    point.unmount();
    drop(point);
    drop(small);
}

#[test]
fn files_closed_before_the_disk_was_full_are_complete() {
    let Some((point, small)) = mount_of_small_disk("24m") else { return };
    let path = |number: usize| point.path.join(format!("file{number}"));
    let contents = |number: usize| vec![number as u8; 1000 + number * 77_777 % 400_000];
    let make = |number| {
        let file = fs::File::create(path(number))?;
        (&file).write_all(&contents(number))?;
        nix::unistd::close(file).map_err(std::io::Error::from)
    };
    let closed = (0..1000).take_while(|&number| make(number).is_ok()).count();
    assert!((80..1000).contains(&closed), "{closed} files");
    fs::remove_file(path(closed)).ok();
    point.unmount();
    succeed(point.command(&["mount"], &["--background", "--log", "mount.log"]));
    for number in 0..closed {
        assert!(fs::read(path(number)).expect("a file") == contents(number), "file {number} of {closed}");
    }
    point.unmount();
    drop(point);
    drop(small);
}

/// Blocks that wait for a disconnected agent fail together after one timeout, not one after the other.
#[test]
fn delayed_blocks_of_a_killed_agent_fail_after_one_timeout() {
    let Some(point) = MountPoint::new() else { return };
    let mut mount = point.command(&["mount"], &["--background", "--log", "mount.log"]);
    mount.env("STARFISH_SILENCE", "2");
    succeed(mount);
    let file = fs::File::create(point.path.join("large")).expect("a file");
    (&file).write_all(&[1; 1 << 20]).and_then(|()| file.sync_all()).expect("all agents run");
    point.store.agents[1].signal("KILL");
    let killed = Instant::now();
    // At most 64 blocks wait in memory. So one of these writes may already fail, and otherwise `sync_all` fails.
    let written = (0..32).try_for_each(|_| (&file).write_all(&[1; 1 << 20]));
    let outcome = written.and_then(|()| file.sync_all());
    let error = outcome.expect_err("an agent was killed");
    assert_eq!(error.raw_os_error(), Some(nix::libc::EIO), "{error}");
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    drop(file);
    succeed(point.command(&["umount"], &["--lazy"]));
}

/// File system in memory. Dropping it unmounts it.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// Mounts a file system in the directory of a store. Returns `None` if this computer does not permit that.
    fn of(store: &Store, size: &str) -> Option<SmallDisk> {
        let disk = store.path("small");
        fs::create_dir(&disk).expect("a directory");
        let mut mount = Command::new("mount");
        let made = mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(&disk).output();
        if made.expect("a mount command").status.success() {
            return Some(SmallDisk(disk));
        }
        skip("only root can mount a file system in memory");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Program that locks a file and does one step after each line of input. It is a separate process, because while the
/// mount is stopped, a process with an open file on it must not start another process, which would close its copies of
/// the open files. These closes would wait for the mount.
const LOCKER: &str = "
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
def step(name, work):
    try:
        print(name, work(), flush=True)
    except OSError as error:
        print(name, error.errno, flush=True)
    sys.stdin.readline()
step('locked', lambda: fcntl.flock(file, fcntl.LOCK_EX))
step('wrote', lambda: os.write(file, b'mine, and not sent before the mount is stopped'))
step('wrote', lambda: os.write(file, b'mine'))
step('unlocked', lambda: fcntl.flock(file, fcntl.LOCK_UN))
step('locked', lambda: fcntl.flock(file, fcntl.LOCK_EX))
step('read', lambda: os.pread(file, 100, 0))
";

#[test]
fn a_mount_that_was_stopped_too_long_reports_lost_locks() {
    let Some(point) = MountPoint::new() else { return };
    if !has("python3") {
        return;
    }
    let other = point.store.path("other");
    fs::create_dir(&other).expect("a directory");
    let mut stopped = point.command(&["mount"], &[]).spawn().expect("the program");
    point.wait_until_mounted();
    succeed(point.store.command(&["mount", "other", "--background", "--log", "other.log"]));
    fs::write(point.path.join("unlocked"), b"text").expect("a file");
    let mut locker = Command::new("python3");
    locker.args(["-c", LOCKER]).arg(point.path.join("file")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut locker = locker.spawn().expect("python3 was found before");
    let mut stdout = BufReader::new(locker.stdout.take().expect("piped")).lines();
    let mut next_line = || stdout.next().expect("a line").expect("text");
    let mut next_step = locker.stdin.take().expect("piped");
    let mut next_step = || next_step.write_all(b"\n").expect("it listens");
    assert_eq!(next_line(), "locked None");
    assert!(!is_free(&other.join("file")));
    next_step();
    assert_eq!(next_line(), "wrote 46");
    signal(&stopped, "STOP");
    let mut theirs = fs::File::options().write(true).open(other.join("file")).expect("a file");
    within(Duration::from_secs(20), "the lock is free", || theirs.try_lock().is_ok());
    theirs.write_all(b"theirs").expect("room");
    signal(&stopped, "CONT");
    next_step();
    assert_eq!(next_line(), format!("wrote {}", nix::libc::EIO));
    assert_eq!(fs::read(point.path.join("unlocked")).expect("other files are unaffected"), b"text");
    next_step();
    assert_eq!(next_line(), format!("unlocked {}", nix::libc::EIO), "unsent data are lost");
    theirs.unlock().expect("it has it");
    next_step();
    assert_eq!(next_line(), "locked None");
    next_step();
    assert_eq!(next_line(), "read b'theirs'");
    next_step();
    assert!(locker.wait().expect("it ends").success());
    drop(theirs);
    unmounted(|| point.store.command(&["umount", "other"]));
    point.unmount();
    assert!(stopped.wait().expect("it ends").success());
}
