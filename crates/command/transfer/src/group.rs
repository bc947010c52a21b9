//! A group of compute nodes that moves a whole file together: the disk-directed method.
//!
//! Each node is a thread with a runtime and connections of its own, and has one block of the file (pattern
//! `rb` or `wb`) in its memory. So the whole file has to fit into the memory of this computer.
//!
//! ```text
//!  node 0   connect  open  say where -------- ready   go   [ collective ]  part 0 of the file
//!  node 1   connect  open  connect to node 0  ready   go   [ operation  ]  part 1
//! ```

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use flume::{Receiver, Sender};
use fs::{CollectiveSettings, Group, NumberedFile};
use layout::{Operation, Pattern, Problem, View};
use machine::{Memory, NodeId};
use node::ConnectedNode;
use real::{Peer, Settings};

use crate::cluster::Cluster;
use crate::memory;

/// A file that a group has moved.
pub struct MovedByGroup {
    /// The parts of the file in order; each was one node's.
    pub parts: Vec<Vec<u8>>,
    /// How long the collective operation took, from the moment all nodes were ready.
    pub elapsed: Duration,
}

/// What the group is to do, and with which file.
#[derive(Clone)]
struct Task {
    /// What the file is called in failures.
    name: String,
    /// Somebody keeps it open meanwhile.
    file: NumberedFile,
    operation: Operation,
    view: View,
    cluster: Cluster,
    members: Vec<NodeId>,
    group: u64,
}

/// Where the first member listens: it tells, the others hear.
type Leader = (Sender<SocketAddr>, Receiver<SocketAddr>);

/// One member's connections to the others while all get ready.
struct Start {
    rank: usize,
    leader: Leader,
    ready: Sender<()>,
    go: Receiver<()>,
}

/// Reads a file of `bytes` bytes, which is called `name` in failures, with `nodes` compute nodes.
pub fn read(
    cluster: &Cluster,
    (name, file): (&str, NumberedFile),
    bytes: u64,
    nodes: u32,
) -> Result<MovedByGroup> {
    check_memory(name, bytes)?;
    let lengths = lengths(name, bytes, nodes)?;
    let parts = lengths.into_iter().map(|length| vec![0; length as usize]).collect();
    carry_out(cluster, (name, file), Operation::Read, parts)
}

/// Writes a file that is there already, of the parts in order; each is one compute node's.
///
/// Their lengths are those that [`lengths`] says.
pub fn write(cluster: &Cluster, file: (&str, NumberedFile), parts: Vec<Vec<u8>>) -> Result<MovedByGroup> {
    carry_out(cluster, file, Operation::Write, parts)
}

/// The lengths of the parts that `nodes` compute nodes have of a file of `bytes` bytes.
///
/// Fails if this computer has not the memory for them.
pub fn lengths(name: &str, bytes: u64, nodes: u32) -> Result<Vec<u64>> {
    check_memory(name, bytes)?;
    if bytes == 0 {
        return Ok(vec![0; nodes as usize]);
    }
    let view = view_of(name, bytes, nodes)?;
    Ok((0..nodes).map(|node| view.node_bytes(node)).collect())
}

/// Each node has one block of the file, which is the same for reading and for writing.
fn view_of(name: &str, bytes: u64, nodes: u32) -> Result<View> {
    let pattern: Pattern = "rb".parse().expect("a pattern of the reports");
    pattern.view(&Problem::new(bytes, 1, nodes)).map_err(|error| Failure::usage(name, error))
}

/// Refuses what would not fit into memory, before it is tried.
fn check_memory(name: &str, bytes: u64) -> Result<()> {
    memory::check(bytes, |file, free| {
        let why = format!("the file of {file} does not fit into the {free} of memory that are free");
        Failure::new(name, why).remedy("The method `traditional` needs only a window of memory.")
    })
}

