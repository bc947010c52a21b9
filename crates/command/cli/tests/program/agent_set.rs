//! `starfish agents`: sets of agents in the background, on this computer and over a substitute for ssh.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::common::{contents, fail, finish, starfish, stripe_files, succeed, wait};
use crate::mount_point::within;
use tempfile::TempDir;

/// Home directory of a test. Dropping it stops the agents that the test has started.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = starfish(arguments);
        command.env("XDG_STATE_HOME", self.0.path()).env("HOME", self.0.path()).current_dir(self.0.path());
        command.env("XDG_CONFIG_HOME", self.path("config")).env_remove("STARFISH_KEY_FILE");
        command.env_remove("STARFISH_LOG");
        command
    }

    fn run(&self, arguments: &[&str]) -> (String, String) {
        let output = finish(self.command(arguments));
        let Output { status, stdout, stderr } = output;
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let (stdout, stderr) = (text(stdout), text(stderr));
        assert!(status.success(), "{arguments:?}: {status}: {stderr}");
        (stdout, stderr)
    }

    fn fail(&self, arguments: &[&str]) -> String {
        let failed = finish(self.command(arguments));
        let stderr = String::from_utf8(failed.stderr).expect("text");
        assert_eq!(failed.status.code(), Some(1), "{arguments:?}: {stderr}");
        stderr
    }

    /// Creates a script in place of ssh, which runs the shell code `first` (the host is `$1`) and then the command on
    /// this computer. Returns the command that calls it.
    fn ssh(&self, first: &str) -> String {
        let path = self.path("ssh.sh");
        std::fs::write(&path, format!("{first}\nshift\nexec \"$@\"\n")).expect("a file");
        format!("sh {}", path.display())
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a file");
        name.to_owned()
    }

    /// Returns the process IDs in `agents.toml`, the record of the set.
    fn processes(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.path("starfish/agents.toml")).unwrap_or_default();
        let numbers = text.lines().filter_map(|line| line.strip_prefix("number = "));
        numbers.map(|number| number.parse().expect("a number")).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for process in agents_below(self.0.path()) {
            let _ = Command::new("kill").args(["-s", "KILL", &process.to_string()]).status();
        }
    }
}

/// Returns the process IDs of the agents whose files are below this directory.
fn agents_below(directory: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux").filter_map(|entry| entry.ok());
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |number: &u32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let here = std::fs::read_link(format!("/proc/{number}/cwd")).is_ok_and(|cwd| cwd == directory);
        line.contains("--until-input-ends") && (here || line.contains(directory.to_str().expect("UTF-8")))
    };
    numbers.filter(is_ours).collect()
}

fn until(what: &str, holds: impl FnMut() -> bool) {
    within(Duration::from_secs(30), what, holds);
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Returns the stripe files on the disks of the set.
fn stripes_of(home: &Home) -> Vec<PathBuf> {
    let agents = std::fs::read_dir(home.path("starfish")).expect("a set");
    let disks = agents.map(|entry| entry.expect("an entry").path().join("disk")).filter(|disk| disk.is_dir());
    disks.flat_map(|disk| stripe_files(&disk)).collect()
}

/// The agents must remove orphans themselves, since an idle set has no client that could.
#[test]
fn agents_remove_orphans_of_a_killed_client() {
    let home = Home::new();
    let with_short_timeout = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("STARFISH_SILENCE", "1");
        command
    };
    succeed(with_short_timeout(&["agents", "up", "--local", "2"]));
    let mounted = home.path("mounted");
    std::fs::create_dir(&mounted).expect("room");
    let mut mount = with_short_timeout(&["mount", "mounted"]).spawn().expect("the program");
    until("it is mounted or it has failed", || {
        mount::is_mount_of_ours(&mounted) || mount.try_wait().expect("a child process of the test").is_some()
    });
    if !mount::is_mount_of_ours(&mounted) {
        let output = mount.wait_with_output().expect("a child process of the test");
        return prerequisites::cannot_mount(&String::from_utf8_lossy(&output.stderr));
    }
    std::fs::write(mounted.join("removed"), contents(4 << 20)).expect("room");
    let file = std::fs::File::open(mounted.join("removed")).expect("just made");
    file.sync_all().expect("all agents run");
    std::fs::remove_file(mounted.join("removed")).expect("it exists");
    mount.kill().and_then(|()| mount.wait()).expect("a child process of the test");
    drop(file);
    succeed(home.command(&["umount", "mounted", "--lazy"]));
    assert_eq!(stripes_of(&home).len(), 2, "the removed file is still open, so its stripes stay");
    until("the stripes are removed", || stripes_of(&home).is_empty());
}

