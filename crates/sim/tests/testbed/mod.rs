//! Simulated nodes to check laws and promises on.

use std::future::Future;

use description::MachineDescription;
use machine::Result;
use machine::conformance::{POOL_BYTES, Testbed};
use sim::{Settings, SimMachine, Simulation};

/// Each test runs on the I/O nodes of such a machine, as many as it wants.
pub(crate) struct Simulated {
    pub(crate) description: MachineDescription,
    pub(crate) settings: Settings,
}

impl Testbed for Simulated {
    type Machine = SimMachine;

    fn run<T, F>(&self, nodes: usize, test: impl FnOnce(Vec<SimMachine>) -> F) -> Result<T>
    where
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        let mut description = self.description.clone();
        description.nodes.io.value = nodes as u32;
        description.disks.per_io_node.value = 1;
        description.buffers.io.value.0 = POOL_BYTES;
        let simulation = Simulation::new(&description, self.settings).expect("a sound description");
        simulation.run(test(simulation.io_nodes().to_vec()))
    }
}
