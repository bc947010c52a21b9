//! One of five disks fails in one of eight ways. Then only files on this disk fail, and each error names the agent of
//! the disk.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{Agent, Store, finish, hash, wait};
use crate::mount_point::MountPoint;

/// Way in which a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskFault {
    Removed,
    Unmounted,
    ReadOnly,
    Full,
    NewerStripe,
    DamagedHeader,
    Killed,
    Hung,
}

impl DiskFault {
    /// Returns true if the agent does not answer.
    fn is_silent(self) -> bool {
        matches!(self, DiskFault::Killed | DiskFault::Hung)
    }

    /// Returns true if the disk cannot be used at all.
    fn is_unusable(self) -> bool {
        self.is_silent() || matches!(self, DiskFault::Removed | DiskFault::Unmounted)
    }

    /// Returns true if only one stripe cannot be read.
    fn is_of_one_stripe(self) -> bool {
        matches!(self, DiskFault::NewerStripe | DiskFault::DamagedHeader)
    }
}

/// Five agents, with files on the disk that fails and files on the other disks.
struct Trial {
    store: Store,
    victim: usize,
    on: BTreeSet<String>,
    elsewhere: BTreeSet<String>,
    /// File system that is unmounted at the end.
    mounted: Option<PathBuf>,
    original: blake3::Hash,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(path) = &self.mounted {
            let _ = Command::new("umount").arg("--lazy").arg(path).status();
        }
        self.store.agents[self.victim].signal_if_running("CONT");
    }
}

impl Agent {
    /// Sends a signal to an agent that may already have ended.
    fn signal_if_running(&self, name: &str) {
        let _ = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).output();
    }
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn stripes_in(root: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(root).expect("a disk").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "begun" || end == "stripe")).collect()
}

impl Trial {
    fn begin() -> Trial {
        let store = Store::start(&[1; 5]);
        let original = store.make_file("local", 700_000);
        store.run(&["mkdir", "d"]);
        let doctor = text_of(&finish(store.command(&["doctor", "--quick"])));
        let is_metadata_agent =
            |agent: &Agent| doctor.contains(&format!("agent {} is its metadata server", agent.address));
        let metadata_agent =
            store.agents.iter().position(is_metadata_agent).expect("one agent is the metadata server");
        let victim = usize::from(metadata_agent == 0);
        let mut trial =
            Trial { store, victim, on: BTreeSet::new(), elsewhere: BTreeSet::new(), mounted: None, original };
        trial.put("all", "5");
        for number in 0.. {
            trial.put(&format!("file{number}"), "2");
            if trial.on.len() >= 2 && trial.elsewhere.len() >= 2 {
                return trial;
            }
        }
        unreachable!("stripes are spread over all disks")
    }

    /// Uploads a file, and records if a part of it is on the disk that will fail.
    fn put(&mut self, name: &str, disks: &str) {
        let before = stripes_in(self.root());
        self.store.run(&["put", "local", &format!("d/{name}"), "--block", "64KiB", "--disks", disks]);
        let is_on = stripes_in(self.root()) != before;
        if is_on { &mut self.on } else { &mut self.elsewhere }.insert(name.to_owned());
    }

    fn root(&self) -> &Path {
        &self.store.agents[self.victim].roots[0]
    }

    fn address(&self) -> &str {
        &self.store.agents[self.victim].address
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.store.command(arguments);
        command.env("STARFISH_SILENCE", "2");
        command
    }

    /// Makes the disk fail. Returns false if this computer cannot make it fail in this way.
    fn fail(&mut self, fault: DiskFault) -> bool {
        let root = self.root().to_owned();
        match fault {
            DiskFault::Removed => fs::remove_dir_all(&root).expect("a directory of the test"),
            DiskFault::Unmounted => {
                fs::rename(&root, root.with_extension("away")).expect("a directory of the test");
                fs::create_dir(&root).expect("room");
            }
            DiskFault::ReadOnly => return self.make_read_only(&root),
            DiskFault::Full => self.store.restart_limited(self.victim, "-f 64"),
            DiskFault::NewerStripe | DiskFault::DamagedHeader => self.damage_a_stripe(&root, fault),
            DiskFault::Killed => {
                self.store.agents[self.victim].signal("KILL");
                wait(&mut self.store.agents[self.victim].child);
            }
            DiskFault::Hung => self.store.agents[self.victim].signal("STOP"),
        }
        true
    }

