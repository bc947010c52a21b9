//! Programs of many kinds run on two mounts at the same time, and read exactly the data that were written.
//!
//! `two_mounts.py` contains the programs. Each program and each mount is a process with a time limit. So the test ends
//! even if a mount stops responding, because the test itself opens no file on a mount.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use prerequisites::has;

use crate::common::{Store, give_environment_of, heeding, wait};
use crate::mount_point::{MountPoint, unmounted, wait_until_mounted};

/// Maximum run time of one step of one program, in seconds.
const STEP: u32 = 50;

/// Maximum run time of a mount, in seconds. If a call in the mount does not return, it ends with the mount.
const LIFE: u32 = 110;

/// Program that runs on both mounts at the same time.
struct Program {
    name: &'static str,
    /// Command that the program needs, if it is one that may be missing on this computer.
    needs: Option<&'static str>,
}

const PROGRAMS: [Program; 9] = [
    Program { name: "log", needs: Some("tail") },
    Program { name: "overwritten", needs: None },
    Program { name: "mapped", needs: None },
    Program { name: "journal", needs: None },
    Program { name: "wal", needs: None },
    Program { name: "git", needs: Some("git") },
    Program { name: "make", needs: Some("make") },
    Program { name: "flock", needs: Some("flock") },
    Program { name: "fcntl", needs: None },
];

/// Two mounts with the files of the same agents.
struct TwoMounts {
    first: Child,
    second: Child,
    /// Unmounts both mounts if the test fails.
    point: MountPoint,
    second_path: PathBuf,
}

impl TwoMounts {
    fn start() -> Option<TwoMounts> {
        let point = MountPoint::of(Store::start(&[2, 2]))?;
        let second_path = point.store.path("second");
        fs::create_dir(&second_path).expect("a directory");
        let first = mount(&point.store, &point.path, "first.log");
        let second = mount(&point.store, &second_path, "second.log");
        Some(TwoMounts { first, second, point, second_path })
    }

    /// Runs one step of all programs on these mounts at the same time. If any of them fail, panics with all their
    /// errors.
    fn run_all(&self, programs: &[&Program], step: &str, mounts: &[&str]) {
        let failures: Vec<String> = thread::scope(|scope| {
            let tasks = programs.iter().flat_map(|program| mounts.iter().map(move |mount| (program, mount)));
            let runs = tasks.map(|(program, mount)| scope.spawn(|| self.run(program, step, mount)));
            let runs: Vec<_> = runs.collect();
            runs.into_iter().filter_map(|run| run.join().expect("no panic").err()).collect()
        });
        assert!(failures.is_empty(), "{}\n{}", failures.join("\n"), self.logs());
    }

    fn run(&self, program: &Program, step: &str, mount: &str) -> Result<(), String> {
        let path = if mount == "first" { &self.point.path } else { &self.second_path };
        let mut command = limited(STEP, "python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/two_mounts.py"));
        command.args([program.name, step, mount]).current_dir(path).stdin(Stdio::null());
        // The user's configuration must not affect the programs.
        command.env("HOME", self.point.store.directory.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().expect("there is timeout");
        let output_text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let failure =
            || format!("{} {step} on the {mount} mount: {}\n{output_text}", program.name, output.status);
        output.status.success().then_some(()).ok_or_else(failure)
    }

    /// Returns the logs of both mounts.
    fn logs(&self) -> String {
        let log = |name| fs::read_to_string(self.point.store.path(name)).expect("a log");
        format!("first mount: {}\nsecond mount: {}", log("first.log"), log("second.log"))
    }

    /// Unmounts both mounts cleanly, and checks that the agents have no damaged file.
    fn end(mut self) {
        self.point.unmount();
        unmounted(|| self.point.store.command(&["umount", "second"]));
        for mount in [&mut self.first, &mut self.second] {
            assert!(wait(mount).success());
        }
        self.point.store.run(&["fsck"]);
    }
}

/// Returns a command that is killed with its child processes after this number of seconds.
fn limited(seconds: u32, program: &str) -> Command {
    let mut command = heeding("timeout");
    command.args(["--signal=KILL", &seconds.to_string(), program]);
    command
}

/// Mounts the files of the agents in a separate process.
fn mount(store: &Store, path: &Path, log: &str) -> Child {
    let mut command = limited(LIFE, env!("CARGO_BIN_EXE_starfish"));
    give_environment_of(&store.command(&[]), &mut command);
    let log = File::create(store.path(log)).expect("a log");
    command.arg("mount").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = command.spawn().expect("the program");
    wait_until_mounted(path);
    child
}

#[test]
fn programs_on_two_mounts_read_exactly_the_written_data() {
    if !has("python3") {
        return;
    }
    let Some(mounts) = TwoMounts::start() else { return };
    let programs: Vec<_> = PROGRAMS.iter().filter(|program| program.needs.is_none_or(has)).collect();
    mounts.run_all(&programs, "prepare", &["first"]);
    mounts.run_all(&programs, "work", &["first", "second"]);
    for mount in ["first", "second"] {
        mounts.run_all(&programs, "check", &[mount]);
    }
    mounts.end();
}
