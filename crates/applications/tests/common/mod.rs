//! What the tests share: agents on loopback, as threads of this process, and the programs as processes.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fs::IoNodeSettings;
use machine::{Machine, Net, NodeId};
use real::{DiskSettings, Limits};
use tempfile::TempDir;

/// No program of these tests may take longer, on however busy a computer.
const LIMIT: Duration = Duration::from_secs(120);

/// Some agents with a disk each, and a directory for the test.
pub(crate) struct Home {
    agents: Vec<Agent>,
    pub(crate) directory: TempDir,
}

struct Agent {
    address: String,
    stop: Option<flume::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn start(disk: PathBuf, number: u64) -> Agent {
        let settings = real::Settings {
            listen: Some(([127, 0, 0, 1], 0).into()),
            disks: vec![DiskSettings::plain(disk)],
            limits: Limits { receive_bytes: 16 << 20, ..Limits::default() },
            ..real::Settings::new(NodeId(1 << 62 | number))
        };
        let (tell, told) = flume::bounded(1);
        let (stop, stopped) = flume::bounded::<()>(0);
        let thread = thread::spawn(move || {
            let served = real::run(settings, |machine| async move {
                tell.send(machine.address().expect("it listens")).expect("the test waits for it");
                let network = machine.clone();
                machine.spawn("waiting for the end of the test", async move {
                    let _ = stopped.recv_async().await;
                    network.net().close();
                    Ok(())
                });
                fs::serve(machine, IoNodeSettings::default()).await
            });
            served.expect("it starts").expect("it serves");
        });
        let address = told.recv().expect("it starts").to_string();
        Agent { address, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if thread::panicking() {
            // Waking the runtime of another thread now would be a second panic. The process ends soon.
            std::mem::forget(self.stop.take());
            return;
        }
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Home {
    /// So many agents.
    pub(crate) fn start(count: u64) -> Home {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disk = |number| directory.path().join(format!("disk{number}"));
        let agents = (0..count).map(|number| Agent::start(disk(number), number)).collect();
        let home = Home { agents, directory };
        std::fs::create_dir(home.path("tmp")).expect("a directory");
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program that knows the agents.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let addresses: Vec<&str> = self.agents.iter().map(|agent| agent.address.as_str()).collect();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory.path());
        command
            .env("STARFISH_AGENTS", addresses.join(","))
            .env("LC_ALL", "C")
            .env("TMPDIR", self.path("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        finish(self.command(program, arguments), Vec::new())
    }

    /// Runs a program that must succeed, and returns what it printed.
    pub(crate) fn succeed(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let Output { status, stdout, stderr } = self.run(program, arguments);
        assert!(status.success(), "{program} {arguments:?}: {status}: {}", String::from_utf8_lossy(&stderr));
        stdout
    }

    /// Runs a program that must fail with exit code 2, and returns what it said.
    pub(crate) fn fail(&self, program: &str, arguments: &[&str]) -> String {
        let Output { status, stderr, .. } = self.run(program, arguments);
        let said = String::from_utf8(stderr).expect("text");
        assert_eq!(status.code(), Some(2), "{program} {arguments:?}: {said}");
        said
    }

    /// Makes an ordinary and a striped file of the same name.
    pub(crate) fn make(&self, name: &str, contents: &[u8]) {
        std::fs::write(self.path(name), contents).expect("a file");
        self.succeed(FS2PFS, &["--force", name]);
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    /// The names of all striped files.
    pub(crate) fn striped(&self) -> Vec<String> {
        let names = self.agents.iter().map(|agent| agent.address.as_str());
        let settings = pdiol::Settings::new(pdiol::agents::named(names).expect("addresses"));
        pdiol::Session::start(settings).expect("agents").list().expect("names")
    }

    /// What lies in the directories for local and for temporary files, but for the disks.
    pub(crate) fn local(&self) -> Vec<String> {
        let names = |path: PathBuf| {
            let entries = std::fs::read_dir(path).expect("a directory");
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        };
        let all = names(self.path("")).chain(names(self.path("tmp")));
        let mut all: Vec<String> = all.filter(|name| !name.starts_with("disk") && name != "tmp").collect();
        all.sort();
        all
    }
}

pub(crate) const MYCAT: &str = env!("CARGO_BIN_EXE_mycat");
pub(crate) const FS2PFS: &str = env!("CARGO_BIN_EXE_fs2pfs");
pub(crate) const PFS2FS: &str = env!("CARGO_BIN_EXE_pfs2fs");
pub(crate) const PFSGREP: &str = env!("CARGO_BIN_EXE_pfsgrep");
pub(crate) const PFSSORT: &str = env!("CARGO_BIN_EXE_pfssort");
pub(crate) const PFSBZIP2: &str = env!("CARGO_BIN_EXE_pfsbzip2");

/// Runs a program that reads this from standard input to its end.
pub(crate) fn finish(mut command: Command, input: Vec<u8>) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("piped");
    let outputs =
        [read_all(child.stdout.take().expect("piped")), read_all(child.stderr.take().expect("piped"))];
    thread::spawn(move || drop(stdin.write_all(&input)));
    let status = wait(&mut child);
    let [stdout, stderr] = outputs.map(|output| output.join().expect("it ends with the process"));
    Output { status, stdout, stderr }
}

/// Waits for a process that is about to end, and ends it if it does not.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status;
        }
        if start.elapsed() > LIMIT {
            child.kill().expect("a child of ours");
            panic!("a program took longer than {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn read_all(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a pipe");
        bytes
    })
}

/// Bytes that look random and depend on their number.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = bytes as u64 | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Lines of words and numbers, of many lengths, some of them equal.
pub(crate) fn text(lines: usize) -> Vec<u8> {
    let noise = noise(lines * 4);
    let mut text = Vec::new();
    for part in noise.chunks(4) {
        let number = i32::from(part[0]) * 7 - 800;
        let words =
            ["sea", "star", "", "fish", "swarm"][usize::from(part[1]) % 5].repeat(usize::from(part[2]) % 9);
        writeln!(text, "{number}{} {words}", [".5", "", ".25"][usize::from(part[3]) % 3]).expect("memory");
    }
    text
}