    /// Stops the agent, changes the contents of its disk, and restarts it.
    fn change_while_stopped(&mut self, change: impl FnOnce(&Path) -> bool) -> bool {
        let agent = &mut self.store.agents[self.victim];
        agent.signal("TERM");
        assert!(wait(&mut agent.child).success());
        let (address, roots) = (agent.address.clone(), agent.roots.clone());
        change(&roots[0]) && {
            self.store.agents[self.victim] = Agent::start_at(&address, roots, &[]);
            true
        }
    }

    fn make_read_only(&mut self, root: &Path) -> bool {
        let made = self.change_while_stopped(|root| {
            let mount = |options: &[&str], what: &Path| {
                Command::new("mount")
                    .args(options)
                    .arg(what)
                    .arg(root)
                    .status()
                    .is_ok_and(|done| done.success())
            };
            mount(&["--bind"], root) && mount(&["-o", "remount,bind,ro"], Path::new("none"))
        });
        self.mounted = made.then(|| root.to_owned());
        made
    }

    /// Damages the header of a stripe on this disk, of a new file that is on all disks.
    fn damage_a_stripe(&mut self, root: &Path, fault: DiskFault) {
        let before = stripes_in(root);
        self.put("damaged", "5");
        let stripe = stripes_in(root).difference(&before).next().expect("it is on all disks").clone();
        self.change_while_stopped(|_| {
            let file = fs::OpenOptions::new().write(true).open(&stripe).expect("it belongs to the test");
            let (at, bytes) = if fault == DiskFault::NewerStripe { (8, [9]) } else { (100, [0xA5]) };
            file.write_all_at(&bytes, at).expect("room");
            true
        });
        self.elsewhere.append(&mut self.on);
        self.elsewhere.remove("damaged");
        self.on = BTreeSet::from(["damaged".to_owned()]);
    }

    /// Checks which files can be read completely.
    fn check_contents(&self, fault: DiskFault) {
        let is_readable = matches!(fault, DiskFault::ReadOnly | DiskFault::Full);
        for (names, is_fine) in [(&self.elsewhere, true), (&self.on, is_readable)] {
            for name in names {
                let path = format!("d/{name}");
                let got = finish(self.command(&["get", &path, "back", "--force"]));
                let printed = finish(self.command(&["cat", &path]));
                for output in [&got, &printed] {
                    assert_eq!(output.status.success(), is_fine, "{fault:?} {name}: {}", text_of(output));
                    assert!(
                        is_fine || text_of(output).contains(self.address()),
                        "{fault:?} {name}: {}",
                        text_of(output)
                    );
                }
                if is_fine {
                    assert_eq!(hash(&self.store.path("back")), self.original, "{fault:?} {name}");
                    assert_eq!(blake3::hash(&printed.stdout), self.original, "{fault:?} {name}");
                }
            }
        }
    }

    /// Uploads a new file. If the disk cannot be used, `put` avoids it. If the disk cannot be written to, `put` fails.
    fn check_put(&self, fault: DiskFault) {
        let put = finish(self.command(&["put", "local", "d/new", "--block", "64KiB"]));
        let is_fine = fault.is_of_one_stripe() || (fault.is_unusable() && !fault.is_silent());
        assert_eq!(put.status.success(), is_fine, "{fault:?}: {}", text_of(&put));
        assert!(
            fault.is_of_one_stripe() || text_of(&put).contains(self.address()),
            "{fault:?}: {}",
            text_of(&put)
        );
        if fault.is_silent() {
            let put = finish(self.command(&["put", "local", "d/new", "--without-missing"]));
            assert!(put.status.success(), "{fault:?}: {}", text_of(&put));
        }
        if put.status.success() || fault.is_silent() {
            let got = finish(self.command(&["get", "d/new", "back", "--force"]));
            assert!(got.status.success(), "{fault:?}: {}", text_of(&got));
            assert_eq!(hash(&self.store.path("back")), self.original);
        }
    }