/// Without this warning, programs that use a mount would block silently once its agents have stopped.
#[test]
fn agents_down_reports_mounts_of_the_set() {
    let home = Home::new();
    home.run(&["agents", "up", "--local", "1"]);
    std::fs::create_dir(home.path("mounted")).expect("room");
    let mounted = finish(home.command(&["mount", "mounted", "--background"]));
    if !mounted.status.success() {
        home.run(&["agents", "down"]);
        return prerequisites::cannot_mount(&String::from_utf8_lossy(&mounted.stderr));
    }
    let (_, stderr) = home.run(&["agents", "down"]);
    home.run(&["umount", "mounted", "--lazy"]);
    assert!(
        stderr.contains("/mounted is a mount of these agents") && stderr.contains("agents up"),
        "{stderr}"
    );
}

#[test]
fn a_local_set_is_found_by_later_commands_and_keeps_its_files() {
    let home = Home::new();
    let (first, stderr) = home.run(&["agents", "up", "--local", "3", "--", "--cache", "16MiB"]);
    assert!(
        first.starts_with("export STARFISH_AGENTS=127.0.0.1:") && stderr.contains("Started 3."),
        "{stderr}"
    );
    assert!(!stderr.contains("instead"), "{stderr}");
    std::fs::write(home.path("file"), contents(1_000_000)).expect("a file");
    home.run(&["put", "file"]);

    let (second, stderr) = home.run(&["agents", "up", "--local", "3"]);
    assert_eq!(second, first, "a repeated `up` changes nothing");
    assert!(stderr.contains("All 3 run already"), "{stderr}");
    let (status, _) = home.run(&["agents", "status"]);
    assert_eq!(status.matches("running").count(), 3, "{status}");

    // One agent is killed. `status` reports this, and `up` restarts the agent at the same address.
    let victim = home.processes()[1];
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().expect("kill").success());
    until("the status reports the killed agent", || {
        !home.command(&["agents", "status"]).output().expect("the program").status.success()
    });
    let stderr = home.fail(&["agents", "status"]);
    assert!(stderr.contains("1 of 3 does not run") && stderr.contains("`starfish agents up`"), "{stderr}");
    // Other commands report the killed agent, too.
    let stderr = home.fail(&["get", "file", "back"]);
    let log = home.path("starfish/local-1/log").display().to_string();
    assert!(stderr.contains("`starfish agents up` starts it again") && stderr.contains(&log), "{stderr}");
    let (third, stderr) = home.run(&["agents", "up"]);
    assert_eq!(third, first, "the same addresses");
    assert!(stderr.contains("Started 1; 2 ran already."), "{stderr}");
    home.run(&["get", "file", "back"]);
    assert_eq!(std::fs::read(home.path("back")).expect("a file"), contents(1_000_000));

    let (_, stderr) = home.run(&["agents", "down"]);
    assert!(stderr.contains("Stopped 3."), "{stderr}");
    assert_eq!(agents_below(home.0.path()), [0; 0]);
    let stderr = home.fail(&["agents", "status"]);
    assert!(
        stderr.contains("none of the 3 agents of this set runs") && stderr.contains("`starfish agents up`"),
        "{stderr}"
    );
    assert!(home.run(&["agents", "down"]).1.contains("No agent was running"));

    // The set restarts with the same ports, options and files.
    let (fourth, stderr) = home.run(&["agents", "up"]);
    assert_eq!(fourth, first, "the same addresses");
    assert!(stderr.contains("Started 3."), "{stderr}");
    let commands = agents_below(home.0.path()).into_iter().map(|number| {
        String::from_utf8_lossy(
            &std::fs::read(format!("/proc/{number}/cmdline")).expect("it belongs to the test"),
        )
        .into_owned()
    });
    assert_eq!(commands.filter(|command| command.contains("16MiB")).count(), 3);
    home.run(&["get", "file", "again"]);
    assert_eq!(std::fs::read(home.path("again")).expect("a file"), contents(1_000_000));
}

