//! Common code of the tests: mounts of agents that run in the process of the test, and programs run there.
//!
//! If this user cannot mount, tests are skipped.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use mount::{MountSettings, MountedDirectory, unmount};
use node::Session;
use prerequisites::cannot_mount;
use test_agents::{Agents, unmount_when_unused};

/// A directory with the files of some agents, unmounted on drop.
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
    pub(crate) mounted: Option<MountedDirectory>,
    session: Session,
    /// The directory of the test.
    pub(crate) home: PathBuf,
    /// The agents, if they serve only this mount; they end after the mount.
    agents: Option<Agents>,
}

impl Mount {
    /// Mounts the files of two new agents; returns `None` if this user cannot mount.
    pub(crate) fn of_new_agents() -> Option<Mount> {
        let agents = Agents::start(2);
        let mut mount = Mount::of(&agents, "a", MountSettings::default())?;
        mount.agents = Some(agents);
        Some(mount)
    }

    /// Mounts these agents in a directory of this name.
    pub(crate) fn of(agents: &Agents, name: &str, settings: MountSettings) -> Option<Mount> {
        let path = agents.path(name);
        std::fs::create_dir(&path).expect("a new directory");
        let session = Session::start(agents.settings()).expect("they are there");
        let tree = session.tree();
        let print_error = |error: &node::Error| println!("told: {error}");
        match MountedDirectory::begin(&tree, &path, settings, print_error) {
            Ok(mounted) => {
                let home = agents.directory.path().to_owned();
                Some(Mount { path, mounted: Some(mounted), session, home, agents: None })
            }
            Err(error) => {
                cannot_mount(&error.to_string());
                None
            }
        }
    }

    /// Returns the path of a name in the mount.
    pub(crate) fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// Returns the agents that serve this mount only.
    pub(crate) fn agents(&self) -> &Agents {
        self.agents.as_ref().expect("it was mounted so")
    }

    /// Unmounts cleanly as soon as no process uses the mount, and waits until everything is with the agents.
    pub(crate) fn end(mut self) {
        unmount_when_unused(|| unmount(&self.path, false));
        self.mounted.take().expect("until now").wait().expect("all is well");
        self.session.finish().expect("all is written");
    }

    /// Runs a program in the directory, for at most a minute; returns its output. Panics if it fails.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let (is_well, text) = self.try_run(program, arguments);
        assert!(is_well, "{program} {arguments:?} fails: {text}");
        text
    }

    /// Like [`Mount::run`], for a program that may fail.
    pub(crate) fn try_run(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "60", program]).args(arguments).current_dir(&self.path);
        // Ignore the user's own configuration.
        command.env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
        let output = command.output().expect("there is timeout");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(mounted) = self.mounted.take() {
            // A test has failed. Detach the mount so that no process keeps waiting for it; the test process ends soon.
            let _ = unmount(&self.path, true);
            std::mem::forget((mounted, self.session.clone(), self.agents.take()));
        }
    }
}
