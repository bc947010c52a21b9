//! Names of the nodes of a simulated machine in traces.

use description::MachineDescription;
use machine::NodeId;
use trace::{ProcessInfo, ProcessNumber};

/// Names of the nodes of a simulated machine.
#[derive(Clone, Copy)]
pub struct NodeNames {
    compute: u64,
    all: u64,
}

impl NodeNames {
    /// Returns the names for this machine.
    pub fn of(machine: &MachineDescription) -> Self {
        NodeNames { compute: machine.nodes.compute.value.into(), all: machine.node_count().into() }
    }

    /// Returns the kind of a node, and its index among the nodes of this kind. The tracks of jobs belong
    /// to one more node, with the number after those of all real nodes.
    fn kind(self, NodeId(node): NodeId) -> (&'static str, u64) {
        match node.checked_sub(self.compute) {
            None => ("compute node", node),
            Some(past) if node >= self.all => ("jobs", past - (self.all - self.compute)),
            Some(io_node) => ("I/O node", io_node),
        }
    }

    /// Returns the node as a process of a trace.
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
