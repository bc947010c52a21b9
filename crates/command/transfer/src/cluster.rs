//! The agents that a command uses, and nodes of this process that connect to them.
//!
//! A command makes a [`Cluster`] from its options and passes it on. Each node that connects to these agents is started
//! from the cluster, which gives it the cluster key and the trace file. To use another trace file, or none, pass a copy
//! that [`Cluster::with_trace`] returns.

use std::future::Future;
use std::path::{Path, PathBuf};

use node::{Agent, ConnectedNode, NodeTrace, key};
use real::{Keys, Limits, Settings};

use command_line::failure::{Failure, Result};
use command_line::say;

/// The agents that a command uses, with the cluster key and the trace of the nodes that connect to them.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Agents that the command uses.
    pub agents: Vec<Agent>,
    /// File of the cluster key, if the user named one. Otherwise nodes use the file of [`key::path`].
    pub key_file: Option<PathBuf>,
    /// Trace file to which each node appends the record of its work, if any.
    pub trace: Option<PathBuf>,
}

impl Cluster {
    /// Returns these agents with the usual cluster key and no trace.
    pub fn new(agents: Vec<Agent>) -> Cluster {
        Cluster { agents, ..Cluster::default() }
    }

    /// Returns a copy with other agents.
    pub fn with_agents(&self, agents: Vec<Agent>) -> Cluster {
        Cluster { agents, ..self.clone() }
    }

    /// Returns a copy with only those agents to which `connection` is connected.
    pub fn with_present(&self, connection: &ConnectedNode) -> Cluster {
        let is_present = |agent: &&Agent| connection.present().any(|name| name == agent.name);
        self.with_agents(self.agents.iter().filter(is_present).cloned().collect())
    }

    /// Returns a copy whose nodes append to this trace file. Without a file, the nodes record nothing.
    pub fn with_trace(&self, trace: Option<&Path>) -> Cluster {
        Cluster { trace: trace.map(Path::to_owned), ..self.clone() }
    }

    /// Returns the settings of a new node with a random identity, the cluster key and the settings of the environment.
    ///
    /// Fails if the key cannot be read, or the environment has an invalid setting.
    pub fn settings(&self) -> Result<Settings> {
        settings(self.key_file.as_deref())
    }

    /// Starts a node, connects it to the agents, and runs `work` with it.
    ///
    /// Fails if an agent does not answer.
    pub fn run<T, F>(&self, work: impl FnOnce(ConnectedNode) -> F + 'static) -> Result<T>
    where
        T: 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.run_with_present(|connection| async move {
            connection.absence()?;
            work(connection).await
        })
    }

    /// Starts a node, connects it to those agents that answer, and runs `work` with it. Files that have a stripe on one
    /// of the other agents are incomplete.
    ///
    /// Fails if no agent answers.
    pub fn run_with_present<T, F>(&self, work: impl FnOnce(ConnectedNode) -> F + 'static) -> Result<T>
    where
        T: 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.run_as(self.settings()?, work)
    }

    /// Like [`run_with_present`](Self::run_with_present), with a node that has these settings.
    pub fn run_as<T, F>(
        &self,
        settings: Settings,
        work: impl FnOnce(ConnectedNode) -> F + 'static,
    ) -> Result<T>
    where
        T: 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        let Cluster { agents, key_file, trace } = self.clone();
        let started = real::run(settings, |machine| async move {
            let trace = NodeTrace::begin(&machine, trace.as_deref())?;
            let done = match ConnectedNode::to_present(&machine, &agents, key_file.as_deref()).await {
                Ok(connection) => work(connection).await,
                Err(error) => Err(error.into()),
            };
            let traced = trace.map_or(Ok(()), NodeTrace::end);
            done.and_then(|done| traced.map(|()| done).map_err(Failure::from))
        });
        started.map_err(|error| Failure::new("cannot start this node", error))?
    }
}

/// Creates the cluster key of this user, unless one exists or `key_file` names another.
pub fn make_key(key_file: Option<&Path>) -> Result<()> {
    if let Some(path) = key::make_usual(key_file)? {
        say!("Created the cluster key {}. Agents accept only programs with this key.", path.display());
    }
    Ok(())
}

/// Returns the settings of a new node that has disks. The first call for a user creates the cluster key.
pub fn agent_settings(key_file: Option<&Path>) -> Result<Settings> {
    make_key(key_file)?;
    settings(key_file)
}

fn settings(key_file: Option<&Path>) -> Result<Settings> {
    settings_with(key::find(key_file).map_err(|error| Failure::from(error).of_usage())?)
}

/// Returns the settings of a new node with these keys, for nodes that connect only to other nodes of this process.
pub fn settings_with(keys: Keys) -> Result<Settings> {
    let asked =
        node::Settings::of_environment(Vec::new()).map_err(|error| Failure::from(error).of_usage())?;
    let limits = Limits { silence: asked.silence, recall: asked.silence, ..Limits::default() };
    Ok(Settings { driver: asked.driver, limits, ..Settings::new(node::new_node_id()?, keys) })
}

/// Explains the failure of a job on agents in the user's terms.
pub fn explained_job<T>(
    connection: &ConnectedNode,
    what: &str,
    outcome: std::result::Result<T, jobs::Error>,
) -> Result<T> {
    outcome.map_err(|error| match error {
        jobs::Error::FileSystem(error) => connection.explain(what, &error).into(),
        jobs::Error::WrongData(wrong) => {
            let failure = Failure::new(what, format!("the data read back are wrong: {wrong}"));
            failure.remedy("Another program wrote to it, or an agent or network corrupts data.")
        }
        other => Failure::new(what, other),
    })
}
