//! Real agents on loopback, as threads of the test process; they end with the test.
//!
//! Used by the tests of all crates that need agents, so that the code of an agent is compiled once.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::fs::IoNodeSettings;
use machine::{Machine, Net, NodeId};
use namespace::{FileNumber, Location, NewInode, TreeOperation};
use node::key;
use pdiol::{Session, Settings};
use real::{DiskSettings, Keys, Limits, MetadataPlace};
use tempfile::TempDir;

/// Agent with one disk.
pub struct Agent {
    /// Listening address of the agent, as HOST:PORT.
    pub address: String,
    /// Directory of the agent's disk.
    pub disk: PathBuf,
    stop: Option<flume::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn start(disk: PathBuf, number: u64, keys: Keys) -> Agent {
        let settings = real::Settings {
            listen: Some(([127, 0, 0, 1], 0).into()),
            disks: vec![DiskSettings::plain(disk.clone())],
            metadata: Some(MetadataPlace::Directory(disk.join("namespace"))),
            limits: Limits { receive_bytes: 16 << 20, ..Limits::default() },
            ..real::Settings::new(NodeId(1 << 62 | number), keys)
        };
        let (sender, started) = flume::bounded(1);
        let (stop, stopped) = flume::bounded::<()>(0);
        let thread = thread::spawn(move || {
            let served = real::run(settings, |machine| async move {
                sender.send(machine.address().expect("it listens")).expect("the test waits for it");
                let network = machine.clone();
                machine.spawn("waiting for the end of the test", async move {
                    let _ = stopped.recv_async().await;
                    network.net().close();
                    Ok(())
                });
                node::serve(machine, IoNodeSettings::agent()).await
            });
            served.expect("it starts").expect("it serves");
        });
        let address = started.recv().expect("it starts").to_string();
        Agent { address, disk, stop: Some(stop), thread: Some(thread) }
    }

    /// Stops the agent cleanly.
    ///
    /// # Panics
    /// If it has failed.
    pub fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it serves");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if thread::panicking() {
            // Waking the runtime of the agent's thread during a panic would be a second panic. The process ends soon
            // anyway.
            std::mem::forget(self.stop.take());
            return;
        }
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Name of the file with the agents' key in the directory of the test.
const KEY_FILE: &str = "agents.key";

/// Agents with fast disks, and a directory for the test.
pub struct Agents {
    /// The agents.
    pub agents: Vec<Agent>,
    /// Temporary directory, which also contains the disks of the agents.
    pub directory: TempDir,
}

impl Agents {
    /// Starts `count` agents with one disk each.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start(count: u64) -> Agents {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disk = |number| directory.path().join(format!("disk{number}"));
        let key_file = directory.path().join(KEY_FILE);
        key::make(&key_file, true).expect("room for a key");
        let keys = key::read(&key_file).expect("just made");
        let agents = (0..count).map(|number| Agent::start(disk(number), number, keys.clone())).collect();
        Agents { agents, directory }
    }

    /// Stops all agents cleanly and restarts them, with the same disks at other addresses.
    ///
    /// # Panics
    /// If one has failed, or cannot be started.
    pub fn restart(&mut self) {
        let keys = key::read(&self.key_file()).expect("it has been made");
        for (number, agent) in (0..).zip(&mut self.agents) {
            agent.end();
            *agent = Agent::start(agent.disk.clone(), number, keys.clone());
        }
    }

    /// Returns the path of the key file of the agents, for STARFISH_KEY_FILE.
    pub fn key_file(&self) -> PathBuf {
        self.path(KEY_FILE)
    }

    /// Returns the addresses of the agents, for STARFISH_AGENTS.
    pub fn names(&self) -> String {
        let addresses: Vec<&str> = self.agents.iter().map(|agent| agent.address.as_str()).collect();
        addresses.join(",")
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns settings of a session with the agents, with a small cache and a short timeout.
    ///
    /// # Panics
    /// Never: the agents have addresses.
    pub fn settings(&self) -> Settings {
        let agents = node::agents::named(self.names().split(',')).expect("addresses");
        let mut settings = Settings::new(agents);
        settings.key = Some(self.key_file());
        settings.cache_bytes = 4 << 20;
        settings.silence = Duration::from_secs(3);
        settings
    }

    /// Returns the paths of all stripes on all disks.
    ///
    /// # Panics
    /// If a disk cannot be listed.
    pub fn stripes(&self) -> Vec<PathBuf> {
        let entries = self.agents.iter().flat_map(|agent| fs::read_dir(&agent.disk).expect("a disk"));
        let paths = entries.map(|entry| entry.expect("an entry").path());
        // The object with the number of the root only marks the disk.
        let mark = stripe_name(FileNumber::ROOT);
        let is_stripe = |name: &str| name.starts_with(STRIPE) && !name.starts_with(&mark);
        paths.filter(|path| path.file_name().and_then(OsStr::to_str).is_some_and(is_stripe)).collect()
    }

    /// Starts a session with the agents.
    ///
    /// # Panics
    /// If they do not answer.
    pub fn session(&self) -> Session {
        Session::start(self.settings()).expect("they are there")
    }
}

/// Start of the names of stripes on disks: an escaped slash.
const STRIPE: &str = "%2F";

/// Returns the name on its disk of a stripe of a file, without the suffix.
pub fn stripe_name(file: FileNumber) -> String {
    format!("{STRIPE}{:016x}", file.0)
}

/// Creates a directory in the namespace.
///
/// # Errors
/// If it exists, or cannot be created.
pub fn make_directory(session: &node::Session, path: &str) -> node::Result<()> {
    let (at, new) = (Location::of_path(path), NewInode::Directory);
    let make = TreeOperation::Make { at, new, mode: 0o755, uid: 0, gid: 0, exclusive: true };
    session.tree().inode(path, make).wait().map(drop)
}

/// Unmounts a directory of a test by `unmount`, as soon as no process uses it. A process started by another test
/// briefly holds all open files, until its exec.
pub fn unmount_when_unused<E: Display>(mut unmount: impl FnMut() -> Result<(), E>) {
    let start = Instant::now();
    while let Err(error) = unmount() {
        let is_busy = error.to_string().contains("busy");
        assert!(is_busy && start.elapsed() < Duration::from_secs(20), "{error}");
        thread::sleep(Duration::from_millis(50));
    }
}