fn carry_out(
    cluster: &Cluster,
    (name, file): (&str, NumberedFile),
    operation: Operation,
    parts: Vec<Vec<u8>>,
) -> Result<MovedByGroup> {
    let bytes = parts.iter().map(|part| part.len() as u64).sum();
    if bytes == 0 {
        return Ok(MovedByGroup { parts, elapsed: Duration::ZERO });
    }
    let task = Task {
        operation,
        view: view_of(name, bytes, parts.len() as u32)?,
        name: name.to_owned(),
        file,
        cluster: cluster.clone(),
        members: parts.iter().map(|_| node::new_node_id()).collect::<node::Result<_>>()?,
        group: node::random()?,
    };
    let (ready, all_ready) = flume::unbounded();
    let (mut threads, mut begin) = (Vec::new(), Vec::new());
    let leader = flume::unbounded();
    for (rank, part) in parts.into_iter().enumerate() {
        let (go, wait) = flume::bounded::<()>(1);
        let start = Start { rank, leader: leader.clone(), ready: ready.clone(), go: wait };
        let task = task.clone();
        threads.push(thread::spawn(move || task.member(start, part)));
        begin.push(go);
    }
    drop((ready, leader));
    // A member that fails before it is ready drops its sender; with the last sender this ends, too early.
    let all = all_ready.iter().take(threads.len()).count() == threads.len();
    let start = Instant::now();
    for go in begin.into_iter().filter(|_| all) {
        // A member that is gone meanwhile tells so itself.
        let _ = go.send(());
    }
    let outcomes =
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
    let members = outcomes.collect::<Vec<_>>().into_iter().collect::<Result<Vec<(Vec<u8>, Instant)>>>()?;
    let end = members.iter().map(|&(_, end)| end).max().unwrap_or(start);
    let parts = members.into_iter().map(|(part, _)| part).collect();
    Ok(MovedByGroup { parts, elapsed: end.saturating_duration_since(start) })
}

impl Task {
    /// The life of one member, on a thread of its own. Gives back its part of the file, and when it was done.
    fn member(self, start: Start, part: Vec<u8>) -> Result<(Vec<u8>, Instant)> {
        let listen = (start.rank == 0).then(|| ([127, 0, 0, 1], 0).into());
        let settings = Settings { node: self.members[start.rank], listen, ..self.cluster.settings()? };
        let cluster = self.cluster.clone();
        cluster.run_as(settings, move |connection| async move {
            let opened = connection.client.numbered(self.file.clone()).await;
            let file = connection.explained(&self.name, opened)?;
            let Start { rank, leader, ready, go } = start;
            self.meet(&connection, rank, leader).await?;
            let _ = ready.send(());
            drop(ready);
            if go.recv_async().await.is_err() {
                // Another member could not start, and says why.
                return Ok((part, Instant::now()));
            }
            let group = Group::new(self.group, self.members.clone(), rank);
            let memory = Memory::real(part);
            let moved = match self.operation {
                Operation::Read => {
                    file.read_collective(&group, &self.view, &memory, CollectiveSettings::disk_directed())
                        .await
                }
                Operation::Write => {
                    file.write_collective(&group, &self.view, &memory, CollectiveSettings::disk_directed())
                        .await
                }
            };
            let end = Instant::now();
            connection.explained(&self.name, moved)?;
            Ok((memory.into_vec().expect("real memory"), end))
        })
    }

    /// Connects this member to the first, which keeps the barriers; the others need no connections.
    async fn meet(&self, connection: &ConnectedNode, rank: usize, leader: Leader) -> Result<()> {
        let (tell, hear) = leader;
        if rank == 0 {
            let address = connection.machine.address().expect("it listens");
            for _ in &self.members[1..] {
                // A member that could not start does not listen, and says why itself.
                let _ = tell.send(address);
            }
            return Ok(());
        }
        drop(tell);
        let failed = |why: String| Failure::new("joining the group of compute nodes", why);
        let address = hear.recv_async().await.map_err(|_| failed("its first node could not start".into()))?;
        let peer = Peer { node: self.members[0], address };
        connection.machine.connect(&[peer]).await.map_err(|error| failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_whole_file() {
        for (bytes, nodes) in [(0, 4), (1, 4), (65_537, 4), (5 << 20, 3)] {
            let lengths = lengths("x", bytes, nodes).expect("it fits");
            assert_eq!((lengths.len(), lengths.iter().sum::<u64>()), (nodes as usize, bytes));
        }
    }
}
