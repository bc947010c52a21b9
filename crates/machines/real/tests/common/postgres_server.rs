//! PostgreSQL server for a test, if one is installed. The tests of other crates use it, too.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{User, geteuid};
use postgres::{Client, NoTls};
use tempfile::TempDir;

/// Time limit in seconds after which a server that was not stopped ends.
const LIMIT: &str = "120";

/// Separate server for a test, reached by a socket in its directory.
pub(crate) struct Server {
    pub(crate) directory: TempDir,
    programs: PathBuf,
    process: Child,
}

/// Returns the directory of the server's programs, if installed.
pub(crate) fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    places.extend(versions.map(|version| version.path().join("bin")));
    let is_there = |place: &PathBuf| place.join("initdb").exists() && place.join("postgres").exists();
    let found = places.into_iter().find(is_there);
    if found.is_none() {
        prerequisites::skip("no PostgreSQL server");
    }
    found
}

/// Creates a command to run a program as a user that a server accepts, which excludes root.
fn command(program: PathBuf) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=1").arg(LIMIT).arg(program).stdin(Stdio::null());
    if geteuid().is_root() {
        let user = User::from_name("nobody").expect("a list of users").expect("there is nobody");
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

impl Server {
    pub(crate) fn start() -> Option<Server> {
        let programs = programs()?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        if geteuid().is_root() {
            let user = User::from_name("nobody").expect("a list of users").expect("there is nobody");
            chown(directory.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("root may");
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("root may");
        }
        let data = directory.path().join("data");
        let mut initdb = command(programs.join("initdb"));
        initdb.args([
            "--auth=trust",
            "--username=starfish",
            "--no-sync",
            "--encoding=UTF8",
            "--no-locale",
            "-D",
        ]);
        let made = initdb.arg(&data).output().expect("it can be started");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let process = serve(&programs, directory.path());
        let server = Server { directory, programs, process };
        server.client("postgres");
        Some(server)
    }

    pub(crate) fn address(&self, database: &str) -> String {
        format!("host={} user=starfish dbname={database}", self.directory.path().display())
    }

    /// Opens a session, as soon as the server is ready for it.
    pub(crate) fn client(&self, database: &str) -> Client {
        let start = Instant::now();
        loop {
            match Client::connect(&self.address(database), NoTls) {
                Ok(client) => return client,
                Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates a database, and returns its address.
    pub(crate) fn new_database(&self) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("d{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.client("postgres").batch_execute(&format!("CREATE DATABASE {name}")).expect("room");
        self.address(&name)
    }

    /// Kills all processes of the server, and restarts it.
    pub(crate) fn kill(&mut self) {
        let first = fs::read_to_string(self.directory.path().join("data/postmaster.pid")).expect("it runs");
        signal("KILL", first.lines().next().expect("a number"));
        self.process.wait().expect("a child of ours");
        // The other processes end when they notice it. Until then a new server refuses to start.
        self.process = serve(&self.programs, self.directory.path());
        thread::sleep(Duration::from_millis(200));
        while self.process.try_wait().expect("a child of ours").is_some() {
            self.process = serve(&self.programs, self.directory.path());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once, without a checkpoint.
        signal("QUIT", &self.process.id().to_string());
        let _ = self.process.wait();
    }
}

pub(crate) fn signal(name: &str, process: &str) {
    // The process may have ended.
    let _ = Command::new("kill").args(["-s", name, process]).status();
}

fn serve(programs: &Path, directory: &Path) -> Child {
    let mut server = command(programs.join("postgres"));
    server.arg("-D").arg(directory.join("data")).arg("-c").arg("listen_addresses=");
    server.arg("-c").arg(format!("unix_socket_directories={}", directory.display()));
    // The tests kill the server, but not the computer, so it needs no fsync.
    server.args(["-c", "fsync=off"]).stdout(Stdio::null()).stderr(Stdio::null());
    server.spawn().expect("it can be started")
}
