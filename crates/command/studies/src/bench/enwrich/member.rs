//! Process that writes its part of the files. Its parent sends commands as lines of text.
//!
//! ```text
//!  parent    task          peers         go            finish       check        (end of input)
//!  member         address       ready         outcome        done         done   ends
//!
//!  `record` before `go` starts a trace, and `recorded` after `finish` ends it; the member answers each with `done`.
//! ```

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use fs::Group;
use jobs::{Contents, Latencies, Member, Part};
use layout::Problem;
use machine::NodeId;
use node::{Agent, ConnectedNode, NodeTrace};
use real::{Peer, RealMachine};
use serde::{Deserialize, Serialize};
use transfer::cluster::Cluster;
use transfer::scratch::JobFiles;

use super::{WriteCell, WriteMethod};

/// Task of a member.
#[derive(Debug, Serialize, Deserialize)]
pub struct MemberTask {
    /// Addresses of the agents.
    pub agents: Vec<SocketAddr>,
    /// Files to write.
    pub files: JobFiles,
    /// Number of the group.
    pub group: u64,
    /// Rank of the member in the group.
    pub rank: usize,
    /// Write method.
    pub method: WriteMethod,
    /// Access pattern.
    pub pattern: String,
    /// Size of a record in bytes.
    pub record_bytes: u64,
    /// Size of a file in bytes.
    pub file_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// Size of the write cache in bytes.
    pub cache_bytes: u64,
    /// Trace file to append to.
    pub trace: Option<PathBuf>,
}

/// Address of a member, which the other members connect to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemberAddress {
    /// Identity of the member's node.
    pub node: u64,
    /// Address that the member listens on.
    pub address: SocketAddr,
}

/// Result of a member.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemberOutcome {
    /// Latency of a write in seconds: mean, 99th percentile, longest. `None` for methods that do not write record by
    /// record.
    pub latency_s: Option<[f64; 3]>,
    /// Number of flushes, if there was a write cache.
    pub flushes: Option<u64>,
}

impl MemberOutcome {
    /// Returns the outcome with these latencies.
    pub fn of(latencies: &Latencies, flushes: Option<u64>) -> Self {
        let all = || {
            let times = [latencies.mean()?, latencies.percentile(99.0)?, latencies.longest()?];
            Some(times.map(|time| time.as_secs_f64()))
        };
        MemberOutcome { latency_s: all(), flushes }
    }
}

impl MemberTask {
    /// Returns the workload of which this task is a part.
    pub fn cell(&self) -> Result<WriteCell> {
        let pattern = self.pattern.parse().map_err(|why: String| Failure::new("the pattern", why))?;
        let &MemberTask { method, record_bytes, file_bytes, processes, cache_bytes, .. } = self;
        Ok(WriteCell { method, pattern, record_bytes, file_bytes, processes, cache_bytes })
    }
}

/// Runs a member, which reads its task and its commands from standard input.
pub fn be_member() -> Result<()> {
    let task: MemberTask = receive()?;
    let agent = |&address: &SocketAddr| Agent { name: address.to_string(), address, log: None };
    let cluster = Cluster::new(task.agents.iter().map(agent).collect());
    let settings = real::Settings { listen: Some(([127, 0, 0, 1], 0).into()), ..cluster.settings()? };
    cluster.run_as(settings, move |connection| async move {
        connection.absence()?;
        take_part(&task, &connection).await
    })
}

async fn take_part(task: &MemberTask, connection: &ConnectedNode) -> Result<()> {
    let ConnectedNode { machine, client, .. } = connection;
    let address = machine.address().expect("it listens");
    report(&MemberAddress { node: machine::Machine::node(machine).0, address })?;
    let peers: Vec<MemberAddress> = receive_in_thread().await?;
    connect(machine, &peers[..task.rank]).await?;
    let members = peers.iter().map(|peer| NodeId(peer.node)).collect();
    let group = Group::new(task.group, members, task.rank);
    let member = Member {
        machine: machine.clone(),
        client: Some(client.clone()),
        files: Rc::new(task.files.clone()),
        group,
        contents: Contents::Real,
        seed: 1,
    };
    let part: Part<RealMachine> =
        task.cell()?.job(task.files.keys().cloned().collect()).prepare(member).await.map_err(failed)?;
    report(&"ready")?;
    let mut trace = None;
    while let Some(what) = receive_or_end().await? {
        match what.as_str() {
            "record" => {
                trace = NodeTrace::begin(machine, task.trace.as_deref())?;
                report(&"done")?;
            }
            "recorded" => {
                trace.take().map_or(Ok(()), NodeTrace::end)?;
                report(&"done")?;
            }
            "go" => {
                let outcome = part.run().await.map_err(failed)?;
                let flushes = outcome.flushes.map(|flushes| flushes.flushes);
                report(&MemberOutcome::of(&outcome.writes.latencies, flushes))?;
            }
            "finish" => {
                part.finish().await.map_err(failed)?;
                report(&"done")?;
            }
            "check" => {
                part.check().await.map_err(failed)?;
                report(&"done")?;
            }
            other => {
                return Err(Failure::new(
                    "a writing process",
                    format!("it received the unexpected command {other:?}"),
                ));
            }
        }
    }
    Ok(())
}

/// Connects to the members of lower rank. The members of higher rank connect to this one.
async fn connect(machine: &RealMachine, lower: &[MemberAddress]) -> Result<()> {
    let peers: Vec<Peer> =
        lower.iter().map(|peer| Peer { node: NodeId(peer.node), address: peer.address }).collect();
    machine.connect(&peers).await.map_err(|error| Failure::new("cannot join the other processes", error))
}

fn failed(error: jobs::Error) -> Failure {
    Failure::new("cannot write", error)
}

/// Fails unless each process has a valid part of the files.
pub fn check_problem(cell: &WriteCell) -> Result<()> {
    let problem = Problem::new(cell.bytes(), cell.record_bytes, cell.processes);
    let names = (0..cell.pattern.arrays()).map(|array| format!("file {array}")).collect();
    let checked = cell.job(names).check(problem.nodes);
    checked.map_err(|error| {
        Failure::usage(format!("{} in records of {} bytes", cell.pattern, cell.record_bytes), error)
    })
}

fn report(what: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(what).expect("it is plain data");
    let mut output = io::stdout().lock();
    let sent = writeln!(output, "{line}").and_then(|()| output.flush());
    sent.map_err(|error| Failure::new("cannot report to the parent process", error))
}

fn receive<T: serde::de::DeserializeOwned>() -> Result<T> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let failed = |why: String| Failure::new("cannot read commands of the parent process", why);
    read.map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&line).map_err(|error| failed(error.to_string()))
}

/// Receives a message on another thread, so that this node's other tasks can still serve its memory to other
/// members.
async fn receive_in_thread<T: serde::de::DeserializeOwned + Send + 'static>() -> Result<T> {
    let (sender, received) = flume::bounded(1);
    std::thread::spawn(move || sender.send(receive()));
    received
        .recv_async()
        .await
        .unwrap_or_else(|_| Err(Failure::new("cannot read commands of the parent process", "it ended")))
}

/// Receives the next command, or `None` at the end of the input.
async fn receive_or_end() -> Result<Option<String>> {
    let (sender, received) = flume::bounded(1);
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = io::stdin().lock().read_line(&mut line);
        let _ = sender.send(line);
    });
    let line = received.recv_async().await.unwrap_or_default();
    Ok(serde_json::from_str(&line).ok())
}
