//! An I/O node of the real machine: what every agent runs, the program's and those of tests.

use fs::{IoNodeCounts, IoNodeService, IoNodeSettings};
use real::RealMachine;

/// An I/O node, which serves and tells what it has done.
///
/// It is [`IoNodeService`] for this machine, of which much code is made: here once, not in each program and test.
#[derive(Clone)]
pub struct AgentService(IoNodeService<RealMachine>);

impl AgentService {
    /// An I/O node of this machine, which does not serve yet.
    pub fn new(machine: RealMachine, settings: IoNodeSettings) -> Self {
        AgentService(IoNodeService::new(machine, settings))
    }

    /// Serves until the node's network is closed; all that was accepted is on its disks then.
    ///
    /// # Errors
    /// If the node cannot go on.
    pub async fn serve(&self) -> machine::Result<()> {
        self.0.serve().await
    }

    /// What the node has done, and its present state. Answers within about a second, even if disks do not answer.
    pub async fn counts(&self) -> IoNodeCounts {
        self.0.counts().await
    }

    /// Returns true if this node is the metadata server and the disks may hold contents of removed files that no client
    /// has open.
    pub async fn has_removed_files(&self) -> bool {
        self.0.has_removed_files().await
    }
}

/// Serves as [`AgentService::serve`] does.
///
/// # Errors
/// If the node cannot go on.
pub async fn serve(machine: RealMachine, settings: IoNodeSettings) -> machine::Result<()> {
    AgentService::new(machine, settings).serve().await
}
