//! I/O node of the real machine: the core of every agent, in the program and in tests.

use fs::{IoNodeCounts, IoNodeService, IoNodeSettings};
use real::RealMachine;

/// I/O node that serves requests and counts them.
///
/// This is [`IoNodeService`] instantiated for the real machine. The instance is in this crate because compiling it
/// takes long: programs and tests share it.
#[derive(Clone)]
pub struct AgentService(IoNodeService<RealMachine>);

impl AgentService {
    /// Returns an I/O node of this machine, which does not serve yet.
    pub fn new(machine: RealMachine, settings: IoNodeSettings) -> Self {
        AgentService(IoNodeService::new(machine, settings))
    }

    /// Serves until the node's network is closed. Then all accepted data are on its disks.
    ///
    /// # Errors
    /// If the node cannot continue.
    pub async fn serve(&self) -> machine::Result<()> {
        self.0.serve().await
    }

    /// Returns the node's counters and its present state, within about a second, even if disks do not answer.
    pub async fn counts(&self) -> IoNodeCounts {
        self.0.counts().await
    }

    /// True if this node is the metadata server and the disks may hold contents of removed files that no client has
    /// open.
    pub async fn has_removed_files(&self) -> bool {
        self.0.has_removed_files().await
    }
}

/// Serves as [`AgentService::serve`] does.
///
/// # Errors
/// If the node cannot continue.
pub async fn serve(machine: RealMachine, settings: IoNodeSettings) -> machine::Result<()> {
    AgentService::new(machine, settings).serve().await
}
