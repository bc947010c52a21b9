//! Simulated machines drawn from seeds.

use std::future::Future;

use description::{Description, MachineDescription};
use machine::conformance::{POOL_BYTES, Testbed};
use machine::{Duration, Error, Machine, Result};
use sim::{Layout, Settings, SimMachine, Simulation};

use crate::draw::Draw;

/// Machines that differ in what takes time: nothing, messages, disks.
const MACHINES: [&str; 4] = ["golden", "cluster-switch", "starfish-1996", "pdiol-2003"];

/// A run that takes longer, in simulated time, goes on for ever. Those that come to an end take minutes at most: on the
/// slowest of disks.
const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The unit in which objects get space on a disk.
pub(crate) const BLOCK: u64 = 512;

/// One of the machines, with processors of another speed, so that what is at once on one is in turn on another.
pub(crate) fn drawn_machine(draw: &mut Draw) -> MachineDescription {
    let mut description = MachineDescription::load(draw.one_of(&MACHINES)).expect("built in");
    let hertz = &mut description.processor.clock.value.0;
    *hertz = *hertz / 8 * (1 << draw.below(7));
    description
}

/// How objects lie on its disks.
pub(crate) fn drawn_settings(draw: &mut Draw, seed: u64) -> Settings {
    let layout = draw.one_of(&[Layout::default(), Layout::Random]);
    Settings { layout, block_bytes: BLOCK, seed }
}

/// A machine drawn from a seed, of which each test gets the I/O nodes, as many as it wants.
pub(crate) struct Drawn {
    description: MachineDescription,
    settings: Settings,
}

impl Drawn {
    pub(crate) fn of(seed: u64) -> Self {
        // Not the stream that the operations are drawn from.
        let mut draw = Draw::of(!seed);
        Drawn { description: drawn_machine(&mut draw), settings: drawn_settings(&mut draw, seed) }
    }
}

impl Testbed for Drawn {
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
        end_at_the_limit(simulation.node(0));
        simulation.run(test(simulation.io_nodes().to_vec()))
    }
}

/// Lets a run that goes on for ever fail, as long as this node does not crash.
pub(crate) fn end_at_the_limit(node: &SimMachine) {
    let watcher = node.clone();
    node.spawn("the end of time", async move {
        watcher.sleep_until(watcher.now() + LIMIT).await;
        Err(Error::Failed { task: "the run".into(), why: format!("it is not over after {LIMIT}") }.into())
    });
}
