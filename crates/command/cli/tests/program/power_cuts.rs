//! Power cuts of the metadata server's computer, while programs create, rename, remove and flush names in a mount.
//!
//! The agent's disk is an ext4 file system on a loop device. A power cut has three steps:
//!
//! 1. Stop all threads of the agent. From now on, no flush can succeed.
//! 2. Shut the file system down. From now on, its page cache is not written to the device.
//! 3. Kill the agent. The next agent sees another `boot_id`, as after a real power cut.
//!
//! `STARFISH_METADATA_POWER_CUTS=1000` sets the number of cuts. Another `STARFISH_SEED` makes the programs do other
//! steps.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{Agent, Store, finish, give_environment_of, starfish};
use crate::killing::{draw, setting};
use crate::mount_point::{MountPoint, within};

const PROGRAMS: u64 = 4;

/// The kernel must not cache names, because a cached name may be one that the power cut has lost.
const MOUNT: [&str; 3] = ["mount", "--attr-timeout", "0s"];

/// Number of names in the directory of each program.
const NAMES: u64 = 6;

/// `FS_IOC_SHUTDOWN` of Linux. With flag 1, the file system commits its journal first; with flag 2, it does not.
const SHUT_DOWN: &str =
    "open(my $disk, '<', $ARGV[0]) or die $!; ioctl($disk, 0x8004587d, pack('L', $ARGV[1])) or die $!;";

/// Script that mounts the disk in a mount namespace of the agent, and replaces `boot_id` there. Both mounts end with
/// the agent.
const BOOT: &str = "mount -o loop disk.img disk && cat /proc/sys/kernel/random/uuid > boot_id && \
    mount --bind boot_id /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"";

fn run(program: &str, arguments: &[&str], directory: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    let output = finish(command);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(stderr)
}

/// Names in a directory, each with the number of the step that created it.
type Names = BTreeMap<String, u64>;

#[derive(Clone, Debug)]
enum Step {
    Make(String),
    Remove(String),
    Rename(String, String),
    Flush,
}

impl Step {
    /// Performs the step. `open` is a descriptor of the directory, because opening the directory for a flush could
    /// block until after the cut.
    fn act(&self, directory: &Path, open: &File, number: u64) -> io::Result<()> {
        match self {
            Step::Make(name) => symlink(number.to_string(), directory.join(name)),
            Step::Remove(name) => fs::remove_file(directory.join(name)),
            Step::Rename(from, to) => fs::rename(directory.join(from), directory.join(to)),
            Step::Flush => open.sync_all(),
        }
    }

    /// Returns the names after this step, or `None` if the step is impossible.
    fn applied(&self, mut names: Names, number: u64) -> Option<Names> {
        match self {
            Step::Make(name) if names.contains_key(name) => return None,
            Step::Make(name) => drop(names.insert(name.clone(), number)),
            Step::Remove(name) => drop(names.remove(name)?),
            Step::Rename(from, to) => {
                let made_by = names.remove(from)?;
                names.insert(to.clone(), made_by);
            }
            Step::Flush => {}
        }
        Some(names)
    }
}

/// Step in progress at the power cut, and true if its call has succeeded.
type InFlight = (Step, bool);

/// Program that changes its own directory. `states` are the states of the directory since the last flush, from the
/// oldest to the newest.
struct Program {
    directory: PathBuf,
    open: File,
    number: u64,
    seed: u64,
    steps: u64,
    states: Vec<Names>,
    in_flight: Option<InFlight>,
}

/// Counts over all cuts.
#[derive(Default, Debug)]
struct Counts {
    steps: u64,
    flushes: u64,
    losses: u64,
    reports_without_loss: u64,
}

impl Program {
    fn new(mounted: &Path, number: u64, seed: u64) -> Program {
        let directory = mounted.join(format!("program {number}"));
        fs::create_dir(&directory).expect("the agent runs");
        File::open(mounted).and_then(|top| top.sync_all()).expect("the agent runs");
        let open = File::open(&directory).expect("the agent runs");
        let states = vec![Names::new()];
        Program { directory, open, number, seed, steps: 0, states, in_flight: None }
    }

    fn draw(&self, what: u64, below: u64) -> u64 {
        draw(&[self.seed, self.number, self.steps, what], below)
    }

