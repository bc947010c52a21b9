//! What nodes of a simulated machine are called in traces.

use description::MachineDescription;
use machine::NodeId;
use trace::{ProcessInfo, ProcessNumber};

/// What the nodes of a simulated machine are called.
#[derive(Clone, Copy)]
pub struct NodeNames {
    compute: u64,
    all: u64,
}

impl NodeNames {
    /// Those of the nodes of this machine.
    pub fn of(machine: &MachineDescription) -> Self {
        NodeNames { compute: machine.nodes.compute.value.into(), all: machine.node_count().into() }
    }

    /// What kind of node it is, and its number among those of its kind. What jobs did comes after all nodes.
    fn kind(self, NodeId(node): NodeId) -> (&'static str, u64) {
        match node.checked_sub(self.compute) {
            None => ("compute node", node),
            Some(past) if node >= self.all => ("jobs", past - (self.all - self.compute)),
            Some(io_node) => ("I/O node", io_node),
        }
    }

    /// A node as a process of a trace.
    pub fn process(self, node: NodeId) -> ProcessInfo {
        let (program, number) = self.kind(node);
        ProcessInfo {
            host: String::new(),
            number: ProcessNumber::Node(number as u32),
            program: program.to_owned(),
            command_line: String::new(),
            zero_unix_ns: None,
        }
    }
}
