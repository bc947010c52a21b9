//! Run of a simulated machine: created from a description and a seed, with the tasks that are started on the machine.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use description::MachineDescription;
use machine::{Instant, Machine, Recorder, Result};

use crate::machine::{Metadata, SimMachine};
use crate::network::Network;
use crate::processor::Processors;
use crate::settings::Settings;
use crate::statistics::{NodeStatistics, ProcessorStatistics, Statistics};
use crate::trace::Track;
use crate::world::World;

/// Simulated machine and its time.
///
/// Dropping the simulation drops all remaining tasks.
pub struct Simulation {
    world: Rc<World>,
    nodes: Vec<SimMachine>,
    compute_count: usize,
}

impl Simulation {
    /// Returns a machine with this description, at time zero, with empty disks.
    ///
    /// # Panics
    /// If [`Settings::block_bytes`] is no multiple of the sectors of the disks.
    pub fn new(description: &MachineDescription, settings: Settings) -> Self {
        let world = Rc::new(World::new(description, &settings));
        let compute_count = description.nodes.compute.value as usize;
        let per_node = description.disks.per_io_node.value as usize;
        let node = |index: usize| {
            let (world, buffer_bytes) = (world.clone(), settings.buffer_bytes);
            match index.checked_sub(compute_count) {
                None => SimMachine::new(world, index, 0..0, description, buffer_bytes),
                Some(io_node) => {
                    let disks = io_node * per_node..(io_node + 1) * per_node;
                    SimMachine::new(world, index, disks, description, buffer_bytes)
                }
            }
        };
        let nodes = (0..description.node_count() as usize).map(node).collect();
        Simulation { nodes, world, compute_count }
    }

    /// Returns all nodes: first the compute nodes, then the I/O nodes. Their ids count from zero in this order.
    pub fn nodes(&self) -> &[SimMachine] {
        &self.nodes
    }

    /// Returns the compute nodes.
    pub fn compute_nodes(&self) -> &[SimMachine] {
        &self.nodes[..self.compute_count]
    }

    /// Returns the I/O nodes.
    pub fn io_nodes(&self) -> &[SimMachine] {
        &self.nodes[self.compute_count..]
    }

    /// Returns the node `index`.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn node(&self, index: usize) -> &SimMachine {
        &self.nodes[index]
    }

    /// Begins to record the changes that a [crash](SimMachine::crash) can undo: unflushed data and metadata. Call it
    /// before objects and metadata are created.
    pub fn expect_crashes(&self) {
        self.world.disks.expect_crashes();
        self.nodes.iter().filter_map(Machine::metadata).for_each(Metadata::expect_crashes);
    }

    /// Runs `main` and all other tasks until `main` completes. In the next run, the remaining tasks and the time
    /// continue.
    ///
    /// Fails with the error of the first detached task that fails during the run, naming the task. Also fails if no
    /// event is left although `main` is not complete (the error names the waiting tasks), or if a task is polled
    /// endlessly while time does not advance.
    pub fn run<T>(&self, main: impl Future<Output = T>) -> Result<T> {
        self.world.executor.run(pin!(main), self.world.events())
    }

    /// Runs all tasks until no event is left. Some tasks can still wait for each other afterwards.
    pub fn run_until_idle(&self) -> Result<()> {
        self.world.executor.run_until_idle(self.world.events())
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.world.executor.now())
    }

    /// Returns the number of timed events until now.
    pub fn events(&self) -> u64 {
        self.world.executor.event_count()
    }

    /// Returns a hash of the time and target of every event until now: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.world.executor.digest()
    }

    /// Sends all further events on nodes and in the parts of the machine to `recorder`, until
    /// [`stop_recording`](Self::stop_recording).
    ///
    /// Recording changes neither events nor their times. Work in flight at the time of this call is not recorded.
    pub fn record(&self, recorder: Rc<RefCell<dyn Recorder>>) {
        let World { executor, disks, notes, .. } = &*self.world;
        disks.start_recording();
        executor.trace_switch().start(recorder.clone(), &self.parts());
        notes.iter().for_each(|notes| notes.record(recorder.clone()));
    }

    /// Returns the parts of each node that record events.
    fn parts(&self) -> Vec<Vec<Track>> {
        let io_nodes = self.io_nodes().len();
        let of = |node: usize, all: usize| {
            let count = all / io_nodes.max(1);
            node.checked_sub(self.compute_count)
                .map_or(0..0, |io_node| io_node * count..(io_node + 1) * count)
        };
        let parts = |node: usize| {
            let own = [
                Track::Threads(node),
                Track::ThreadsWaiting(node),
                Track::Interrupts(node),
                Track::LinkOut(node),
                Track::LinkIn(node),
            ];
            let disks = of(node, self.world.disks.count());
            let disks = disks.flat_map(|disk| [Track::Disk(disk), Track::Mechanics(disk)]);
            let buses = of(node, self.world.disks.bus_count()).map(Track::Bus);
            own.into_iter().chain(buses).chain(disks).collect()
        };
        (0..self.nodes.len()).map(parts).collect()
    }

    /// Sends the remaining events and drops the recorder. Work in flight is not recorded.
    pub fn stop_recording(&self) {
        let World { executor, disks, notes, .. } = &*self.world;
        let trace = executor.trace_switch();
        disks.stop_recording(trace, self.now());
        trace.stop();
        notes.iter().for_each(|notes| notes.stop());
    }

    /// Returns the statistics of the machine until now.
    ///
    /// Their longest waits are those since the previous call; see [`crate::Waits::longest`].
    pub fn statistics(&self) -> Statistics {
        let World { processors, network, disks, .. } = &*self.world;
        let now = self.now();
        let (messages, message_bytes) = network.sent();
        Statistics {
            elapsed: now.since(Instant::START),
            events: self.events(),
            messages,
            message_bytes,
            nodes: (0..self.nodes.len()).map(|node| node_statistics(processors, network, node)).collect(),
            disks: (0..disks.count()).map(|disk| disks.statistics(disk, now)).collect(),
            buses: (0..disks.bus_count()).map(|bus| disks.bus_statistics(bus)).collect(),
            router_links: network.router_links(),
        }
    }
}

fn node_statistics(processors: &Processors, network: &Network, node: usize) -> NodeStatistics {
    let ProcessorStatistics { threads, interrupts, thread_waits, interrupt_waits } =
        processors.statistics(node);
    let (link_out, link_in) = network.links(node);
    NodeStatistics {
        processor_threads: threads,
        processor_interrupts: interrupts,
        thread_waits,
        interrupt_waits,
        link_out,
        link_in,
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.world.executor.clear();
    }
}
