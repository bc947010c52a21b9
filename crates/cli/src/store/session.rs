//! This process as a compute node: connected to the agents, with the file system open.

use std::future::Future;
use std::rc::Rc;

use fs::{Client, File, FileStat};
use machine::NodeId;
use node::{Agent, Names};
use real::{RealMachine, Settings};

use crate::failure::{Failure, Result};
use crate::this_node;

/// A connection to the file system. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Session {
    /// This node.
    pub(crate) machine: RealMachine,
    /// Its access to the file system.
    pub(crate) client: Client<RealMachine>,
    names: Rc<Names>,
}

/// Connects to the agents, which all have to answer, and does `work` there.
pub(crate) fn run<T, F>(agents: Vec<Agent>, work: impl FnOnce(Session) -> F + 'static) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    run_with_present(agents, |session| async move {
        session.absence()?;
        work(session).await
    })
}

/// Connects to those of the agents that answer and does `work` there, which does not need all of them: files that have
/// no stripe on the others are whole.
pub(crate) fn run_with_present<T, F>(
    agents: Vec<Agent>,
    work: impl FnOnce(Session) -> F + 'static,
) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    run_node(this_node::settings()?, agents, work)
}

/// Like [`run_with_present`], as the node that `settings` describe.
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
        let (client, names) = node::connect_to_present(&machine, &agents, this_node::key_file()).await?;
        Ok(Session { machine, client, names: Rc::new(names) })
    }

    /// Fails if there are agents that do not answer, and names them.
    pub(crate) fn absence(&self) -> Result<()> {
        self.names.absence().map_or(Ok(()), |error| Err(error.into()))
    }

    /// What the user calls the agents that answer.
    pub(crate) fn present(&self) -> impl Iterator<Item = &str> {
        self.names.present()
    }

    /// Removes a file, or whatever is left of one. If agents do not answer, only a file that has no stripe there: a
    /// part of it would stay and look damaged.
    pub(crate) async fn unlink(&self, name: &str) -> Result<()> {
        if self.names.absence().is_some() {
            self.stat(name).await?;
        }
        self.told(name, self.client.unlink(name).await)
    }

    /// Opens a file: a finished one, or an unfinished one if there is one and that is asked for.
    pub(crate) async fn open(&self, name: &str, unfinished: bool) -> Result<File<RealMachine>> {
        let opened = match unfinished {
            true => self.client.open_unfinished(name).await,
            false => self.client.open(name).await,
        };
        self.told(name, opened)
    }

    /// What there is to know of a finished file.
    pub(crate) async fn stat(&self, name: &str) -> Result<FileStat> {
        self.told(name, self.client.stat(name).await)
    }

    /// Puts an error of the file system into words the user knows; `what` is what was to be done.
    pub(crate) fn told<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.explain(what, &error).into())
    }

    /// The same of an error, with its kind.
    pub(crate) fn explain(&self, what: &str, error: &fs::Error) -> node::Error {
        self.names.explain(what, error)
    }

    /// What the user calls an agent.
    pub(crate) fn name(&self, node: NodeId) -> &str {
        self.names.of(node).unwrap_or("?")
    }
}
