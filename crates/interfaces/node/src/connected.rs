//! Node that is connected to the agents: the client of the file system, with errors in the user's terms.

use std::num::NonZeroU32;
use std::path::Path;
use std::rc::Rc;

use fs::{Client, ClientSettings, NewTree, PageCache, Tree};
use futures_util::future::join_all;
use layout::Striping;
use machine::NodeId;
use real::RealMachine;

use crate::agents::Agent;
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::random::random;

/// Node that is connected to the agents. Clones share the connections.
///
/// The methods add information that the client lacks, such as the user's names of agents. For everything else use
/// [`client`](Self::client), and translate its errors with [`explained`](Self::explained).
#[derive(Clone)]
pub struct ConnectedNode {
    /// The node.
    pub machine: RealMachine,
    /// Client of the file system.
    pub client: Client<RealMachine>,
    names: Rc<Names>,
}

impl ConnectedNode {
    /// Connects to all agents, and asks them for their disks. Error messages mention `key_file`, the key file named by
    /// the user.
    ///
    /// # Errors
    /// If an agent does not answer, or two names denote the same agent.
    pub async fn to_all(
        machine: &RealMachine,
        agents: &[Agent],
        key_file: Option<&Path>,
    ) -> Result<ConnectedNode> {
        let connection = ConnectedNode::to_present(machine, agents, key_file).await?;
        connection.absence()?;
        Ok(connection)
    }

    /// Connects to those agents that answer. Files with stripes only at absent agents are then unknown. No file can be
    /// created, since its striping would not include all disks: see [`absence`](Self::absence).
    ///
    /// # Errors
    /// If no agent answers, or two names denote the same agent.
    pub async fn to_present(
        machine: &RealMachine,
        agents: &[Agent],
        key_file: Option<&Path>,
    ) -> Result<ConnectedNode> {
        let (mut io_nodes, mut names) = (Vec::new(), Names::default());
        let calls = agents.iter().map(|agent| machine.connect_to(agent.address));
        for (agent, node) in agents.iter().zip(join_all(calls).await) {
            match node {
                Ok(node) => {
                    if let Err(same) = names.enter(node, agent) {
                        return Err(agent.is_named_twice(same));
                    }
                    io_nodes.push(node);
                }
                Err(error) => names.enter_absent(agent, *error, key_file),
            }
        }
        if let Some(error) = names.absence().filter(|_| io_nodes.is_empty()) {
            return Err(error);
        }
        let client = Client::connect(machine.clone(), io_nodes, ClientSettings::agent()).await;
        let client = client.map_err(|error| names.explain("cannot get the list of disks", &error))?;
        for ((node, _), error) in client.failing_disks().await {
            names.enter_failing(node, &error);
        }
        Ok(ConnectedNode { machine: machine.clone(), client, names: names.into() })
    }

    /// Fails if agents do not answer. The error names these agents.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn absence(&self) -> Result<()> {
        self.names.absence().map_or(Ok(()), Err)
    }

    /// Fails if agents do not answer, or if disks could not be used when this node connected. The error names these
    /// agents and disks.
    ///
    /// # Errors
    /// If an agent does not answer or a disk cannot be used.
    pub fn incompleteness(&self) -> Result<()> {
        self.names.incompleteness().map_or(Ok(()), Err)
    }

    /// Returns an error for each agent that does not answer.
    pub fn absent_agents(&self) -> &[Error] {
        self.names.absent()
    }

    /// Returns an error for each disk that could not be used when this node connected, of the agents that answer. Files
    /// without stripes on these disks can be used.
    pub fn failing_disks(&self) -> &[Error] {
        self.names.failing()
    }

    /// Returns the user's names of the agents that answer.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        self.names.present()
    }

    /// Returns the user's name of an agent.
    pub fn name(&self, node: NodeId) -> &str {
        self.names.of(node).unwrap_or("?")
    }

    /// Translates an error of the file system into the user's terms, with the name of the file or of the failed
    /// operation.
    ///
    /// # Errors
    /// If `outcome` is an error.
    pub fn explained<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.explain(what, &error))
    }

    /// Explains an error about this subject in the terms of this crate.
    pub fn explain(&self, what: &str, error: &fs::Error) -> Error {
        self.names.explain(what, error)
    }

    /// Returns the namespace of the set, with this page cache. If the agents have none, creates one, whose root belongs
    /// to this user.
    ///
    /// # Errors
    /// If a namespace must be created and an agent does not answer, or if the disks belong to a namespace that is
    /// missing.
    pub async fn tree(&self, cache: &PageCache<RealMachine>) -> Result<Tree<RealMachine>> {
        const WHAT: &str = "cannot open the namespace";
        if let Some(tree) = self.find_tree(cache).await? {
            return Ok(tree);
        }
        if let Err(absence) = self.incompleteness() {
            let why = format!(
                "this set has no namespace yet, and creating one requires all agents. {}: {}",
                absence.what(),
                absence.why()
            );
            let error = Error::new(absence.kind(), WHAT, why);
            return Err(absence.remedy().into_iter().fold(error, Error::with_remedy));
        }
        self.explained(WHAT, Tree::find_or_begin(cache, new_tree()?).await)
    }

    /// Returns the namespace of the set, if the agents have one.
    ///
    /// # Errors
    /// If the metadata server is known and does not answer.
    pub async fn find_tree(&self, cache: &PageCache<RealMachine>) -> Result<Option<Tree<RealMachine>>> {
        const WHAT: &str = "cannot open the namespace";
        let tree = self.explained(WHAT, Tree::find(cache).await)?;
        let (None, Err(absence)) = (&tree, self.incompleteness()) else { return Ok(tree) };
        match Tree::check_none(&self.client).await {
            Err(error) if matches!(*error, fs::Error::NoMetadataServer { .. }) => {
                let why = format!(
                    "its metadata server does not answer, or cannot use its disk. {}: {}",
                    absence.what(),
                    absence.why()
                );
                let error = Error::new(absence.kind(), WHAT, why);
                Err(absence.remedy().into_iter().fold(error, Error::with_remedy))
            }
            checked => self.explained(WHAT, checked).map(|()| None),
        }
    }

    /// Returns the striping of a file over `disks` of the agents' disks; without a number, over all of them.
    ///
    /// # Errors
    /// If the agents have fewer than `disks` disks, or no file can have blocks of `block_bytes` bytes.
    pub fn striping(&self, block_bytes: u64, disks: Option<NonZeroU32>) -> Result<Striping> {
        let present = self.client.disks() - self.failing_disks().len() as u32;
        let wanted = disks.map_or(present, NonZeroU32::get);
        if wanted > present {
            let why = format!("cannot stripe over {wanted} disks: the agents have {present}");
            let remedy = format!("Choose at most {present} disks, or name more agents");
            return Err(Error::new(ErrorKind::Invalid, "new file", why).with_remedy(remedy));
        }
        self.explained("new file", Striping::new(block_bytes, wanted).map_err(Box::<fs::Error>::from))
    }
}

/// Returns the initial values of a namespace that this user creates.
///
/// # Errors
/// If the system has no random numbers.
pub fn new_tree() -> Result<NewTree> {
    let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    Ok(NewTree { origin: random()?, mode: 0o755, uid, gid })
}
