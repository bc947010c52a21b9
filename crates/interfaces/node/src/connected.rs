//! A node that is connected to the agents: the client of the file system, with errors in the user's words.

use std::num::NonZeroU32;
use std::path::Path;
use std::rc::Rc;

use fs::{Client, ClientSettings, File, FileStat};
use futures_util::future::join_all;
use layout::Striping;
use machine::NodeId;
use real::RealMachine;

use crate::agents::Agent;
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::random::new_file_id;

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

    /// Opens a file: a finished one, or an unfinished one if there is one and that is asked for.
    ///
    /// # Errors
    /// If there is none.
    pub async fn open(&self, name: &str, unfinished: bool) -> Result<File<RealMachine>> {
        let opened = match unfinished {
            true => self.client.open_unfinished(name).await,
            false => self.client.open(name).await,
        };
        self.explained(name, opened)
    }

    /// The metadata of a finished file.
    ///
    /// # Errors
    /// If there is none.
    pub async fn stat(&self, name: &str) -> Result<FileStat> {
        self.explained(name, self.client.stat(name).await)
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

    /// Makes an unfinished file. If there is one of that name and it is to be replaced, it stays until this one is
    /// committed, unless it is damaged: what cannot be read need not be kept.
    ///
    /// # Errors
    /// If there is one and it is not to be replaced, or the disks do not take such a file.
    pub async fn create(&self, name: &str, striping: Striping, replace: bool) -> Result<File<RealMachine>> {
        // A file that cannot be made must not cost the one that it would replace.
        self.explained(name, self.client.check_striping(name, striping))?;
        let file = new_file_id()?;
        if replace {
            match self.explained(name, self.client.create_replacing(name, file, striping).await) {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    self.explained(name, self.client.unlink(name).await)?;
                }
                created => return created,
            }
        }
        self.explained(name, self.client.create_striped(name, file, striping).await)
    }

    /// Removes a file, or what is left of one. A file with stripes at agents that do not answer is not removed: a part
    /// of it would stay and look damaged.
    ///
    /// # Errors
    /// If there is none, or it cannot be removed.
    pub async fn unlink(&self, name: &str) -> Result<()> {
        if self.incompleteness().is_err() {
            self.stat(name).await?;
        }
        self.explained(name, self.client.unlink(name).await)
    }

    /// Removes a file, or what is left of one, if there is anything.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub async fn unlink_if_there(&self, name: &str) -> Result<()> {
        self.explained(name, if_there(self.client.unlink(name).await))
    }

    /// Removes the unfinished file of this name, if there is one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub async fn discard(&self, name: &str) -> Result<()> {
        self.explained(name, if_there(self.client.unlink_unfinished(name).await))
    }
}

/// Takes a removal of a file that does not exist for a success, which removed nothing.
pub(crate) fn if_there(removed: fs::Result<()>) -> fs::Result<()> {
    match removed {
        Err(error) if matches!(*error, fs::Error::NotFound { .. }) => Ok(()),
        removed => removed,
    }
}
