//! The simulated machine keeps the laws of the seam, on a machine without costs and on a modelled one.

use std::future::Future;

use description::{Description, MachineDescription};
use machine::Result;
use machine::conformance::{POOL_BYTES, Testbed, check_all};
use sim::{Layout, Settings, SimMachine, Simulation};

struct Simulated {
    description: MachineDescription,
    settings: Settings,
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
        description.buffers.io.value.0 = POOL_BYTES;
        let simulation = Simulation::new(&description, self.settings).expect("a sound description");
        simulation.run(test(simulation.io_nodes().to_vec()))
    }
}

fn check(machine: &str, layout: Layout) {
    let description = MachineDescription::load(machine).expect("built in");
    check_all(&Simulated { description, settings: Settings { layout, ..Settings::default() } });
}

#[test]
fn a_machine_without_costs_keeps_the_laws() {
    check("golden", Layout::default());
}

#[test]
fn the_starfish_machine_keeps_the_laws() {
    check("starfish-1996", Layout::default());
    check("starfish-1996", Layout::Random);
}

#[test]
fn a_cluster_keeps_the_laws() {
    check("cluster-switch", Layout::Random);
}