#[test]
fn a_set_is_not_shrunk_or_reconfigured_by_mistake() {
    let home = Home::new();
    let stderr = fail(home.command(&["agents", "up"]), 2);
    assert!(stderr.contains("no set of agents was started") && stderr.contains("--local N"), "{stderr}");
    home.run(&["agents", "up", "--local", "2"]);
    // This first use makes the first agent the metadata server.
    home.run(&["mkdir", "names", "--agents", &address_of(&home, 0)]);
    std::fs::write(home.path("file"), contents(1_000_000)).expect("a file");
    home.run(&["put", "file"]);
    // The set already runs, and more agents join it.
    let (_, stderr) = home.run(&["agents", "up", "--local", "3"]);
    assert!(stderr.contains("Started 1; 2 ran already."), "{stderr}");
    let stderr = home.fail(&["agents", "up", "--local", "3", "--disk-model", "streaming-20"]);
    assert!(
        stderr.contains("`--disk-model streaming-20`") && stderr.contains("`starfish agents down`"),
        "{stderr}"
    );
    // The third agent has no files.
    let (_, stderr) = home.run(&["agents", "up", "--local", "2"]);
    assert!(stderr.contains("Stopped 1"), "{stderr}");
    assert_eq!(agents_below(home.0.path()).len(), 2);
    for state in ["running", "stopped"] {
        let stderr = home.fail(&["agents", "up", "--local", "1"]);
        for part in ["1 file has a stripe on local 1\n", "`starfish agents up` starts all 2 agents", "--anew"]
        {
            assert!(stderr.contains(part), "{state}: {part}: {stderr}");
        }
        home.run(&["agents", "down"]);
        until("the agents have ended", || agents_below(home.0.path()).is_empty());
    }
    let (_, stderr) = home.run(&["agents", "up", "--disk-model", "streaming-20"]);
    assert!(stderr.contains("Options: `--disk-model streaming-20`; before: no options."), "{stderr}");
    home.run(&["get", "file", "back"]);
    assert_eq!(std::fs::read(home.path("back")).expect("a file"), contents(1_000_000));
    home.run(&["put", "file", "names/file"]);
    let stderr = home.fail(&["agents", "up", "--local", "1"]);
    assert!(stderr.contains("2 files have a stripe on local 1\n"), "{stderr}");
    assert!(
        stderr.contains("removed files are freed within a minute, or by `starfish fsck --repair`"),
        "{stderr}"
    );
    home.run(&["agents", "down"]);
    home.run(&["agents", "up", "--local", "1", "--anew"]);
    assert!(home.fail(&["get", "file", "again"]).contains("no I/O node has disk "));
}

/// Without the metadata agent no file can be read, even if its stripes are on running agents.
#[test]
fn the_metadata_agent_is_not_left_out_by_mistake() {
    let home = Home::new();
    home.run(&["agents", "up", "--local", "2"]);
    home.run(&["mkdir", "names", "--agents", &address_of(&home, 1)]);
    for state in ["running", "stopped"] {
        let stderr = home.fail(&["agents", "up", "--local", "1"]);
        assert!(stderr.contains("local 1") && stderr.contains("--anew"), "{state}: {stderr}");
        home.run(&["agents", "down"]);
    }
    home.run(&["agents", "up"]);
    assert_eq!(home.run(&["ls"]).0, "names/\n");
}

#[test]
fn help_for_agents_is_shown_and_starts_no_agent() {
    let home = Home::new();
    for options in [&["--help"][..], &["--metrics", "127.0.0.1:0", "-h"]] {
        let (stdout, _) = home.run(&[&["agents", "up", "--local", "3", "--"], options].concat());
        assert!(stdout.contains("Usage: starfish agent") && stdout.contains("--copy-namespace"), "{stdout}");
    }
    assert!(agents_below(home.0.path()).is_empty());
}

