//! Reports: events on a node that no caller learns of.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use machine::{Error, KeyMismatch, NodeId};

/// Event on a node while no caller waited for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Report {
    /// A detached task ended with an error or panicked.
    TaskFailed {
        /// Node of the task.
        node: NodeId,
        /// Name given when the task was spawned.
        task: &'static str,
        /// Reason of the failure.
        error: Error,
    },
    /// A part of a task panicked, and the task continues. A request was lost, and its sender is notified.
    Defect {
        /// Node of the task.
        node: NodeId,
        /// Name of the part.
        part: &'static str,
        /// Panic as an error.
        error: Error,
    },
    /// The node refused a connection.
    Refused {
        /// Node that refused.
        node: NodeId,
        /// Address of the caller.
        from: SocketAddr,
        /// Reason of the refusal.
        why: String,
        /// Mismatch between the cluster keys of both nodes, if this is the reason.
        mismatch: Option<KeyMismatch>,
    },
    /// The node refused more connections than are reported one by one.
    RefusedMore {
        /// Node that refused.
        node: NodeId,
        /// Number of refusals that were not reported.
        count: u64,
        /// Period of these refusals.
        within: Duration,
    },
    /// Another node connected to this one, or this one to it.
    PeerCame {
        /// Reporting node.
        node: NodeId,
        /// Other node.
        peer: NodeId,
    },
    /// The connection to another node has ended.
    PeerGone {
        /// Reporting node.
        node: NodeId,
        /// Other node.
        peer: NodeId,
        /// Reason of the end.
        why: String,
    },
    /// A frame arrived changed, repeated or out of order. The connection ends.
    Altered {
        /// Receiving node.
        node: NodeId,
        /// Sending node.
        peer: NodeId,
    },
    /// A disk operation failed because the disk is full, its data are damaged, or the disk fails. The caller gets the
    /// same error.
    DiskFailed {
        /// Node of the disk.
        node: NodeId,
        /// Error, with the object concerned.
        error: Error,
    },
    /// The metadata store is not in the state in which the node left it: the last operations on names may be lost.
    MetadataChanged {
        /// Node of the store.
        node: NodeId,
        /// Message for the user: the store, and possible reasons.
        text: String,
    },
    /// The disk is read-only.
    ReadOnly {
        /// Node of the disk.
        node: NodeId,
        /// Message for the user that names the disk.
        text: String,
    },
    /// Reads at a disk are delayed by many writes of other nodes. Reported again only after the delays have stopped for
    /// a while.
    ReadsHeldUp {
        /// Node of the disk.
        node: NodeId,
        /// Name of the disk for the user.
        disk: String,
        /// Node with the most waiting writes.
        by: NodeId,
        /// Number of waiting writes of that node.
        writes: u64,
    },
    /// The node could not accept a connection and will try again.
    CannotAccept {
        /// Listening node.
        node: NodeId,
        /// Error of the operating system.
        why: String,
    },
}

impl Report {
    /// Returns true if a caller of this node or a peer learns of the event anyway, so that only a log needs it.
    pub fn is_reported_elsewhere(&self) -> bool {
        matches!(
            self,
            Report::PeerCame { .. }
                | Report::PeerGone { .. }
                | Report::DiskFailed { .. }
                | Report::ReadsHeldUp { .. }
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::TaskFailed { node, task, error } => write!(f, "{node}: task `{task}` failed: {error}"),
            Report::Defect { node, part, error } => write!(f, "{node}: a defect in `{part}`: {error}"),
            Report::Refused { node, from, why, .. } => write!(f, "{node}: refused {from}: {why}"),
            Report::RefusedMore { node, count, within } => {
                write!(f, "{node}: refused {count} more within {} s", within.as_secs())
            }
            Report::PeerCame { node, peer } => write!(f, "{node}: {peer} connected"),
            Report::PeerGone { node, peer, why } => write!(f, "{node}: {peer} disconnected: {why}"),
            Report::Altered { node, peer } => {
                write!(f, "{node}: a message of {peer} was altered, lost or repeated in transit")
            }
            Report::DiskFailed { node, error } => write!(f, "{node}: {error}"),
            Report::ReadOnly { node, text } | Report::MetadataChanged { node, text } => {
                write!(f, "{node}: {text}")
            }
            Report::ReadsHeldUp { node, disk, by, writes } => {
                write!(f, "{node}: reads from {disk} are delayed by {writes} writes of {by}")
            }
            Report::CannotAccept { node, why } => write!(f, "{node}: cannot accept a connection: {why}"),
        }
    }
}

/// Destination of a node's reports.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(&Report) + Send + Sync>);

impl Reporter {
    /// Creates a reporter with a callback, which runs on the thread of the reporting node.
    pub fn new(sink: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Reporter(Arc::new(sink))
    }

    /// Reports an event.
    pub fn report(&self, report: &Report) {
        (self.0)(report);
    }
}

impl Default for Reporter {
    /// Writes reports to the standard error stream, except events that a caller or peer learns of.
    fn default() -> Self {
        Reporter::new(|report| {
            if !report.is_reported_elsewhere() {
                // Ignore errors: a node serves even if its standard error is closed.
                let _ = writeln!(io::stderr(), "starfish: {report}");
            }
        })
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}