    fn check_fsck(&self, fault: DiskFault) {
        let output = finish(self.command(&["fsck", "--format", "json"]));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let findings = report["findings"].as_array().expect("a list");
        let found = |row: &Value| row["file"].as_str().expect("text").to_owned();
        let found: BTreeSet<String> = findings.iter().map(found).collect();
        let damaged = if matches!(fault, DiskFault::ReadOnly | DiskFault::Full) {
            BTreeSet::new()
        } else {
            self.on.clone()
        };
        let damaged: BTreeSet<String> = damaged.iter().map(|name| format!("/d/{name}")).collect();
        assert_eq!(found, damaged, "{fault:?}: {report}");
        assert_eq!(output.status.success(), damaged.is_empty(), "{fault:?}: {report}");
        let failures = report["failures"].as_array().expect("a list");
        assert_eq!(failures.len(), usize::from(fault.is_unusable()), "{fault:?}: {report}");
        let named = |value: &Value| value.to_string().contains(self.address());
        assert!(findings.iter().chain(failures).all(named), "{fault:?}: {report}");
        // The files on the other disks have been read completely.
        let least = self.elsewhere.len() as u64 * 700_000;
        assert!(report["bytes"].as_u64().is_some_and(|bytes| bytes >= least), "{fault:?}: {report}");
    }

    fn check_mount(&self, fault: DiskFault) {
        let path = self.store.path(&format!("mounted {fault:?}"));
        fs::create_dir(&path).expect("a directory");
        let (path, without) = (path.to_str().expect("text"), ["--without-missing"]);
        let options = if fault.is_silent() { &without[..] } else { &[] };
        let mounted =
            finish(self.command(&[&["mount", path, "--background", "--log", "log"], options].concat()));
        assert!(mounted.status.success(), "{fault:?}: {}", text_of(&mounted));
        let inside = Path::new(path).join("d");
        let names = fs::read_dir(&inside).expect("the names are on another disk");
        let names: BTreeSet<String> =
            names.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        assert!(self.on.union(&self.elsewhere).all(|name| names.contains(name)), "{fault:?}: {names:?}");
        let is_readable = matches!(fault, DiskFault::ReadOnly | DiskFault::Full);
        for (names, is_fine) in [(&self.elsewhere, true), (&self.on, is_readable)] {
            for name in names {
                let read = fs::read(inside.join(name)).map(|read| blake3::hash(&read));
                match is_fine {
                    true => assert_eq!(read.expect("it is intact"), self.original, "{fault:?} {name}"),
                    false => assert!(read.is_err(), "{fault:?} {name}"),
                }
            }
        }
        let unmounted = finish(self.command(&["umount", path]));
        assert!(unmounted.status.success(), "{fault:?}: {}", text_of(&unmounted));
    }
}

fn check(fault: DiskFault) {
    let mut trial = Trial::begin();
    let can_mount = MountPoint::is_possible(&trial.store);
    if !trial.fail(fault) {
        return prerequisites::skip(format_args!("this user cannot make a disk {fault:?}"));
    }
    let listed = finish(trial.command(&["ls", "d"]));
    let names: BTreeSet<String> =
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
    assert!(listed.status.success(), "{fault:?}: {}", text_of(&listed));
    assert_eq!(names, trial.on.union(&trial.elsewhere).cloned().collect(), "{fault:?}");
    trial.check_contents(fault);
    trial.check_fsck(fault);
    if can_mount {
        trial.check_mount(fault);
    }
    trial.check_put(fault);
}

#[test]
fn a_removed_directory_fails_only_its_files() {
    check(DiskFault::Removed);
}

#[test]
fn an_unmounted_disk_fails_only_its_files() {
    check(DiskFault::Unmounted);
}

#[test]
fn a_read_only_disk_fails_only_new_files() {
    check(DiskFault::ReadOnly);
}

#[test]
fn a_full_disk_fails_only_new_files() {
    check(DiskFault::Full);
}

#[test]
fn a_stripe_of_a_newer_version_fails_only_its_file() {
    check(DiskFault::NewerStripe);
}

#[test]
fn a_damaged_header_fails_only_its_file() {
    check(DiskFault::DamagedHeader);
}

#[test]
fn a_killed_agent_fails_only_files_on_its_disk() {
    check(DiskFault::Killed);
}

#[test]
fn a_hung_agent_fails_only_files_on_its_disk() {
    check(DiskFault::Hung);
}