/// If a disk is not mounted, its mount point is an empty directory. An agent's directory below that mount point is then
/// missing.
#[test]
fn a_missing_disk_is_replaced_only_with_create() {
    let home = Home::new();
    home.run(&["agents", "up", "--local", "2"]);
    // This first use makes the first agent the metadata server.
    home.run(&["ls", "--agents", &address_of(&home, 0)]);
    std::fs::write(home.path("file"), contents(1_000_000)).expect("a file");
    home.run(&["put", "file"]);
    home.run(&["agents", "down"]);
    let (disk, away) = (home.path("starfish/local-1/disk"), home.path("away"));
    std::fs::rename(&disk, &away).expect("on one file system");
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir(&disk).expect("room");
        }
        let stderr = home.fail(&["agents", "up"]);
        assert!(
            stderr.contains(disk.to_str().expect("UTF-8")) && stderr.contains("add --create"),
            "{stderr}"
        );
        assert!(
            stderr.contains("local 1: not started: ") && stderr.contains("1 of 2 does not run: local 1"),
            "{stderr}"
        );
        assert_eq!(
            stderr.matches("starfish: ").count(),
            2,
            "each of the two messages begins with `starfish: `: {stderr}"
        );
        // The other agent continues to run.
        until("only one agent runs", || agents_below(home.0.path()).len() == 1);
    }
    let stderr = home.fail(&["agents", "status"]);
    assert!(stderr.contains("1 of 2 does not run"), "{stderr}");
    home.run(&["agents", "down"]);
    let metadata_disk = home.path("starfish/local-0/disk");
    std::fs::rename(&metadata_disk, home.path("away too")).expect("on one file system");
    let stderr = home.fail(&["agents", "up"]);
    assert!(
        stderr.contains(metadata_disk.to_str().expect("UTF-8")) && !stderr.contains("not started"),
        "{stderr}"
    );
    until("no agent runs", || agents_below(home.0.path()).is_empty());
    std::fs::rename(home.path("away too"), &metadata_disk).expect("on one file system");
    std::fs::remove_dir(&disk).expect("it is still empty");
    std::fs::rename(&away, &disk).expect("on one file system");
    // Agents that are added to the set are new, so their directories are created without `--create`.
    home.run(&["agents", "up", "--local", "3"]);
    home.run(&["get", "file", "back"]);
    assert_eq!(std::fs::read(home.path("back")).expect("a file"), contents(1_000_000));
    home.run(&["agents", "down"]);
    std::fs::remove_dir_all(&disk).expect("it belongs to the test");
    home.run(&["agents", "up", "--create"]);
    let stderr = home.fail(&["get", "file", "again"]);
    assert!(stderr.contains("no I/O node has disk ") && stderr.contains("--skip-damaged"), "{stderr}");
}

