//! What all nodes that this program starts have in common: the cluster key, and what the environment asks for; and work
//! on such a node.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use node::{Agent, ConnectedNode, NodeTrace, key};
use real::{Keys, Limits, Settings};

use command_line::failure::{Failure, Result};
use command_line::say;

/// The file of the cluster key that the command names, for all nodes of this process.
static KEY_FILE: OnceLock<PathBuf> = OnceLock::new();

/// The command names a file of the cluster key. It does so once.
pub fn name_key_file(path: &Path) {
    KEY_FILE.get_or_init(|| path.to_owned());
}

/// The file of the cluster key that the command names, if it does.
pub fn key_file() -> Option<&'static Path> {
    KEY_FILE.get().map(PathBuf::as_path)
}

/// The trace file that the command names, for all nodes of this process.
static TRACE: OnceLock<PathBuf> = OnceLock::new();

/// The command names a trace file. It does so once.
pub fn name_trace(path: &Path) {
    TRACE.get_or_init(|| path.to_owned());
}

/// What comes before that one, for as long as the command says so: another trace file, or none.
static TRACE_FOR_NOW: Mutex<Option<Option<PathBuf>>> = Mutex::new(None);

/// Has all nodes that start while something is done add to this trace, or to none, instead of the one that the command
/// names.
pub fn traced_to<T>(path: Option<&Path>, what: impl FnOnce() -> T) -> T {
    *trace_for_now() = Some(path.map(Path::to_owned));
    let done = what();
    *trace_for_now() = None;
    done
}

fn trace_for_now() -> MutexGuard<'static, Option<Option<PathBuf>>> {
    TRACE_FOR_NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trace() -> Option<PathBuf> {
    trace_for_now().clone().unwrap_or_else(|| TRACE.get().cloned())
}

/// Makes the cluster key of this user, if there is none and no file is named.
pub fn make_key() -> Result<()> {
    if let Some(path) = key::make_usual(key_file())? {
        say!("Made a cluster key, {}: agents talk to programs that have it.", path.display());
    }
    Ok(())
}

/// The settings of a new node that has disks. The first one of a user makes the cluster key.
pub fn agent_settings() -> Result<Settings> {
    make_key()?;
    settings()
}

/// The settings of a new node, with a name of its own and what the command and the environment ask for.
pub fn settings() -> Result<Settings> {
    settings_with(key::find(key_file()).map_err(|error| Failure::from(error).of_usage())?)
}

/// The same with these keys, for nodes that connect only to nodes of this process.
pub fn settings_with(keys: Keys) -> Result<Settings> {
    let asked =
        node::Settings::of_environment(Vec::new()).map_err(|error| Failure::from(error).of_usage())?;
    let limits = Limits { silence: asked.silence, recall: asked.silence, ..Limits::default() };
    Ok(Settings { driver: asked.driver, limits, ..Settings::new(node::new_node_id()?, keys) })
}

/// Connects to the agents, which all have to answer, and does `work` there.
pub fn run<T, F>(agents: Vec<Agent>, work: impl FnOnce(ConnectedNode) -> F + 'static) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    run_with_present(agents, |connection| async move {
        connection.absence()?;
        work(connection).await
    })
}

/// Connects to those of the agents that answer and does `work` there, which does not need all of them: files that have
/// no stripe on the others are whole.
pub fn run_with_present<T, F>(
    agents: Vec<Agent>,
    work: impl FnOnce(ConnectedNode) -> F + 'static,
) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    run_as(settings()?, agents, work)
}

/// Like [`run_with_present`], as the node that `settings` describe.
pub fn run_as<T, F>(
    settings: Settings,
    agents: Vec<Agent>,
    work: impl FnOnce(ConnectedNode) -> F + 'static,
) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    let started = real::run(settings, |machine| async move {
        let trace = NodeTrace::begin(&machine, trace().as_deref())?;
        let done = match ConnectedNode::to_present(&machine, &agents, key_file()).await {
            Ok(connection) => work(connection).await,
            Err(error) => Err(error.into()),
        };
        let traced = trace.map_or(Ok(()), NodeTrace::end);
        done.and_then(|done| traced.map(|()| done).map_err(Failure::from))
    });
    started.map_err(|error| Failure::new("starting this node", error))?
}

/// Puts what a job on agents has failed with into words the user knows; `what` is what it is called.
pub fn explained_job<T>(
    connection: &ConnectedNode,
    what: &str,
    outcome: std::result::Result<T, jobs::Error>,
) -> Result<T> {
    outcome.map_err(|error| match error {
        jobs::Error::FileSystem(error) => connection.explain(what, &error).into(),
        jobs::Error::WrongData(wrong) => {
            let failure = Failure::new(what, format!("read back with wrong contents: {wrong}"));
            failure.remedy("Somebody has written to it meanwhile, or an agent or a network corrupts data.")
        }
        other => Failure::new(what, other),
    })
}
