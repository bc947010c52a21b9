//! Kills a mount and its agents, including the metadata agent, at random times, while programs create, replace, extend
//! and remove files. Fsynced data must survive, calls must end within the promised time, and after `fsck --repair`,
//! `fsck` must find nothing.
//!
//! `STARFISH_ROUNDS=500 cargo test -p starfish --test program mount_kills` runs 500 rounds.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Store, give_environment_of, starfish, succeed};
use crate::killing::{contents, draw, rounds};
use crate::mount_point::MountPoint;

/// Number of concurrent programs. Each has its own directory.
const PROGRAMS: u64 = 3;

/// Names of the files that a program replaces and removes.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Size of a log record in bytes.
const RECORD: usize = 1000;

/// Silence timeout in seconds: when an agent has been silent for this time, a client declares it disconnected. A call
/// may wait for several agents, one after the other.
const SILENCE: u64 = 5;

/// Maximum time of a call: the silence timeouts of all agents, and a margin for a busy computer.
const CALL_MAX: Duration = Duration::from_secs(3 * SILENCE + 10);

/// Possible states of a name: each entry is the seed of a file's contents, or `None` for no file. There is exactly one
/// entry, unless a call has failed.
#[derive(Clone, Debug)]
struct Possible(Vec<Option<u64>>);

/// Program that works in the mount and knows which data must be on the disks.
struct Program {
    directory: PathBuf,
    number: u64,
    files: [Possible; NAMES.len()],
    /// Number of log records that have been fsynced.
    logged: u64,
    /// Number of log records that the program has written or has tried to write.
    tried: u64,
    drawn: u64,
}

impl Program {
    fn new(mounted: &Path, number: u64) -> Program {
        let directory = mounted.join(format!("program {number}"));
        fs::create_dir(&directory).expect("all agents run");
        let files = NAMES.map(|_| Possible(vec![None]));
        Program { directory, number, files, logged: 0, tried: 0, drawn: 0 }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.drawn += 1;
        draw(&[self.number, self.drawn], below)
    }

    /// Works until `stop` is set. After an error the program continues, although the call may have had an effect.
    fn work(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let name = self.draw(NAMES.len() as u64) as usize;
            let begun = Instant::now();
            let done = match self.draw(4) {
                0 => self.log(),
                1 => self.remove(name),
                _ => self.replace(name),
            };
            assert!(begun.elapsed() < CALL_MAX, "{done:?} after {:?}", begun.elapsed());
            if done.is_err() {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Replaces a file: writes the new contents under another name, and renames that file.
    fn replace(&mut self, name: usize) -> io::Result<()> {
        let (seed, most) = (self.number << 32 | self.drawn, 1 << self.draw(19));
        let bytes = 1 + self.draw(most) as usize;
        let (path, temporary) = (self.directory.join(NAMES[name]), self.directory.join("temporary"));
        let mut file = File::create(&temporary)?;
        file.write_all(&bytes.to_le_bytes())?;
        file.write_all(&contents(bytes, seed))?;
        file.sync_all()?;
        drop(file);
        self.files[name].0.push(Some(seed));
        fs::rename(&temporary, &path)?;
        self.sync_directory()?;
        self.files[name].0 = vec![Some(seed)];
        Ok(())
    }

    fn remove(&mut self, name: usize) -> io::Result<()> {
        self.files[name].0.push(None);
        match fs::remove_file(self.directory.join(NAMES[name])) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.sync_directory()?;
        self.files[name].0 = vec![None];
        Ok(())
    }

    /// Writes some records to the log, after those that have been fsynced.
    fn log(&mut self) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let count = 1 + self.draw(5);
        let file =
            File::options().create(true).truncate(false).write(true).open(self.directory.join("log"))?;
        self.tried = self.tried.max(self.logged + count);
        for record in self.logged..self.logged + count {
            file.write_all_at(&contents(RECORD, record), record * RECORD as u64)?;
        }
        file.sync_all()?;
        self.sync_directory()?;
        self.logged += count;
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    /// Checks the files and the log against the program's records.
    fn check(&mut self) {
        for (name, possible) in NAMES.iter().zip(&mut self.files) {
            let path = self.directory.join(name);
            let found = match fs::read(&path) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => panic!("{}: {error}", path.display()),
            };
            let is_it = |seed: &Option<u64>| match (seed, &found) {
                (None, None) => true,
                (Some(seed), Some(bytes)) => is_file_of(*seed, bytes),
                _ => false,
            };
            let bytes = found.as_ref().map(Vec::len);
            let is = possible.0.iter().rposition(is_it);
            let is = is.unwrap_or_else(|| panic!("{path:?}: {bytes:?}, {possible:?}"));
            // A failed call may still take effect later, when the agents execute it. But contents that were replaced do
            // not come back.
            possible.0.drain(..is);
        }
        let log = fs::read(self.directory.join("log")).unwrap_or_default();
        assert!(log.len() >= self.logged as usize * RECORD, "{} records of {}", self.logged, log.len());
        assert!(log.len() <= self.tried as usize * RECORD, "{} records at most, {}", self.tried, log.len());
        for (record, bytes) in log.chunks(RECORD).take(self.logged as usize).enumerate() {
            assert!(bytes == contents(RECORD, record as u64), "record {record} of {}", self.logged);
        }
    }
}

/// Returns true if `bytes` are exactly the contents that a program writes with this seed.
fn is_file_of(seed: u64, bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk() else { return false };
    let length = usize::from_le_bytes(*length);
    length == rest.len() && contents(length, seed) == rest
}

/// Starts agents through a shell. The test has files of the mount open. If an agent were a child of the test, then
/// executing its program would close copies of these files, which flushes them: the new process would wait for the
/// agent that it is to become.
struct Starter {
    shell: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Starter {
    fn start(directory: &Path) -> Starter {
        let mut shell = Command::new("sh");
        give_environment_of(&starfish([""; 0]), &mut shell);
        shell.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let orders = shell.stdin.take().expect("piped");
        let answers = BufReader::new(shell.stdout.take().expect("piped")).lines();
        let mut starter = Starter { shell, orders, answers };
        // The agents read from a pipe whose only writer is the shell, so they end with the shell.
        starter.ask("mkfifo life && exec 3<>life; echo");
        starter
    }

    /// Lets the shell execute a command that prints one line.
    fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").expect("the shell is there");
        self.answers.next().expect("a line").expect("text")
    }

