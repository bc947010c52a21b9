//! Reports: events on a node of which no caller is told.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use machine::{Error, KeyMismatch, NodeId};

/// Something that happened on a node while no caller waited for it.
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
    /// A part of a task panicked, and the task goes on: a request was lost, and its sender is told.
    Defect {
        /// The node.
        node: NodeId,
        /// What the part is called.
        part: &'static str,
        /// The panic.
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
        /// What is wrong with its cluster key or this node's, if that is why.
        mismatch: Option<KeyMismatch>,
    },
    /// More connections were not let in than are reported one by one.
    RefusedMore {
        /// The node that refused.
        node: NodeId,
        /// How many were not reported.
        count: u64,
        /// In how long.
        within: Duration,
    },
    /// Another node has called this one, or was called.
    PeerCame {
        /// The node.
        node: NodeId,
        /// The other.
        peer: NodeId,
    },
    /// The connection to another node is over.
    PeerGone {
        /// The node.
        node: NodeId,
        /// The other.
        peer: NodeId,
        /// Why it is over.
        why: String,
    },
    /// A frame came changed, repeated or out of order. The connection ends.
    Altered {
        /// The node that received it.
        node: NodeId,
        /// The node that sent it.
        peer: NodeId,
    },
    /// A disk could not do what it was asked for: it is full, what lies on it is damaged, or it fails. Who asked is
    /// told, too.
    DiskFailed {
        /// The node.
        node: NodeId,
        /// What went wrong, with which object.
        error: Error,
    },
    /// The store of metadata is not as the node has left it: what was done with names last may be lost.
    MetadataChanged {
        /// The node.
        node: NodeId,
        /// Which store, and why that may be, for a person to read.
        text: String,
    },
    /// Nothing can be written to a disk.
    ReadOnly {
        /// The node.
        node: NodeId,
        /// Which disk, for a person to read.
        text: String,
    },
    /// Reads at a disk wait while many writes of others go on. It is reported again when that has been over for a
    /// while.
    ReadsHeldUp {
        /// The node.
        node: NodeId,
        /// Which disk, for a person to read.
        disk: String,
        /// The node that has most writes waiting.
        by: NodeId,
        /// How many writes that node has waiting.
        writes: u64,
    },
    /// The node could not take a connection and will try again.
    CannotAccept {
        /// The node.
        node: NodeId,
        /// What the system said.
        why: String,
    },
}

impl Report {
    /// Whether a caller of this node or a peer is told anyway, so that only a log is interested.
    pub fn is_told_elsewhere(&self) -> bool {
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
            Report::PeerCame { node, peer } => write!(f, "{node}: {peer} has come"),
            Report::PeerGone { node, peer, why } => write!(f, "{node}: {peer} is gone: {why}"),
            Report::Altered { node, peer } => {
                write!(f, "{node}: a message of {peer} was changed, lost or repeated on its way")
            }
            Report::DiskFailed { node, error } => write!(f, "{node}: {error}"),
            Report::ReadOnly { node, text } | Report::MetadataChanged { node, text } => {
                write!(f, "{node}: {text}")
            }
            Report::ReadsHeldUp { node, disk, by, writes } => {
                write!(f, "{node}: reads from {disk} wait behind {writes} writes of {by}")
            }
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

    /// Reports something.
    pub fn report(&self, report: &Report) {
        (self.0)(report);
    }
}

impl Default for Reporter {
    /// Reports to the standard error stream what no caller or peer is told.
    fn default() -> Self {
        Reporter::new(|report| {
            if !report.is_told_elsewhere() {
                // A node serves whether or not somebody reads that.
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
