//! I/O nodes that crash and are started anew.

use std::cell::Cell;

use fs::{IoNodeSettings, serve};
use machine::{Machine, NodeId};
use sim::SimMachine;

/// All I/O nodes of a simulated machine, serving.
pub(crate) struct CrashingNodes {
    io_nodes: Vec<SimMachine>,
    settings: IoNodeSettings,
    incarnation: Cell<u64>,
}

impl CrashingNodes {
    pub(crate) fn start(io_nodes: Vec<SimMachine>, settings: IoNodeSettings) -> CrashingNodes {
        let nodes = CrashingNodes { io_nodes, settings, incarnation: Cell::new(0) };
        nodes.io_nodes.iter().for_each(|node| nodes.serve(node));
        nodes
    }

    pub(crate) fn names(&self) -> Vec<NodeId> {
        self.io_nodes.iter().map(|node| node.node()).collect()
    }

    pub(crate) fn count(&self) -> u64 {
        self.io_nodes.len() as u64
    }

    /// Crashes one of them, by number, and starts it anew; of what it had not flushed the seed says what is left.
    pub(crate) fn crash(&self, io_node: usize, seed: u64) {
        self.io_nodes[io_node].crash(seed);
        self.serve(&self.io_nodes[io_node]);
    }

    fn serve(&self, node: &SimMachine) {
        let incarnation = self.incarnation.replace(self.incarnation.get() + 1);
        node.spawn("I/O node", serve(node.clone(), IoNodeSettings { incarnation, ..self.settings.clone() }));
    }
}
