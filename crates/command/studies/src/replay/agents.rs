//! A replay on agents: creates the files, runs the nodes in this process, and removes the files.
//!
//! ```text
//!  parent   make, lay out    wait   send addresses   go           check        remove
//!  node 0     connect, listen  |     meet, open      | [ replay ]  | check
//!  node 1     connect, listen  |     meet, open      | [ replay ]  |
//! ```
//!
//! The parent node creates and removes the files. Each node has its own thread, runtime, and connections to the agents
//! and to all other nodes.

use std::net::SocketAddr;
use std::rc::Rc;
use std::thread;

use flume::{Receiver, Sender};
use fs::Group;
use jobs::{Contents, Job, Member, Outcome, ReplayJob};
use machine::NodeId;
use node::ConnectedNode;
use real::{Peer, Settings};

use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use transfer::cluster::{Cluster, explained_job};
use transfer::interrupt::{Interruption, unless};
use transfer::scratch::{self, JobFiles};
use transfer::{memory, preflight};

/// Replay, and the agents to run it on.
#[derive(Clone)]
pub struct ReplayTask {
    /// The agents.
    pub cluster: Cluster,
    /// The job.
    pub job: ReplayJob,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Name of the replay in messages.
    pub label: String,
    /// Progress to show.
    pub show: Show,
}

/// Command of the parent to a node. Commands are sent in this order.
enum Step {
    /// Connect to the nodes of lower rank, which have these addresses, and open the files.
    Connect(Vec<SocketAddr>),
    /// Replay.
    Go,
    /// All nodes are done: check the files.
    Check,
}

/// Message of a node to the parent.
enum NodeMessage {
    Listening(usize, SocketAddr),
    Ready,
    Done(Box<Outcome>),
    Checked,
}

/// Rank of a node in the group, and its channels.
struct Place {
    rank: usize,
    group: u64,
    members: Rc<[NodeId]>,
    files: Rc<JobFiles>,
}

impl ReplayTask {
    /// Runs the replay. Removes the files even after a failure or an interruption.
    pub fn run(self, interruption: Interruption) -> Result<Outcome> {
        self.check_memory()?;
        let cluster = self.cluster.clone();
        cluster.run(move |connection| async move {
            let bytes = self.job.files().map(|(_, bytes, _)| bytes).fold(0, u64::saturating_add);
            preflight::check_space(&connection, "the files of the log", bytes).await?;
            let failure = Failure::new("replay", "interrupted, and there was no time to remove the files");
            let undo_guard = interruption.begin(failure.remedy(scratch::LEFT));
            let mut files = JobFiles::new();
            for (name, _, _) in self.job.files() {
                let file = scratch::describe(&connection, &self.label, self.block_bytes).await?;
                files.insert(name.to_owned(), file);
            }
            let outcome = interruption.unless(self.make_and_use(&connection, &files)).await;
            match (outcome, scratch::remove(&connection, files.values()).await) {
                (None, removed) => Err(undo_guard.undone(Failure::new("replay", "interrupted"), removed)),
                (Some(Err(failure)), Err(_)) => Err(failure.also(scratch::LEFT)),
                (Some(outcome), removed) => outcome.and_then(|outcome| Ok(removed.map(|()| outcome)?)),
            }
        })
    }

    /// Fails if the data of the nodes do not fit into memory.
    fn check_memory(&self) -> Result<()> {
        let needed = self.job.memory_bytes().saturating_mul(self.job.log().nodes().len() as u64);
        memory::check(needed, |needed, free| {
            let why =
                format!("its nodes need {needed} of memory for data, and {free} are free on this computer");
            Failure::new(&self.label, why)
        })
    }

    async fn make_and_use(&self, connection: &ConnectedNode, described: &JobFiles) -> Result<Outcome> {
        let progress = Progress::bytes(self.show, &format!("laying out for {}", self.label));
        let read = self.job.files().filter(|(_, _, is_read)| *is_read).map(|(_, bytes, _)| bytes);
        progress.expect(read.sum());
        let mut files = described.clone();
        for (name, bytes, is_read) in self.job.files() {
            let known = files.get_mut(name).expect("each is described");
            let opened = connection.client.numbered(known.clone()).await;
            let file = connection.explained(&self.label, opened)?;
            connection.explained(&self.label, file.make_stripes().await)?;
            if is_read {
                let progress = progress.clone();
                let on_bytes = move |bytes| progress.add(bytes);
                let filled = jobs::fill(&connection.machine, &file, bytes, Contents::Real, on_bytes).await;
                explained_job(connection, &self.label, filled)?;
                connection.explained(&self.label, file.flush().await)?;
                known.bytes = file.bytes();
            }
        }
        progress.finish();
        self.have_nodes_replay(&files).await
    }