#[test]
fn a_hung_agent_is_reported_as_silent_and_can_be_stopped() {
    let home = Home::new();
    home.run(&["agents", "up", "--local", "2"]);
    let hanging = home.processes()[1].to_string();
    assert!(Command::new("kill").args(["-s", "STOP", &hanging]).status().expect("kill").success());
    let run_with_short_timeout = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("STARFISH_SILENCE", "1");
        finish(command)
    };
    let output = run_with_short_timeout(&["agents", "status"]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    let line = stdout.lines().find(|line| line.starts_with("local 1 ")).expect("a line for each");
    assert!(line.contains(&hanging) && line.contains("silent"), "{stdout}");
    assert!(stdout.contains("running") && stdout.contains("no answer within 1 s"), "{stdout}");
    assert!(
        stderr.contains("1 of 2 does not answer") && stderr.contains("`starfish agents down`"),
        "{stderr}"
    );
    let output = run_with_short_timeout(&["agents", "up"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && stderr.contains("if it hangs, run `starfish agents down` first"),
        "{stderr}"
    );
    assert!(home.run(&["agents", "down"]).1.contains("Stopped 2."));
    assert_eq!(agents_below(home.0.path()), [0; 0]);
    home.run(&["agents", "up"]);
    let (stdout, _) = home.run(&["agents", "status"]);
    assert_eq!(stdout.matches("running").count(), 2, "{stdout}");
}

#[test]
fn a_set_in_another_directory_is_separate() {
    let home = Home::new();
    let one = home.path("one set");
    let one = one.to_str().expect("UTF-8");
    let up = ["agents", "up", "--local", "1", "--dir", one, "--disk-model", "streaming-20"];
    let (stdout, stderr) = home.run(&up);
    assert!(stderr.contains("use none instead"), "{stderr}");
    assert!(stderr.contains(&format!("`starfish agents down --dir '{one}'` stops them")), "{stderr}");
    let stderr = fail(home.command(&["ls"]), 2);
    assert!(stderr.contains("agents up"), "it is not the usual directory: {stderr}");
    let address = stdout.trim().strip_prefix("export STARFISH_AGENTS=").expect("a line for the shell");
    assert_eq!(home.run(&["ls", "--agents", address]).0, "");
    let (status, _) = home.run(&["agents", "status", "--dir", one, "--format", "json"]);
    assert!(status.contains("\"state\": \"running\""), "{status}");
    home.run(&["agents", "down", "--dir", one]);
    assert_eq!(agents_below(home.0.path()), [0; 0]);
}

/// Checks the time in each line of an agent's log, and returns the lines without it.
fn logged(home: &Home, agent: &str) -> Vec<String> {
    let log = std::fs::read_to_string(home.path(&format!("starfish/{agent}/log"))).expect("a log");
    let line = |line: &str| {
        let (time, rest) = line.split_once(' ').expect("a time and more");
        assert!(time.starts_with("20") && time.contains('T') && time.ends_with('Z'), "{line}");
        rest.to_owned()
    };
    log.lines().map(line).collect()
}

#[test]
fn an_agent_logs_starts_stops_and_damage() {
    let home = Home::new();
    let up = |level: &str| {
        let mut up = home.command(&["agents", "up", "--local", "2"]);
        up.env("STARFISH_LOG", level);
        succeed(up);
    };
    up("info");
    std::fs::write(home.path("file"), contents(1_000_000)).expect("a file");
    home.run(&["put", "file"]);
    let [stripe] = &stripe_files(&home.path("starfish/local-1/disk"))[..] else { panic!("it has one") };
    let address = address_of(&home, 1);
    let lines = logged(&home, "local-1");
    assert!(
        lines[0].starts_with(&format!("info   started: starfish {} at {address}", env!("CARGO_PKG_VERSION")))
    );
    assert!(lines[0].contains("1 disk: ") && lines.len() == 1, "{lines:?}");
    home.run(&["agents", "down"]);
    let lines = logged(&home, "local-1");
    assert_eq!(
        lines[1..],
        ["info   stopping on a signal", "info   stopped: all accepted data are on its disks"]
    );

    // A stripe is truncated while the agent is stopped. Then the log of the agent and the commands that read the stripe
    // report the damage.
    let whole = std::fs::read(stripe).expect("a stripe");
    std::fs::write(stripe, &whole[..100]).expect("room");
    up("debug");
    let stderr = home.fail(&["get", "file", "back"]);
    assert!(stderr.contains("damaged"), "{stderr}");
    let lines = logged(&home, "local-1");
    let of = |level: &str| lines.iter().filter(|line| line.starts_with(level)).count();
    let stripe = stripe.to_str().expect("UTF-8");
    let damages = lines.iter().filter(|line| line.starts_with("error") && line.contains(stripe));
    assert_eq!(damages.count(), 1, "{lines:?}");
    assert!(of("debug") >= 2, "clients connect and disconnect: {lines:?}");
    let status = finish(home.command(&["agents", "status"]));
    assert!(String::from_utf8_lossy(&status.stdout).contains("starfish/local-1/log:"));
    home.run(&["agents", "down"]);

    // The log has a maximum size.
    let log = home.path("starfish/local-1/log");
    std::fs::write(&log, vec![b'x'; 2 << 20]).expect("room");
    up("off");
    assert_eq!(std::fs::metadata(&log).expect("a new one").len(), 0);
    assert_eq!(std::fs::metadata(home.path("starfish/local-1/log.old")).expect("the old one").len(), 2 << 20);
}

/// Returns the address of an agent from the record of the set.
fn address_of(home: &Home, index: usize) -> String {
    let text = std::fs::read_to_string(home.path("starfish/agents.toml")).expect("a record");
    let addresses = text.lines().filter_map(|line| line.strip_prefix("address = \""));
    addresses.map(|address| address.trim_end_matches('"').to_owned()).nth(index).expect("an agent")
}

#[test]
fn hosts_are_reached_over_ssh() {
    let home = Home::new();
    let calls = home.path("calls");
    let ssh = home.ssh(&format!("echo $1 >> {}", calls.display()));
    let (a, b) = (free_port(), free_port());
    let hosts = home.write("hosts", &format!("# ours\n127.0.0.1:{a} disk1 disk2\nme@localhost:{b}\n"));
    let program = env!("CARGO_BIN_EXE_starfish");
    let up = ["agents", "up", "--hosts", &hosts, "--ssh", &ssh, "--program", program];
    let (stdout, stderr) = home.run(&up);
    assert_eq!(stdout, format!("export STARFISH_AGENTS=127.0.0.1:{a},localhost:{b}\n"));
    assert!(stderr.contains("2 disks: disk1, disk2"), "{stderr}");
    let own = home.path(&format!("starfish/localhost-{b}/disk"));
    assert!(own.is_dir(), "a separate disk");
    let called = std::fs::read_to_string(&calls).expect("a file");
    let mut called: Vec<&str> = called.lines().collect();
    called.sort_unstable();
    assert_eq!(called, ["127.0.0.1", "me@localhost"]);
    home.write("file", "some text");
    home.run(&["put", "file"]);
    assert_eq!(home.run(&["cat", "file"]).0, "some text");
    let (status, _) = home.run(&["agents", "status", "--ssh", &ssh]);
    assert_eq!(status.matches("info   started: starfish").count(), 2, "{status}");

    // The directory of an unmounted disk is not created.
    home.run(&["agents", "down", "--ssh", &ssh]);
    std::fs::rename(home.path("disk2"), home.path("unmounted")).expect("it exists");
    let stderr = home.fail(&["agents", "up", "--ssh", &ssh]);
    assert!(stderr.contains("--root disk2: no such directory") && stderr.contains("mounted?"), "{stderr}");
    home.run(&["agents", "down", "--ssh", &ssh]);
    std::fs::rename(home.path("unmounted"), home.path("disk2")).expect("it exists");
    // A set must not contain a disk and a copy of that disk, even on two agents.
    let identity = own.join(".starfish.disk");
    let of_own = std::fs::read(&identity).expect("the identity exists since its first use");
    std::fs::copy(home.path("disk1/.starfish.disk"), &identity)
        .expect("the identity exists since its first use");
    let stderr = home.fail(&["agents", "up", "--ssh", &ssh]);
    let both = format!("disk 0 of agent 127.0.0.1:{a} and disk 0 of agent localhost:{b}");
    assert!(stderr.contains(&both) && stderr.contains("one directory is a copy of the other"), "{stderr}");
    std::fs::write(&identity, of_own).expect("room");
    home.run(&["agents", "up", "--ssh", &ssh]);

    let stderr = home.fail(&["agents", "up", "--local", "1", "--anew", "--ssh", &ssh]);
    assert!(
        stderr.contains("it already holds a different set, with") && stderr.contains("agents down"),
        "{stderr}"
    );
    let stderr = home.fail(&["agents", "status", "--ssh", "/nonexistent/ssh"]);
    assert!(stderr.contains("none of the 2 agents of this set runs"), "{stderr}");
    // An agent on a host that cannot be reached stays in the record of the set.
    home.fail(&["agents", "down", "--ssh", "/nonexistent/ssh"]);
    let (_, stderr) = home.run(&["agents", "down", "--ssh", &ssh]);
    assert!(
        stderr.contains("Stopped 2.") && stderr.contains(&format!("agents up --ssh '{ssh}'`")),
        "{stderr}"
    );
    assert_eq!(agents_below(home.0.path()), [0; 0]);
}

#[test]
fn an_alias_of_the_ssh_configuration_is_resolved_to_its_address() {
    let home = Home::new();
    let ssh = home.ssh("[ \"$1\" = -G ] && { echo user me; echo hostname 127.0.0.1; exit; }");
    let port = free_port();
    let hosts = home.write("hosts", &format!("me@alias.invalid:{port} disk\n"));
    let program = env!("CARGO_BIN_EXE_starfish");
    let (stdout, stderr) =
        home.run(&["agents", "up", "--hosts", &hosts, "--ssh", &ssh, "--program", program]);
    assert_eq!(stdout, format!("export STARFISH_AGENTS=127.0.0.1:{port}\n"));
    assert!(stderr.contains("alias.invalid"), "{stderr}");
    home.write("file", "some text");
    home.run(&["put", "file"]);
    home.run(&["agents", "down", "--ssh", &ssh]);
}

#[test]
fn a_failure_on_a_host_is_reported_with_its_name_and_a_remedy() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_starfish");
    let port = free_port();
    let hosts = home.write("hosts", &format!("127.0.0.1:{port}\n"));
    let up = |ssh: &str, program: &str| {
        let stderr = home.fail(&["agents", "up", "--hosts", &hosts, "--ssh", ssh, "--program", program]);
        assert_eq!(home.processes(), [0; 0]);
        stderr
    };
    let stderr = up("/nonexistent/ssh", program);
    assert!(
        stderr.contains("127.0.0.1: cannot run /nonexistent/ssh") && stderr.contains("openssh-client"),
        "{stderr}"
    );
    let stderr = up(&home.ssh("echo 'Permission denied (publickey).' >&2; exit 255"), program);
    assert!(
        stderr.contains("Permission denied (publickey)") && stderr.contains("ssh-copy-id 127.0.0.1"),
        "{stderr}"
    );
    let stderr = up(&home.ssh(""), "/nonexistent/starfish");
    assert!(
        stderr.contains("no program /nonexistent/starfish") && stderr.contains("--program PATH"),
        "{stderr}"
    );

    let old =
        home.write("old", "#!/bin/sh\necho \"error: unexpected argument '--detach' found\" >&2\nexit 2\n");
    assert!(Command::new("chmod").arg("+x").arg(home.path(&old)).status().expect("chmod").success());
    let stderr = up(&home.ssh(""), home.path(&old).to_str().expect("UTF-8"));
    assert!(stderr.contains("another version") && stderr.contains(env!("CARGO_PKG_VERSION")), "{stderr}");

    let taken = TcpListener::bind(("0.0.0.0", port)).expect("the port is free");
    let stderr = up(&home.ssh(""), program);
    assert!(stderr.contains("127.0.0.1") && stderr.contains(&format!("listens on port {port}")), "{stderr}");
    drop(taken);

    let no_model = home.command(&["agents", "up", "--local", "1", "--disk-model", "floppy"]);
    assert!(fail(no_model, 2).contains("floppy"));
    home.write("hosts", "node1:x\n");
    let stderr = fail(home.command(&["agents", "up", "--hosts", "hosts"]), 2);
    assert!(stderr.contains("hosts:1") && stderr.contains("HOST[:PORT] [ROOT...]"), "{stderr}");
    fail(home.command(&["agents", "up"]), 2);
}

