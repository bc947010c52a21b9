//! This process as a compute node: connected to the agents, with the file system open.

use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use fs::{Client, ClientSettings, File, FileStat};
use machine::NodeId;
use real::{RealMachine, Settings};

use super::agents::Agent;
use crate::failure::{Failure, Result};
use crate::node;

/// Block requests of one call under way to each disk. Calls are short pieces of a file (see `stream.rs`),
/// so what bounds the data under way is the window there.
const OUTSTANDING_PER_DISK: usize = 64;

/// A connection to the file system. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Session {
    /// This node.
    pub(crate) machine: RealMachine,
    /// Its access to the file system.
    pub(crate) client: Client<RealMachine>,
    names: Rc<Names>,
}

/// What the user calls each agent.
pub(crate) struct Names(BTreeMap<NodeId, String>);

/// Connects to the agents and does `work` there.
pub(crate) fn run<T, F>(agents: Vec<Agent>, work: impl FnOnce(Session) -> F + 'static) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    run_node(node::settings()?, agents, work)
}

/// Like [`run`], as the node that `settings` describe.
pub(crate) fn run_node<T, F>(
    settings: Settings,
    agents: Vec<Agent>,
    work: impl FnOnce(Session) -> F + 'static,
) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    let started = real::run(settings, |machine| async move {
        let session = Session::start(machine, agents).await?;
        work(session).await
    });
    started.map_err(|error| Failure::new("starting this node", error))?
}

impl Session {
    async fn start(machine: RealMachine, agents: Vec<Agent>) -> Result<Session> {
        let (mut io_nodes, mut names) = (Vec::new(), Names(BTreeMap::new()));
        for agent in agents {
            let node = machine.connect_to(agent.address).await;
            let node = node.map_err(|error| unreachable_agent(&agent, error))?;
            if let Some(same) = names.0.insert(node, agent.name.clone()) {
                let why = format!("it is the same agent as {same}");
                return Err(
                    Failure::usage(format!("agent {}", agent.name), why).remedy("Name every agent once.")
                );
            }
            io_nodes.push(node);
        }
        let settings =
            ClientSettings { outstanding_per_disk: OUTSTANDING_PER_DISK, ..ClientSettings::default() };
        let client = Client::connect(machine.clone(), io_nodes, settings).await;
        let client = client.map_err(|error| names.explain("asking the agents for their disks", &error))?;
        Ok(Session { machine, client, names: Rc::new(names) })
    }

    /// Opens a file.
    pub(crate) async fn open(&self, name: &str) -> Result<File<RealMachine>> {
        self.told(name, self.client.open(name).await)
    }

    /// What there is to know of a file.
    pub(crate) async fn stat(&self, name: &str) -> Result<FileStat> {
        self.told(name, self.client.stat(name).await)
    }

    /// Puts an error of the file system into words the user knows; `what` is what was to be done.
    pub(crate) fn told<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.names.explain(what, &error))
    }

    /// What the user calls an agent.
    pub(crate) fn name(&self, node: NodeId) -> &str {
        self.names.0.get(&node).map_or("?", String::as_str)
    }
}

impl Names {
    fn explain(&self, what: &str, error: &fs::Error) -> Failure {
        let mut text = error.to_string();
        for (node, name) in &self.0 {
            text = text.replace(&node.to_string(), &format!("agent {name}"));
        }
        // The name of the file stands before this already.
        let why = text.strip_prefix(&format!("{what}: ")).unwrap_or(&text);
        let failure = Failure::new(what, why);
        match error {
            fs::Error::NotFound { .. } => failure.remedy("`starfish ls` lists the files there are."),
            fs::Error::Exists { .. } => {
                failure.remedy("Remove it with `starfish rm`, or put with --replace.")
            }
            fs::Error::MissingStripe { .. } => failure.remedy(
                "If all agents that had the file when it was put are named, the stripe is lost; \
                 `starfish rm` removes the rest.",
            ),
            fs::Error::ForeignStripe { .. } => failure
                .remedy("Put back the stripe that belongs there, or remove the file with `starfish rm`."),
            fs::Error::Machine(machine::Error::PeerGone { .. }) => {
                failure.remedy("Is the agent still running? Its standard error tells what happened to it.")
            }
            fs::Error::WriteLost { .. } => {
                failure.remedy("Write it again. The agent's standard error may tell why it ended.")
            }
            fs::Error::Remote { failure: remote, .. } => match remote.kind {
                fs::FailureKind::NoSpace => {
                    failure.remedy("Remove files with `starfish rm`, or give the agent a larger disk.")
                }
                fs::FailureKind::Damaged => failure.remedy(
                    "Check that disk. What else lies on it can be read; `starfish rm` removes the file.",
                ),
                _ => failure,
            },
            _ => failure,
        }
    }
}

fn unreachable_agent(agent: &Agent, error: machine::Error) -> Failure {
    let why = match error {
        // What was being done is said already.
        machine::Error::Io { why, .. } => why,
        other => other.to_string(),
    };
    Failure::new(format!("agent {}", agent.name), why)
        .remedy("Is it running? Start it with: starfish agent --root DIR --listen HOST:PORT")
}