    /// Starts all nodes at the same time, after all are ready. If a node fails, stops all.
    async fn have_nodes_replay(&self, files: &JobFiles) -> Result<Outcome> {
        let count = self.job.log().nodes().len();
        let members = (0..count).map(|_| node::new_node_id()).collect::<node::Result<Vec<NodeId>>>()?;
        let group = node::random()?;
        let (sender, messages) = flume::unbounded();
        let mut steps = Vec::new();
        for rank in 0..count {
            let (step, steps_of_node) = flume::unbounded();
            steps.push(step);
            let (task, sender, members) = (self.clone(), sender.clone(), (members.clone(), files.clone()));
            thread::spawn(move || {
                let done = task.be_node(rank, group, members, steps_of_node, sender.clone());
                if let Err(failure) = done {
                    // After an interruption the receiver is dropped.
                    let _ = sender.send(Err(failure));
                }
            });
        }
        drop(sender);
        let mut addresses = vec![None; count];
        for messages in receive_all(&messages, count).await? {
            if let NodeMessage::Listening(rank, address) = messages {
                addresses[rank] = Some(address);
            }
        }
        let addresses: Vec<SocketAddr> = addresses.into_iter().flatten().collect();
        for (rank, step) in steps.iter().enumerate() {
            let _ = step.send(Step::Connect(addresses[..rank].to_vec()));
        }
        receive_all(&messages, count).await?;
        let all = |step: fn() -> Step| {
            // If a node has ended, this send fails; the node has sent its own failure.
            steps.iter().for_each(|to| _ = to.send(step()));
        };
        let progress = Progress::count(self.show, &self.label, count as u64);
        all(|| Step::Go);
        let mut sum = Outcome::default();
        for messages in receive_all(&messages, count).await? {
            if let NodeMessage::Done(outcome) = messages {
                sum.add(&outcome);
            }
        }
        progress.finish();
        all(|| Step::Check);
        receive_all(&messages, count).await?;
        Ok(sum)
    }

    /// Runs a node. The node carries out one command after the other, and stops when the parent drops its sender.
    fn be_node(
        self,
        rank: usize,
        group: u64,
        (members, files): (Vec<NodeId>, JobFiles),
        steps: Receiver<Step>,
        sender: Sender<Result<NodeMessage>>,
    ) -> Result<()> {
        let settings = Settings {
            node: members[rank],
            listen: Some(([127, 0, 0, 1], 0).into()),
            ..self.cluster.settings()?
        };
        let cluster = self.cluster.clone();
        cluster.run_as(settings, move |connection| async move {
            connection.absence()?;
            let place = Place { rank, group, members: members.into(), files: files.into() };
            let _ = sender
                .send(Ok(NodeMessage::Listening(rank, connection.machine.address().expect("it listens"))));
            let Ok(Step::Connect(addresses)) = steps.recv_async().await else { return Ok(()) };
            let part = self.get_ready(&connection, &place, &addresses).await?;
            let _ = sender.send(Ok(NodeMessage::Ready));
            let Ok(Step::Go) = steps.recv_async().await else { return Ok(()) };
            let stopped = async {
                // The parent sends no command during the replay, so this call returns only when the channel is closed.
                let _ = steps.recv_async().await;
            };
            let Some(outcome) = unless(stopped, part.run()).await else { return Ok(()) };
            let _ = sender.send(Ok(NodeMessage::Done(Box::new(explained_job(
                &connection,
                &self.label,
                outcome,
            )?))));
            let Ok(Step::Check) = steps.recv_async().await else { return Ok(()) };
            explained_job(&connection, &self.label, part.check().await)?;
            let _ = sender.send(Ok(NodeMessage::Checked));
            Ok(())
        })
    }

    /// Connects a node to the other nodes, and opens its files.
    async fn get_ready(
        &self,
        connection: &ConnectedNode,
        place: &Place,
        addresses: &[SocketAddr],
    ) -> Result<jobs::Part<real::RealMachine>> {
        let peers = place.members.iter().zip(addresses);
        let peers: Vec<Peer> = peers.map(|(&node, &address)| Peer { node, address }).collect();
        let met = connection.machine.connect(&peers).await;
        met.map_err(|error| Failure::new("cannot join the group of compute nodes", error))?;
        let member = Member {
            machine: connection.machine.clone(),
            client: Some(connection.client.clone()),
            files: place.files.clone(),
            group: Group::new(place.group, place.members.to_vec(), place.rank),
            contents: Contents::Real,
            seed: 1,
        };
        let job = Job::Replay(self.job.clone());
        explained_job(connection, &self.label, job.prepare(member).await)
    }
}

/// Receives a message from each of `count` nodes, or the first failure.
async fn receive_all(messages: &Receiver<Result<NodeMessage>>, count: usize) -> Result<Vec<NodeMessage>> {
    let mut all = Vec::new();
    while all.len() < count {
        match messages.recv_async().await {
            Ok(messages) => all.push(messages?),
            Err(_) => return Err(Failure::new("replaying", "a node of this process ended too early")),
        }
    }
    Ok(all)
}
