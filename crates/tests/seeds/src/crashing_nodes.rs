//! I/O nodes that fail and restart.

use std::cell::Cell;

use fs::{IoNodeSettings, serve};
use machine::{Error, Machine, NodeId};
use promises::faulty::{Faults, Faulty};
use sim::SimMachine;

use crate::formatted::{FormattedNode, MediumFaults};

/// All I/O nodes of a simulated machine, serving, each with faults on demand.
pub(crate) struct CrashingNodes {
    io_nodes: Vec<SimMachine>,
    formatted: Vec<FormattedNode>,
    faulty: Vec<Faulty<FormattedNode>>,
    settings: IoNodeSettings,
    /// Number of incarnations of all nodes so far.
    started: Cell<u64>,
}

impl CrashingNodes {
    /// Starts the I/O nodes. If `is_formatted`, their disks have the format of real disks.
    pub(crate) fn start(
        io_nodes: Vec<SimMachine>,
        settings: IoNodeSettings,
        is_formatted: bool,
    ) -> CrashingNodes {
        let formatted: Vec<FormattedNode> =
            io_nodes.iter().map(|node| FormattedNode::new(node.clone(), is_formatted)).collect();
        let faulty = Faulty::all(formatted.clone());
        let nodes = CrashingNodes { io_nodes, formatted, faulty, settings, started: Cell::new(0) };
        nodes.faulty.iter().for_each(|node| nodes.serve(node));
        nodes
    }

    pub(crate) fn names(&self) -> Vec<NodeId> {
        self.io_nodes.iter().map(|node| node.node()).collect()
    }

    pub(crate) fn count(&self) -> u64 {
        self.io_nodes.len() as u64
    }

    pub(crate) fn node(&self, io_node: usize) -> &SimMachine {
        &self.io_nodes[io_node]
    }

    /// Returns the faults of a node, which outlive it.
    pub(crate) fn faults(&self, io_node: usize) -> &Faults {
        self.faulty[io_node].faults()
    }

    /// Cuts the power of one of them, by index, and restarts it. The seed determines the surviving unflushed data.
    pub(crate) fn crash(&self, io_node: usize, seed: u64) {
        self.io_nodes[io_node].crash(seed);
        self.restart(io_node);
    }

    /// Kills the process of one of them and restarts it.
    pub(crate) fn kill(&self, io_node: usize) {
        self.io_nodes[io_node].kill();
        self.restart(io_node);
    }

    /// Damages stored data of one of them, drawn from a seed.
    pub(crate) async fn damage(&self, io_node: usize, seed: u64) -> machine::Result<()> {
        self.formatted[io_node].disk().damage(seed).await
    }

    /// Returns the faults of the medium of a node.
    pub(crate) fn medium(&self, io_node: usize) -> &MediumFaults {
        self.formatted[io_node].disk().faults()
    }

    fn restart(&self, io_node: usize) {
        self.faults(io_node).restart();
        self.formatted[io_node].restart();
        self.serve(&self.faulty[io_node]);
    }

    fn serve(&self, node: &Faulty<FormattedNode>) {
        self.started.set(self.started.get() + 1);
        let incarnation = self.started.get();
        let settings = IoNodeSettings { incarnation, ..self.settings.clone() };
        let serving = serve(node.clone(), settings);
        node.spawn("I/O node", async move {
            serving
                .await
                .map_err(|error| Error::Failed { task: "I/O node".into(), why: error.to_string() }.into())
        });
    }
}