    fn next_step(&self) -> Step {
        let names = self.states.last().expect("at least one");
        let name = |what| format!("name{}", self.draw(what, NAMES));
        let (one, other) = (name(1), name(2));
        match self.draw(3, 8) {
            0 | 1 => Step::Flush,
            2..=4 if names.contains_key(&one) && one != other => Step::Rename(one, other),
            _ if names.contains_key(&one) => Step::Remove(one),
            _ => Step::Make(one),
        }
    }

    /// Performs steps until the power is cut. Only the step that is in progress at the cut may fail.
    fn work(&mut self, is_cut: &AtomicBool, counts: &mut Counts) {
        while !is_cut.load(Ordering::SeqCst) {
            let step = self.next_step();
            self.steps += 1;
            let done = step.act(&self.directory, &self.open, self.steps);
            if is_cut.load(Ordering::SeqCst) {
                self.in_flight = Some((step, done.is_ok()));
                return;
            }
            done.unwrap_or_else(|error| panic!("{step:?} before the cut: {error}"));
            counts.steps += 1;
            self.succeeded(&step, counts);
        }
    }

    fn succeeded(&mut self, step: &Step, counts: &mut Counts) {
        let last = self.states.last().expect("at least one").clone();
        if matches!(step, Step::Flush) {
            counts.flushes += 1;
            self.states.clear();
        }
        self.states.push(step.applied(last, self.steps).expect("only possible steps are drawn"));
    }

    fn flush(&self) -> io::Result<()> {
        self.open.sync_all()
    }

    fn names(&self) -> Names {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.expect("an entry");
            let made_by = fs::read_link(entry.path()).expect("a link");
            let number = made_by.to_str().and_then(|text| text.parse().ok()).expect("a number");
            (entry.file_name().into_string().expect("text"), number)
        };
        fs::read_dir(&self.directory).expect("it was flushed").map(entry).collect()
    }

    /// Returns the possible states of the directory after a cut that has lost `states[kept + 1..]`.
    fn possible(&self, kept: usize) -> Vec<Names> {
        let state = self.states[kept].clone();
        let after = self.in_flight.as_ref().and_then(|(step, _)| step.applied(state.clone(), self.steps));
        [Some(state), after].into_iter().flatten().collect()
    }

    /// Returns true if the call of the step in progress has succeeded, but the directory does not show its effect.
    fn has_lost_step_in_flight(&self, kept: usize, found: &Names) -> bool {
        let Some((step, true)) = &self.in_flight else { return false };
        step.applied(self.states[kept].clone(), self.steps).as_ref() != Some(found)
    }

    /// Checks that all flushed names exist, and that each loss has been reported exactly once.
    fn check(&mut self, cut: u64, counts: &mut Counts) {
        let found = self.names();
        let at =
            format!("cut {cut}, program {}: {found:?}, {:?}, {:?}", self.number, self.states, self.in_flight);
        let kept = (0..self.states.len()).rev().find(|&kept| self.possible(kept).contains(&found));
        let kept = kept.unwrap_or_else(|| panic!("a flushed name is lost at {at}"));
        let is_lost = kept + 1 < self.states.len() || self.has_lost_step_in_flight(kept, &found);
        let flushed_in_flight = match self.in_flight {
            Some((Step::Flush, is_done)) => Some(is_done),
            _ => None,
        };
        assert!(
            flushed_in_flight != Some(true) || !is_lost,
            "the flush in progress did not report the loss at {at}"
        );
        let is_reported = self.flush().is_err() || flushed_in_flight == Some(false);
        assert!(is_reported || !is_lost, "a loss is not reported at {at}");
        self.flush().unwrap_or_else(|error| panic!("{error}: reported again at {at}"));
        counts.losses += u64::from(is_lost);
        counts.reports_without_loss += u64::from(is_reported && !is_lost);
        self.states = vec![found];
        self.in_flight = None;
    }
}

/// Computer with an agent, which stores the metadata on a separate disk, and a mount of the agent's files.
struct Computer {
    point: MountPoint,
    mount: Child,
}