#[test]
fn if_one_agent_cannot_start_the_others_are_stopped() {
    let home = Home::new();
    let ssh = home.ssh("[ $1 != localhost ] || { echo 'no route' >&2; exit 255; }");
    let hosts = home.write("hosts", &format!("127.0.0.1:{}\nlocalhost:{}\n", free_port(), free_port()));
    let program = env!("CARGO_BIN_EXE_starfish");
    let stderr = home.fail(&["agents", "up", "--hosts", &hosts, "--ssh", &ssh, "--program", program]);
    assert!(stderr.contains("localhost: ssh cannot connect: no route"), "{stderr}");
    assert_eq!(home.processes(), [0; 0]);
    until("the other agent has ended", || agents_below(home.0.path()).is_empty());
}

#[test]
fn an_interrupted_start_leaves_no_agents() {
    for signal in ["INT", "KILL"] {
        let home = Home::new();
        // One host answers, the other does not.
        let ssh = home.ssh("[ $1 != localhost ] || exec sleep 20");
        let hosts = home.write("hosts", &format!("127.0.0.1:{}\nlocalhost:{}\n", free_port(), free_port()));
        let program = env!("CARGO_BIN_EXE_starfish");
        let up = ["agents", "up", "--hosts", &hosts, "--ssh", &ssh, "--program", program];
        let mut up = home.command(&up).spawn().expect("the program");
        until("one agent starts", || !agents_below(home.0.path()).is_empty());
        assert!(
            Command::new("kill").args(["-s", signal, &up.id().to_string()]).status().expect("kill").success()
        );
        assert!(!wait(&mut up).success());
        until("the agent has ended", || agents_below(home.0.path()).is_empty());
        assert_eq!(home.processes(), [0; 0]);
    }
}

