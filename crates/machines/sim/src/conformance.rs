//! Simulated nodes on which tests check laws and promises.

use std::future::Future;

use description::{Description, MachineDescription, MetadataCosts, Sourced, Time};
use machine::conformance::{POOL_BYTES, Testbed};
use machine::{Duration, Error, Machine};

use crate::machine::SimMachine;
use crate::settings::Settings;
use crate::simulation::Simulation;

/// Testbed that runs each test on a machine with the required number of I/O nodes. Each I/O node has one disk and a
/// metadata store.
pub struct Simulated {
    /// Description of the machine, in which the number of I/O nodes is replaced.
    pub description: MachineDescription,
    /// Settings of the simulation.
    pub settings: Settings,
    /// Limit of the simulated time of a test, if any; a longer test fails.
    pub limit: Option<Duration>,
}

impl Simulated {
    /// Returns a testbed with the named machine, without a time limit.
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

/// Returns metadata costs for machines whose description has none. With costs, operations take time and therefore
/// interleave with others, instead of completing in one instant.
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

/// Makes the run fail if it takes longer than `limit`. Has no effect if `node` crashes.
pub fn end_after(node: &SimMachine, limit: Duration) {
    let watcher = node.clone();
    node.spawn("the end of time", async move {
        watcher.sleep_until(watcher.now() + limit).await;
        Err(Error::Failed { task: "the run".into(), why: format!("it has not ended after {limit}") }.into())
    });
}
