//! Agents started for a benchmark: processes of this same program on this computer.
//!
//! All agents are in one temporary directory, which is removed when they are stopped. If this process is killed, each
//! agent detects the end of its standard input, and stops.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use command_line::failure::{Failure, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use node::{TRACE_VARIABLE, agents};
use tempfile::TempDir;

use agent_set::start::READY;
use transfer::cluster::{self, Cluster};
use transfer::interrupt;

/// Maximum number of bytes that are kept of an agent's error output.
const COMPLAINTS_BYTES_MAX: u64 = 16 << 10;

/// Agents, and a temporary directory for them and for other files.
pub struct Agents {
    processes: Arc<Mutex<Processes>>,
    /// The agents, each with its address.
    pub cluster: Cluster,
    directory: PathBuf,
}

#[derive(Default)]
struct Processes {
    children: Vec<Process>,
    directory: Option<TempDir>,
}

struct Process {
    child: Child,
    /// Thread that collects the error output of the process until it ends.
    complaints: Option<JoinHandle<String>>,
}

impl Agents {
    /// Starts `count` agents with one disk each and with these additional `options`.
    ///
    /// An interruption of this process stops the agents and removes the directory.
    pub fn start(count: usize, options: &[String]) -> Result<Agents> {
        cluster::make_key(None)?;
        let failed = |error: io::Error| Failure::new("cannot create a temporary directory", error);
        let directory = tempfile::Builder::new().prefix("starfish-").tempdir().map_err(failed)?;
        let path = directory.path().to_owned();
        let processes = Processes { children: Vec::new(), directory: Some(directory) };
        let mut agents = Agents {
            processes: Arc::new(Mutex::new(processes)),
            cluster: Cluster::default(),
            directory: path,
        };
        agents.tidy_up_when_interrupted()?;
        agents.start_all(count, options)?;
        Ok(agents)
    }

    /// Stops the agents and starts the same number of agents with other `options`, on the same disks.
    pub fn restart(&mut self, options: &[String]) -> Result<()> {
        self.lock().end_agents();
        self.start_all(self.cluster.agents.len(), options)
    }

    fn start_all(&mut self, count: usize, options: &[String]) -> Result<()> {
        let mut names = Vec::new();
        for index in 0..count {
            let root = self.directory.join(format!("disk{index}"));
            names.push(self.start_one(&root, options)?);
        }
        self.cluster = Cluster::new(agents::named(names)?);
        Ok(())
    }

    /// Returns the processor time of the running agents so far. Agents that have ended count as zero.
    pub fn processor_time(&self) -> Duration {
        (self.processor_clock())()
    }

    /// Returns a function that returns the processor time of the agents. Any thread can call it.
    pub fn processor_clock(&self) -> impl Fn() -> Duration + Send + use<> {
        let processes = self.processes.clone();
        move || {
            let processes = processes.lock().unwrap_or_else(PoisonError::into_inner);
            processes.children.iter().map(|process| process.worked()).sum()
        }
    }

    /// Returns a path in the temporary directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// If an agent has ended, fails with its error output.
    pub fn check(&self) -> Result<()> {
        for (index, process) in self.lock().children.iter_mut().enumerate() {
            if let Ok(Some(status)) = process.child.try_wait() {
                return Err(Failure::new(format!("agent {index} ended ({status})"), process.complaints()));
            }
        }
        Ok(())
    }

    /// If an agent has ended, replaces a failure by the report of this end.
    pub fn explain<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|failure| self.check().err().unwrap_or(failure))
    }

    fn start_one(&self, root: &Path, options: &[String]) -> Result<String> {
        let failed = |error: io::Error| Failure::new("cannot start an agent", error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["agent", "--listen", "127.0.0.1:0", "--until-input-ends", "--create", "--root"])
            .arg(root)
            .args(options)
            // The log is printed only if the agent fails, and only its beginning.
            .env("STARFISH_LOG", "warn")
            // The trace variable concerns this process only. Agents can be asked to record when they run.
            .env_remove(TRACE_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take().expect("it was piped");
        let complaints = collect(child.stderr.take().expect("it was piped"));
        self.lock().children.push(Process { child, complaints: Some(complaints) });
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
        let address =
            line.strip_prefix(READY).and_then(|rest| rest.split_once(',')).map(|(address, _)| address);
        address.map(str::to_owned).ok_or_else(|| {
            // An agent that prints no line is about to end. Wait for its complete error output.
            let _ = self.lock().children.last_mut().map(|process| process.child.wait());
            self.check().err().unwrap_or_else(|| {
                Failure::new("cannot start an agent", format!("it printed an unexpected line: {line:?}"))
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tidy_up_when_interrupted(&self) -> Result<()> {
        let processes = self.processes.clone();
        interrupt::tidy_up_and_exit(move || {
            processes.lock().unwrap_or_else(PoisonError::into_inner).end();
        })
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.lock().end();
    }
}

impl Processes {
    fn end(&mut self) {
        self.end_agents();
        drop(self.directory.take());
    }

    fn end_agents(&mut self) {
        for process in &mut self.children {
            // The agent may have ended already.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
        self.children.clear();
    }
}

impl Process {
    /// Returns the processor time of the process so far, or zero if it has ended.
    fn worked(&self) -> Duration {
        let clock = clock_getcpuclockid(Pid::from_raw(self.child.id().cast_signed()));
        clock.and_then(clock_gettime).map_or(Duration::ZERO, Duration::from)
    }

    /// Returns the error output of a process that has ended.
    fn complaints(&mut self) -> String {
        let text = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if text.is_empty() { "it ended without a message".into() } else { text.trim_end().to_owned() }
    }
}

/// Collects the error output of a process, up to a limit, on a thread that ends with the process.
fn collect(mut errors: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        // A read error ends the output like the end of the stream. Read and drop output beyond the limit, so that the
        // process does not block.
        let _ = errors.by_ref().take(COMPLAINTS_BYTES_MAX).read_to_end(&mut kept);
        let _ = io::copy(&mut errors, &mut io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// Creates a file of deterministic pseudo-random bytes, generated by BLAKE3.
pub fn make_file(path: &Path, bytes: u64) -> Result<()> {
    let failed = |error: io::Error| Failure::new(path.display().to_string(), error);
    let mut file = File::create(path).map_err(failed)?;
    let mut reader = blake3::Hasher::new().update(b"starfish").finalize_xof();
    let mut block = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(block.len() as u64) as usize;
        reader.fill(&mut block[..length]);
        file.write_all(&block[..length]).map_err(failed)?;
        left -= length as u64;
    }
    Ok(())
}
