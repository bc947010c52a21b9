//! I/O nodes that crash and restart.

use std::cell::Cell;

use fs::{IoNodeSettings, serve};
use machine::{Error, Machine, NodeId};
use sim::SimMachine;

/// All I/O nodes of a simulated machine, serving.
pub(crate) struct CrashingNodes {
    io_nodes: Vec<SimMachine>,
    settings: IoNodeSettings,
    /// Number of incarnations of all nodes so far.
    started: Cell<u64>,
}

impl CrashingNodes {
    pub(crate) fn start(io_nodes: Vec<SimMachine>, settings: IoNodeSettings) -> CrashingNodes {
        let nodes = CrashingNodes { io_nodes, settings, started: Cell::new(0) };
        nodes.io_nodes.iter().for_each(|node| nodes.serve(node));
        nodes
    }

    pub(crate) fn names(&self) -> Vec<NodeId> {
        self.io_nodes.iter().map(|node| node.node()).collect()
    }

    pub(crate) fn count(&self) -> u64 {
        self.io_nodes.len() as u64
    }

    /// Crashes and restarts one of them, by index. The seed determines the surviving unflushed data.
    pub(crate) fn crash(&self, io_node: usize, seed: u64) {
        self.io_nodes[io_node].crash(seed);
        self.serve(&self.io_nodes[io_node]);
    }

    /// Converts the outcome of some work to that of its task: a failure is excused if a node has crashed before it.
    pub(crate) fn excused(&self, outcome: fs::Result<()>) -> machine::Result<()> {
        let has_crashed = self.started.get() > self.count();
        match outcome {
            Err(error) if !has_crashed => {
                Err(Error::Failed { task: "before any crash".to_owned(), why: error.to_string() }.into())
            }
            _ => Ok(()),
        }
    }

    fn serve(&self, node: &SimMachine) {
        self.started.set(self.started.get() + 1);
        let incarnation = self.started.get();
        node.spawn("I/O node", serve(node.clone(), IoNodeSettings { incarnation, ..self.settings.clone() }));
    }
}