    /// Starts an agent, waits until it listens, and returns its process.
    fn agent(&mut self, address: &str, root: &Path) -> String {
        let (program, root) = (env!("CARGO_BIN_EXE_starfish"), root.display());
        let agent = format!("{program} agent --listen {address} --until-input-ends --root '{root}'");
        let process = self.ask(&format!("{agent} < life 3>&- > said & echo $!"));
        self.ask("until grep -q listening said; do sleep 0.01; done; echo");
        process
    }

    fn kill(&mut self, process: &str) {
        self.ask(&format!("kill -s KILL {process}; wait {process} 2> /dev/null; echo"));
    }
}

/// Agents, and a mount in another process, which the test kills and restarts.
struct Victims {
    point: MountPoint,
    mount: Child,
    starter: Starter,
    /// Process IDs of the agents that have been restarted.
    processes: Vec<Option<String>>,
}

impl Victims {
    fn start() -> Option<Victims> {
        let point = MountPoint::of(Store::start(&[1, 1, 1]))?;
        let mount = mount(&point);
        let starter = Starter::start(point.store.directory.path());
        let processes = vec![None; point.store.agents.len()];
        Some(Victims { point, mount, starter, processes })
    }

    /// Kills one of the agents, and restarts it after `pause`.
    fn kill_agent(&mut self, index: usize, pause: Duration) {
        let agent = &mut self.point.store.agents[index];
        match &self.processes[index] {
            Some(process) => self.starter.kill(process),
            None => {
                agent.child.kill().expect("a child process of the test");
                agent.child.wait().expect("a child process of the test");
            }
        }
        thread::sleep(pause);
        self.processes[index] = Some(self.starter.agent(&agent.address, &agent.roots[0]));
    }

    fn kill_mount(&mut self) {
        self.mount.kill().expect("a child process of the test");
        self.mount.wait().expect("a child process of the test");
        succeed(self.point.command(&["umount"], &["--lazy"]));
        self.mount = mount(&self.point);
    }
}

impl Drop for Victims {
    fn drop(&mut self) {
        let _ = self.mount.kill();
        let _ = self.mount.wait();
        let _ = self.starter.shell.kill();
        let _ = self.starter.shell.wait();
    }
}

fn mount(point: &MountPoint) -> Child {
    let mut command = point.command(&["mount"], &[]);
    command.env("STARFISH_SILENCE", SILENCE.to_string());
    let child = command.spawn().expect("the program");
    point.wait_until_mounted();
    child
}

#[test]
fn fsynced_data_survive_a_kill_of_any_process() {
    let Some(mut victims) = Victims::start() else { return };
    let mounted = victims.point.path.clone();
    let mut programs: Vec<Program> = (0..PROGRAMS).map(|number| Program::new(&mounted, number)).collect();
    for round in 0..rounds() {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for program in &mut programs {
                scope.spawn(|| program.work(&stop));
            }
            thread::sleep(Duration::from_millis(draw(&[round, 1], 250)));
            match draw(&[round, 2], 4) as usize {
                3 => victims.kill_mount(),
                agent => victims.kill_agent(agent, Duration::from_millis(draw(&[round, 3], 150))),
            }
            thread::sleep(Duration::from_millis(draw(&[round, 4], 150)));
            stop.store(true, Ordering::Relaxed);
        });
        programs.iter_mut().for_each(Program::check);
        if round % 10 == 9 {
            // If files without names were not removed yet, their contents are leftovers, not damage.
            victims.point.store.run(&["fsck", "--repair"]);
            victims.point.store.run(&["fsck"]);
        }
    }
}
