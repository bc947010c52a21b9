//! A node that is connected to the agents: the client of the file system, with errors in the user's words.

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

/// A node that is connected to the agents. Cloning gives another handle on the same.
///
/// Its calls are those that have to say more than the client's of the file system; for the others there is
/// [`client`](Self::client), whose errors [`explained`](Self::explained) puts into words.
#[derive(Clone)]
pub struct ConnectedNode {
    /// The node.
    pub machine: RealMachine,
    /// Its access to the file system.
    pub client: Client<RealMachine>,
    names: Rc<Names>,
}

impl ConnectedNode {
    /// Connects to all agents, and asks them for their disks. `key_file` is the file that was named as that of the
    /// machine's key, for error messages.
    ///
    /// # Errors
    /// If one of the agents does not answer, or two are the same.
    pub async fn to_all(
        machine: &RealMachine,
        agents: &[Agent],
        key_file: Option<&Path>,
    ) -> Result<ConnectedNode> {
        let connection = ConnectedNode::to_present(machine, agents, key_file).await?;
        connection.absence()?;
        Ok(connection)
    }

    /// Connects to those of the agents that answer. Files without a stripe at these agents are then not known, and no
    /// file can be made, since it would lie on other disks: see [`absence`](Self::absence).
    ///
    /// # Errors
    /// If none of them answers, or two are the same.
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
        let client = client.map_err(|error| names.explain("asking the agents for their disks", &error))?;
        for ((node, _), error) in client.failing_disks().await {
            names.enter_failing(node, &error);
        }
        Ok(ConnectedNode { machine: machine.clone(), client, names: names.into() })
    }

    /// Fails if there are agents that do not answer, and names them.
    ///
    /// # Errors
    /// If there are any.
    pub fn absence(&self) -> Result<()> {
        self.names.absence().map_or(Ok(()), Err)
    }

    /// Fails if there are agents that do not answer, or disks that could not be used when this node connected, and
    /// names them.
    ///
    /// # Errors
    /// If there are any.
    pub fn incompleteness(&self) -> Result<()> {
        self.names.incompleteness().map_or(Ok(()), Err)
    }

    /// The agents that do not answer, each as an error.
    pub fn absent_agents(&self) -> &[Error] {
        self.names.absent()
    }

    /// The disks of agents that answer which could not be used when this node connected, each as an error: files that
    /// do not lie on them can be used.
    pub fn failing_disks(&self) -> &[Error] {
        self.names.failing()
    }

    /// What the user calls the agents that answer.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        self.names.present()
    }

    /// What the user calls an agent.
    pub fn name(&self, node: NodeId) -> &str {
        self.names.of(node).unwrap_or("?")
    }

    /// Puts an error of the file system into the user's words; `what` is the file, or what was to be done.
    ///
    /// # Errors
    /// If it is one.
    pub fn explained<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.explain(what, &error))
    }

    /// Explains an error about `what` in the words of this crate.
    pub fn explain(&self, what: &str, error: &fs::Error) -> Error {
        self.names.explain(what, error)
    }

    /// The namespace of the set, through this page cache. If the agents have none, it is begun now, with a root that
    /// is this user's.
    ///
    /// # Errors
    /// If one has to be begun and an agent does not answer, or the disks belong to one that is not there.
    pub async fn tree(&self, cache: &PageCache<RealMachine>) -> Result<Tree<RealMachine>> {
        const WHAT: &str = "the namespace";
        if let Some(tree) = self.find_tree(cache).await? {
            return Ok(tree);
        }
        if let Err(absence) = self.incompleteness() {
            let why = format!(
                "this set has not been used yet, and all its agents have to answer the first time. {}: {}",
                absence.what(),
                absence.why()
            );
            let error = Error::new(absence.kind(), WHAT, why);
            return Err(absence.remedy().into_iter().fold(error, Error::with_remedy));
        }
        self.explained(WHAT, Tree::find_or_begin(cache, new_tree()?).await)
    }

    /// The namespace of the set, if the agents have one.
    ///
    /// # Errors
    /// If it is kept by an agent that does not answer, as far as can be known.
    pub async fn find_tree(&self, cache: &PageCache<RealMachine>) -> Result<Option<Tree<RealMachine>>> {
        const WHAT: &str = "the namespace";
        let tree = self.explained(WHAT, Tree::find(cache).await)?;
        let (None, Err(absence)) = (&tree, self.incompleteness()) else { return Ok(tree) };
        match Tree::check_none(&self.client).await {
            Err(error) if matches!(*error, fs::Error::NoKeeper { .. }) => {
                let why = format!(
                    "an agent that does not answer, or whose disk cannot be used, keeps it. {}: {}",
                    absence.what(),
                    absence.why()
                );
                let error = Error::new(absence.kind(), WHAT, why);
                Err(absence.remedy().into_iter().fold(error, Error::with_remedy))
            }
            checked => self.explained(WHAT, checked).map(|()| None),
        }
    }

    /// The striping of a file over `disks` of the agents' disks, or over all of them if `disks` is none.
    ///
    /// # Errors
    /// If there are fewer disks, or no file can have blocks of `block_bytes` bytes.
    pub fn striping(&self, block_bytes: u64, disks: Option<NonZeroU32>) -> Result<Striping> {
        let present = self.client.disks() - self.failing_disks().len() as u32;
        let wanted = disks.map_or(present, NonZeroU32::get);
        if wanted > present {
            let why = format!("files are to lie on {wanted} disks each; the agents have {present}");
            let remedy = format!("Ask for at most {present}, or for all of them; or name more agents");
            return Err(Error::new(ErrorKind::Invalid, "new file", why).with_remedy(remedy));
        }
        self.explained("new file", Striping::new(block_bytes, wanted).map_err(Box::<fs::Error>::from))
    }
}

/// What a namespace begins with that this user begins.
///
/// # Errors
/// If there are no random numbers.
pub fn new_tree() -> Result<NewTree> {
    let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    Ok(NewTree { origin: random()?, mode: 0o755, uid, gid })
}
