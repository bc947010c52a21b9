//! Reports: what happens on a node that no caller is told.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use machine::{Error, NodeId};

/// Something that happened on a node while nobody waited for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Report {
    /// A detached task ended with an error or panicked.
    TaskFailed {
        /// The node.
        node: NodeId,
        /// The name the task was spawned under.
        task: &'static str,
        /// Why it failed.
        error: Error,
    },
    /// A connection was not let in.
    Refused {
        /// The node that refused.
        node: NodeId,
        /// Where the connection came from.
        from: SocketAddr,
        /// Why it was refused.
        why: String,
    },
    /// The node could not take a connection and will try again.
    CannotAccept {
        /// The node.
        node: NodeId,
        /// What the system said.
        why: String,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::TaskFailed { node, task, error } => write!(f, "{node}: task `{task}` failed: {error}"),
            Report::Refused { node, from, why } => write!(f, "{node}: refused {from}: {why}"),
            Report::CannotAccept { node, why } => write!(f, "{node}: cannot accept a connection: {why}"),
        }
    }
}

/// Where a node's reports go.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(&Report) + Send + Sync>);

impl Reporter {
    /// Reports to `hear`, on the thread of the node that reports.
    pub fn new(hear: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Reporter(Arc::new(hear))
    }

    pub(crate) fn report(&self, report: &Report) {
        (self.0)(report);
    }
}

impl Default for Reporter {
    /// Reports to the standard error stream.
    fn default() -> Self {
        Reporter::new(|report| eprintln!("starfish: {report}"))
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}
