//! Simulated nodes to check laws and promises on.

use std::future::Future;

use description::{Description, MachineDescription, MetadataCosts, Sourced, Time};
use machine::conformance::{POOL_BYTES, Testbed};
use machine::{Duration, Error, Machine};

use crate::machine::SimMachine;
use crate::settings::Settings;
use crate::simulation::Simulation;

/// A machine of which each test gets the I/O nodes, as many as it wants, each with one disk and a store of metadata.
pub struct Simulated {
    /// The machine, but for the number of its I/O nodes.
    pub description: MachineDescription,
    /// How it is simulated.
    pub settings: Settings,
    /// A test that takes longer, in simulated time, fails, if there is a limit.
    pub limit: Option<Duration>,
}

impl Simulated {
    /// A machine by its name, on which a test may take as long as it likes.
    pub fn of(machine: &str, settings: Settings) -> Result<Self, description::Error> {
        Ok(Simulated { description: MachineDescription::load(machine)?, settings, limit: None })
    }
}

impl Testbed for Simulated {
    type Machine = SimMachine;

    fn run<T, F>(&self, nodes: usize, test: impl FnOnce(Vec<SimMachine>) -> F) -> machine::Result<T>
    where
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        let mut description = self.description.clone();
        description.nodes.io.value = nodes as u32;
        description.disks.per_io_node.value = 1;
        description.metadata.get_or_insert_with(metadata_costs);
        let simulation =
            Simulation::new(&description, Settings { buffer_bytes: POOL_BYTES, ..self.settings });
        if let Some(limit) = self.limit {
            end_after(simulation.node(0), limit);
        }
        simulation.run(test(simulation.io_nodes().to_vec()))
    }
}

/// What metadata take on machines whose description says nothing of them, so that what is done at once elsewhere is
/// done in turn here.
pub fn metadata_costs() -> MetadataCosts {
    let time = |nanoseconds| Sourced::new(Time(Duration::from_nanos(nanoseconds)), "for tests");
    MetadataCosts {
        hand_over: time(10_000),
        commit: time(3_000),
        transaction: time(20_000),
        entry: time(2_000),
        change: time(2_000),
        make_object: time(5_000),
        find_object: time(2_000),
        remove_object: time(1_000),
        flush: time(1_000_000),
    }
}

/// Lets a run that goes on for longer fail, as long as this node does not crash.
pub fn end_after(node: &SimMachine, limit: Duration) {
    let watcher = node.clone();
    node.spawn("the end of time", async move {
        watcher.sleep_until(watcher.now() + limit).await;
        Err(Error::Failed { task: "the run".into(), why: format!("it is not over after {limit}") }.into())
    });
}
