//! A run: a machine made from its description, a seed, and what is started on it.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use description::MachineDescription;
use machine::{Duration, Instant, Result};

use crate::disk::DiskCounts;
use crate::machine::SimMachine;
use crate::world::World;

/// What a run depends on besides the description of its machine and what is started on it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where all randomness comes from.
    pub seed: u64,
    /// How objects lie on disks.
    pub layout: Layout,
    /// The unit in which objects get space on a disk: a multiple of the sector.
    pub block_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { seed: 0, layout: Layout::default(), block_bytes: 8192 }
    }
}

/// How objects lie on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each in runs as long as possible, the first from the first sector of the disk on.
    Contiguous {
        /// Space that an object gets at a time, ahead of its growth.
        reserve_bytes: u64,
    },
    /// Each block at a place of its own anywhere on the disk, drawn anew for each seed.
    Random,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::Contiguous { reserve_bytes: 16 << 20 }
    }
}

/// A simulated machine and its time.
///
/// Dropping it drops all tasks that are left.
pub struct Simulation {
    world: Rc<World>,
    nodes: Vec<SimMachine>,
    compute_count: usize,
}

impl Simulation {
    /// A machine as described, at the time zero, with empty disks.
    ///
    /// Fails if the description does not hold together, which one that was read from a text does.
    ///
    /// # Panics
    /// If [`Settings::block_bytes`] is no multiple of the sectors of the disks.
    pub fn new(
        description: &MachineDescription,
        settings: Settings,
    ) -> std::result::Result<Self, description::Error> {
        let world = Rc::new(World::new(description, &settings)?);
        let compute_count = description.nodes.compute.value as usize;
        let per_node = description.disks.per_io_node.value as usize;
        let node = |index: usize| {
            let (disks, buffers) = match index.checked_sub(compute_count) {
                None => (0..0, description.buffers.compute.value.0),
                Some(io_node) => {
                    (io_node * per_node..(io_node + 1) * per_node, description.buffers.io.value.0)
                }
            };
            SimMachine::new(world.clone(), index, disks, buffers)
        };
        let nodes = (0..description.node_count() as usize).map(node).collect();
        Ok(Simulation { nodes, world, compute_count })
    }

    /// All nodes: first the compute nodes, then the I/O nodes. Their ids count from zero in this order.
    pub fn nodes(&self) -> &[SimMachine] {
        &self.nodes
    }

    /// The compute nodes.
    pub fn compute_nodes(&self) -> &[SimMachine] {
        &self.nodes[..self.compute_count]
    }

    /// The I/O nodes.
    pub fn io_nodes(&self) -> &[SimMachine] {
        &self.nodes[self.compute_count..]
    }

    /// One node.
    ///
    /// # Panics
    /// If there is no node of this index.
    pub fn node(&self, index: usize) -> &SimMachine {
        &self.nodes[index]
    }

    /// Runs `main`, and all tasks that are or get started, until `main` is over; tasks that are left go on in
    /// the next run. Time goes on from run to run.
    ///
    /// Fails with the error of the first detached task that fails meanwhile, naming the task; if nothing is
    /// left to happen although `main` is not over (with the names of all tasks that wait); or if a task goes on
    /// and on without time passing.
    pub fn run<T>(&self, main: impl Future<Output = T>) -> Result<T> {
        let world = &self.world;
        world.executor.run(pin!(main), |kind, index| world.fire(kind, index))
    }

    /// Runs all tasks until nothing is left to happen. Tasks may still wait for each other then.
    pub fn run_until_idle(&self) -> Result<()> {
        let world = &self.world;
        world.executor.run_until_idle(|kind, index| world.fire(kind, index))
    }

    /// The time.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.world.executor.now())
    }

    /// How many timed events there have been.
    pub fn events(&self) -> u64 {
        self.world.executor.event_count()
    }

    /// A mix of the time and subject of every event so far: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.world.executor.digest()
    }

    /// What the machine has done so far.
    pub fn statistics(&self) -> Statistics {
        let World { processors, network, disks, .. } = &*self.world;
        let now = self.now();
        let nodes = (0..self.nodes.len())
            .map(|node| {
                let (threads, interrupts) = processors.busy(node);
                let (out, into) = network.held(node);
                NodeStatistics {
                    processor_threads: Duration::from_nanos(threads),
                    processor_interrupts: Duration::from_nanos(interrupts),
                    link_out: Duration::from_nanos(out),
                    link_in: Duration::from_nanos(into),
                }
            })
            .collect();
        let disk = |index| {
            let (mechanics, counts) = (disks.mechanics(index, now).unwrap_or_default(), disks.counts(index));
            DiskStatistics { mechanics, counts }
        };
        let (messages, message_bytes) = network.sent();
        Statistics {
            now,
            events: self.events(),
            messages,
            message_bytes,
            nodes,
            disks: (0..disks.count()).map(disk).collect(),
            buses: (0..disks.bus_count()).map(|bus| disks.bus_busy(bus)).collect(),
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.world.executor.clear();
    }
}

/// What a machine has done by a certain time.
///
/// Busy times count a piece of work in full when it begins, so they may run a little ahead of the time.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The time they were taken.
    pub now: Instant,
    /// Timed events.
    pub events: u64,
    /// Messages sent.
    pub messages: u64,
    /// Their bytes on the wire.
    pub message_bytes: u64,
    /// Of each node.
    pub nodes: Vec<NodeStatistics>,
    /// Of each disk: the first of the first I/O node, and so on.
    pub disks: Vec<DiskStatistics>,
    /// How long each bus was busy.
    pub buses: Vec<Duration>,
}

/// How long the parts of a node were busy.
#[derive(Clone, Copy, Debug)]
pub struct NodeStatistics {
    /// The processor, with work of threads.
    pub processor_threads: Duration,
    /// The processor, with interrupts.
    pub processor_interrupts: Duration,
    /// The link out of the node was held.
    pub link_out: Duration,
    /// The link into the node was held.
    pub link_in: Duration,
}

/// What a disk has done.
#[derive(Clone, Copy, Debug)]
pub struct DiskStatistics {
    /// Movements and times of the mechanics.
    pub mechanics: disk::Statistics,
    /// Accesses and bytes.
    pub counts: DiskCounts,
}

impl Statistics {
    /// Movements of all disks together.
    pub fn movements(&self) -> u64 {
        self.disks.iter().map(|disk| disk.mechanics.movements).sum()
    }

    /// The part of the time from the start until now in which something was `busy`.
    pub fn utilisation(&self, busy: Duration) -> f64 {
        if self.now == Instant::START { 0.0 } else { busy.as_secs_f64() / self.now.as_secs_f64() }
    }
}