impl Computer {
    /// Starts the agent and the mount. If a prerequisite is missing, records the test as skipped and returns `None`.
    fn start() -> Option<Computer> {
        if !["unshare", "mkfs.ext4", "losetup", "perl"].into_iter().all(prerequisites::has) {
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        if let Err(why) = make_disk(directory.path()) {
            prerequisites::skip(format_args!("this user cannot mount a disk image: {}", why.trim()));
            return None;
        }
        let agent = boot(directory.path(), "127.0.0.1:0");
        let point = MountPoint::of(Store { agents: vec![agent], directory })?;
        let mount = point.command(&MOUNT, &[]).spawn().expect("the program");
        point.wait_until_mounted();
        Some(Computer { point, mount })
    }

    fn directory(&self) -> &Path {
        self.point.store.directory.path()
    }

    fn agent(&mut self) -> &mut Agent {
        &mut self.point.store.agents[0]
    }

    fn cut_power(&mut self, flag: &str, is_cut: &AtomicBool) {
        let process = self.agent().child.id();
        self.agent().signal("STOP");
        within(Duration::from_secs(20), "all threads are stopped", || is_stopped(process));
        is_cut.store(true, Ordering::SeqCst);
        // This pause lets calls that have just begun reach the stopped agent instead of the next one.
        thread::sleep(Duration::from_millis(50));
        let disk = format!("/proc/{process}/root{}", self.directory().join("disk").display());
        run("perl", &["-e", SHUT_DOWN, &disk, flag], self.directory()).expect("an ext4");
        self.agent().child.kill().expect("a child process of the test");
        self.agent().child.wait().expect("a child process of the test");
        let image = self.directory().join("disk.img");
        within(Duration::from_secs(20), "the disk is free", || !is_attached(&image));
    }

    fn boot_again(&mut self) {
        let address = self.agent().address.clone();
        *self.agent() = boot(self.directory(), &address);
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        let _ = self.mount.kill();
        let _ = self.mount.wait();
    }
}

/// Creates an image with an ext4 file system, and checks that this user can mount it.
fn make_disk(directory: &Path) -> Result<(), String> {
    fs::create_dir(directory.join("disk")).expect("room");
    File::create(directory.join("disk.img")).and_then(|disk| disk.set_len(64 << 20)).expect("room");
    run("mkfs.ext4", &["-q", "-F", "disk.img"], directory)?;
    run("unshare", &["--mount", "sh", "-c", BOOT, "true"], directory)
}

/// Starts an agent at this address, which sees a new `boot_id`.
fn boot(directory: &Path, address: &str) -> Agent {
    let mut command = Command::new("unshare");
    give_environment_of(&starfish([""; 0]), &mut command);
    command.args(["--mount", "sh", "-c", BOOT, env!("CARGO_BIN_EXE_starfish")]).current_dir(directory);
    Agent::start_by(command, address, vec![directory.join("disk").join("root")], &[])
}

fn is_stopped(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    threads.map(|thread| thread.expect("a thread").path().join("stat")).all(|stat| {
        let stat = fs::read_to_string(stat).expect("a thread of a stopped process");
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
    })
}

fn is_attached(image: &Path) -> bool {
    let mut command = Command::new("losetup");
    command.arg("--associated").arg(image);
    !finish(command).stdout.is_empty()
}

#[test]
fn flushed_names_survive_power_cuts_and_each_loss_is_reported_once() {
    let Some(mut computer) = Computer::start() else { return };
    let (cuts, seed) = (setting("STARFISH_METADATA_POWER_CUTS", 5), setting("STARFISH_SEED", 0));
    let mounted = computer.point.path.clone();
    let mut programs: Vec<Program> =
        (0..PROGRAMS).map(|number| Program::new(&mounted, number, seed)).collect();
    let mut counts: Vec<Counts> = programs.iter().map(|_| Counts::default()).collect();
    for cut in 0..cuts {
        let is_cut = AtomicBool::new(false);
        thread::scope(|scope| {
            for (program, counts) in programs.iter_mut().zip(&mut counts) {
                scope.spawn(|| program.work(&is_cut, counts));
            }
            thread::sleep(Duration::from_millis(draw(&[seed, cut], 200)));
            computer.cut_power(if cut % 4 == 0 { "1" } else { "2" }, &is_cut);
            computer.boot_again();
        });
        programs.iter_mut().zip(&mut counts).for_each(|(program, counts)| program.check(cut, counts));
    }
    println!("{cuts} cuts, seed {seed}: {counts:#?}");
}
