//! Processes that write to agents started for the benchmark.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use transfer::cluster::Cluster;
use transfer::recordings;
use transfer::scratch::{self, JobFiles};

use super::member::{MemberAddress, MemberOutcome, MemberTask};
use super::{BLOCK_BYTES, WriteCell};
use crate::bench::processes::Agents;
use crate::bench::rounds::middle_of;

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Time until all data were on the disks.
    pub elapsed: Duration,
    /// Latency of a write in seconds: the mean of all writes; the largest 99th percentile of any process; the longest
    /// write.
    pub latency_s: Option<[f64; 3]>,
    /// Number of flushes, if known.
    pub flushes: Option<u64>,
}

/// Repeats a measurement. Returns the one with the median time.
pub fn measure_in_rounds(
    agents: &Agents,
    cell: &WriteCell,
    rounds: u32,
    trace: Option<&Path>,
) -> Result<Measured> {
    middle_of(rounds, |measured: &Measured| measured.elapsed, || measure(agents, cell, trace))
}

/// Runs processes that write new files on the agents. Then checks the files and removes them.
///
/// The trace file, if any, receives the work of all nodes from the first write until the last byte is on the disks.
fn measure(agents: &Agents, cell: &WriteCell, trace: Option<&Path>) -> Result<Measured> {
    let (cluster, cell, trace) = (agents.cluster.clone(), *cell, trace.map(Path::to_owned));
    let outcome = agents.cluster.run(move |connection| async move {
        let group: u64 = node::random()?;
        let mut files = JobFiles::new();
        for array in 0..cell.pattern.arrays() {
            let name = format!("array {array}");
            let file = scratch::describe(&connection, &name, BLOCK_BYTES).await?;
            files.insert(name, file);
        }
        let (sender, result) = flume::bounded(1);
        let of_processes = files.clone();
        let writing = move || have_written(&cell, &cluster, of_processes, group, trace);
        std::thread::spawn(move || sender.send(writing()));
        let measured = result.recv_async().await.expect("the thread sends its result before it ends");
        scratch::remove(&connection, files.values()).await?;
        measured
    });
    agents.explain(outcome)
}

fn have_written(
    cell: &WriteCell,
    cluster: &Cluster,
    files: JobFiles,
    group: u64,
    trace: Option<PathBuf>,
) -> Result<Measured> {
    let task = |rank| MemberTask {
        agents: cluster.agents.iter().map(|agent| agent.address).collect(),
        files: files.clone(),
        group,
        rank,
        method: cell.method,
        pattern: cell.pattern.to_string(),
        record_bytes: cell.record_bytes,
        file_bytes: cell.file_bytes,
        processes: cell.processes,
        cache_bytes: cell.cache_bytes,
        trace: trace.clone(),
    };
    let mut members =
        (0..cell.processes as usize).map(|rank| Writer::start(&task(rank))).collect::<Result<Vec<_>>>()?;
    let addresses = of_each(&mut members, Writer::receive::<MemberAddress>)?;
    of_each(&mut members, |member| member.send(&addresses))?;
    of_each(&mut members, Writer::receive::<String>)?;
    if trace.is_some() {
        recordings::start(cluster, true)?;
        of_each(&mut members, |member| member.ask("record"))?;
    }
    let start = Instant::now();
    of_each(&mut members, |member| member.send(&"go"))?;
    let outcomes = of_each(&mut members, Writer::receive::<MemberOutcome>)?;
    members[0].ask("finish")?;
    let elapsed = start.elapsed();
    if let Some(path) = trace {
        of_each(&mut members, |member| member.ask("recorded"))?;
        let (recorded, failure) = recordings::stop(cluster)?;
        let mut sections = Vec::new();
        let failed = |error| Failure::new(path.display().to_string(), error);
        recordings::write(&recorded, &mut sections).map_err(failed)?;
        recording::append(&path, &sections).map_err(failed)?;
        failure.map_or(Ok(()), Err)?;
    }
    members[0].ask("check")?;
    Ok(together(elapsed, &outcomes))
}

fn together(elapsed: Duration, outcomes: &[MemberOutcome]) -> Measured {
    let latencies: Vec<[f64; 3]> = outcomes.iter().filter_map(|outcome| outcome.latency_s).collect();
    let largest = |index: usize| latencies.iter().map(|of_one| of_one[index]).fold(0.0, f64::max);
    // All processes write the same number of bytes, so the mean of means is the mean.
    let mean = latencies.iter().map(|of_one| of_one[0]).sum::<f64>() / latencies.len() as f64;
    let latency_s = (!latencies.is_empty()).then(|| [mean, largest(1), largest(2)]);
    let flushes = outcomes.iter().filter_map(|outcome| outcome.flushes).max();
    Measured { elapsed, latency_s, flushes }
}

fn of_each<T>(members: &mut [Writer], mut what: impl FnMut(&mut Writer) -> Result<T>) -> Result<Vec<T>> {
    members.iter_mut().map(&mut what).collect()
}

/// Writing process. It ends when its standard input is closed, which happens when this value is dropped.
struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn start(task: &MemberTask) -> Result<Writer> {
        let failed = |error| Failure::new("cannot start a writing process", error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["bench", "enwrich", "--member"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it was piped"));
        let mut writer = Writer { child, input, output };
        writer.send(task)?;
        Ok(writer)
    }

    fn send(&mut self, what: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(what).expect("it is plain data");
        let input = self.input.as_mut().expect("open until the end");
        writeln!(input, "{line}")
            .map_err(|error| Failure::new("cannot send a command to a writing process", error))
    }

    /// Receives a message from the process. Fails if the process ends instead; then the process has printed the reason
    /// on its standard error.
    fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        let _ = self.output.read_line(&mut line);
        serde_json::from_str(&line)
            .map_err(|_| Failure::new("a writing process", "it ended; see its message above"))
    }

    fn ask(&mut self, what: &str) -> Result<()> {
        self.send(&what)?;
        self.receive::<String>().map(drop)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