#[test]
fn one_command_at_a_time_uses_a_state_directory() {
    let home = Home::new();
    let ssh = home.ssh("exec sleep 20");
    let hosts = home.write("hosts", "localhost\n");
    let mut first = home
        .command(&["agents", "up", "--hosts", &hosts, "--ssh", &ssh])
        .spawn()
        .expect("it belongs to the test");
    until("the first command has begun", || home.path("starfish/agents.lock").exists());
    until("the first command has locked the directory", || {
        let second = finish(home.command(&["agents", "up", "--local", "1"]));
        let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
        if second.status.success() {
            succeed(home.command(&["agents", "down"]));
        }
        stderr.contains("another `starfish agents` command")
    });
    first.kill().expect("it belongs to the test");
    wait(&mut first);
}

#[test]
fn standard_output_has_only_the_line_for_the_shell() {
    let home = Home::new();
    let mut up = home.command(&["agents", "up", "--local", "2"]).spawn().expect("the program");
    let lines: Vec<String> =
        BufReader::new(up.stdout.take().expect("piped")).lines().map(|line| line.expect("text")).collect();
    assert!(wait(&mut up).success());
    assert!(lines.len() == 1 && lines[0].starts_with("export STARFISH_AGENTS="), "{lines:?}");
}

/// Checks that only the owner may read a key file, and returns the key in it.
fn key(path: &Path) -> String {
    let mode = std::fs::metadata(path).expect("a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    std::fs::read_to_string(path).expect("a key")
}

#[test]
fn a_set_gets_a_key_and_rejects_clients_with_another() {
    let home = Home::new();
    let (_, stderr) = home.run(&["agents", "up", "--local", "2"]);
    let path = home.path("config/starfish/key");
    assert!(stderr.contains(&format!("Created the cluster key {}", path.display())), "{stderr}");
    let made = key(&path);
    assert_eq!(made.trim().len(), 64);
    home.run(&["ls"]);
    let theirs = home.path("theirs");
    assert_eq!(node::key::make(&theirs, true), Ok(true));
    let stderr = home.fail(&["ls", "--key", theirs.to_str().expect("text")]);
    assert!(stderr.contains("it has a different cluster key"), "{stderr}");

    // On another host there are two copies of the key: one in the agent's state directory, and one where that user's
    // programs look for it by default.
    let other = Home::new();
    let ssh = other.ssh("export HOME=\"$PWD/host\" XDG_STATE_HOME= XDG_CONFIG_HOME=; mkdir -p host");
    let hosts = other.write("hosts", &format!("localhost:{}\n", free_port()));
    let program = env!("CARGO_BIN_EXE_starfish");
    let path = path.to_string_lossy();
    let up = ["agents", "up", "--hosts", &*hosts, "--ssh", &*ssh, "--program", program, "--key", &*path];
    let (_, stderr) = other.run(&up);
    assert!(stderr.contains("Started 1.") && !stderr.contains("Created the cluster key"), "{stderr}");
    assert_eq!(key(&other.path("host/.config/starfish/key")), made);
    let states = std::fs::read_dir(other.path("host/.local/state/starfish")).expect("a directory");
    let states: Vec<PathBuf> = states.map(|entry| entry.expect("an agent's").path()).collect();
    assert_eq!(key(&states[0].join("key")), made);
    other.run(&["ls", "--key", &path]);
    let without = finish(other.command(&["ls"]));
    let stderr = String::from_utf8(without.stderr).expect("text");
    assert!(without.status.code() == Some(2) && stderr.contains("no such file"), "{stderr}");
    other.run(&["agents", "down", "--ssh", &ssh]);
    home.run(&["agents", "down"]);
}

#[test]
fn a_set_remembers_its_key_file() {
    let home = Home::new();
    let own = home.path("own key");
    let own_text = own.to_str().expect("text");
    home.run(&["agents", "up", "--local", "1", "--key", own_text]);
    let made = key(&own);
    home.run(&["agents", "down"]);
    let (_, stderr) = home.run(&["agents", "up"]);
    assert!(stderr.contains("Started 1.") && !stderr.contains("Created the cluster key"), "{stderr}");
    assert!(!home.path("config/starfish/key").exists());
    assert_eq!(key(&own), made);
    home.run(&["ls", "--key", own_text]);
    let other = home.path("another key");
    let stderr = home.fail(&["agents", "up", "--local", "2", "--key", other.to_str().expect("text")]);
    assert!(stderr.contains("the running set uses the key") && stderr.contains("own key"), "{stderr}");
    assert!(!other.exists());
    home.run(&["agents", "down"]);
    let (_, stderr) = home.run(&["agents", "up", "--anew", "--local", "1"]);
    assert!(stderr.contains("Created the cluster key"), "{stderr}");
    home.run(&["ls"]);
    home.run(&["agents", "down"]);
}
