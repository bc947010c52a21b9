//! Simulated node, as the file system sees it.

mod disk;
mod metadata;
mod net;
mod other_thread;

use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use description::MachineDescription;
use machine::{BufferPool, Computer, Duration, Instant, Machine, Net as _, NodeId, NodeNotes, Result, Work};

use crate::random::RandomStream;
use crate::sleep::Sleep;
use crate::trace::ProcessorActivity;
use crate::world::World;

pub use disk::Disk;
pub use metadata::Metadata;
pub use net::Net;

/// Node of a simulated machine.
#[derive(Clone)]
pub struct SimMachine {
    node: Rc<Node>,
}

struct Node {
    world: Rc<World>,
    index: usize,
    net: Net,
    disks: Vec<Disk>,
    metadata: Option<Metadata>,
    buffers: BufferPool,
    notes: Rc<NodeNotes>,
}

impl SimMachine {
    pub(crate) fn new(
        world: Rc<World>,
        index: usize,
        disks: Range<usize>,
        description: &MachineDescription,
        buffer_bytes: u64,
    ) -> Self {
        // Only I/O nodes have disks and a metadata store.
        let metadata = description.metadata.as_ref().filter(|_| !disks.is_empty());
        let node = Node {
            index,
            net: Net::new(world.clone(), index),
            disks: disks.map(|disk| Disk::new(world.clone(), index, disk, description)).collect(),
            metadata: metadata.map(|costs| Metadata::new(world.clone(), index, costs)),
            buffers: BufferPool::new(buffer_bytes),
            notes: world.notes[index].clone(),
            world,
        };
        SimMachine { node: Rc::new(node) }
    }

    /// Kills the process of the node, and restarts it without any task. Its tasks are dropped and messages to it are
    /// lost. Its peers see a disconnect and can send to it again. Its disks and its metadata store keep all completed
    /// changes, which a later [`crash`](Self::crash) may still undo: the operating system has them.
    ///
    /// A task of the node itself must not call this.
    pub fn kill(&self) {
        self.end();
        let Node { world, index, disks, metadata, .. } = &*self.node;
        disks.iter().for_each(|disk| world.disks.end_process(disk.index()));
        world.network.reopen(*index);
        metadata.iter().for_each(Metadata::kill);
    }

    /// Kills the process of the node for good. Its tasks are dropped and messages to it are lost. Its peers see a
    /// disconnect, and cannot send to it again.
    ///
    /// A task of the node itself must not call this.
    pub fn end(&self) {
        let Node { world, index, net, .. } = &*self.node;
        world.executor.end_tasks_of(*index as u32);
        net.close();
    }

    /// Blocks messages of this node to another one. They arrive after [`unblock`](Self::unblock), in order.
    pub fn block(&self, to: NodeId) {
        self.node.world.network.block(self.node.index, to.0 as usize);
    }

    /// Ends [`block`](Self::block).
    pub fn unblock(&self, to: NodeId) {
        let World { executor, network, .. } = &*self.node.world;
        network.unblock(executor, self.node.index, to.0 as usize);
    }

    /// Resets the connection of this node to another one: messages in flight between them are lost, and both see a
    /// disconnect.
    pub fn reset(&self, other: NodeId) {
        let World { executor, network, .. } = &*self.node.world;
        network.reset(executor, self.node.index, other.0 as usize);
    }

    /// Crashes the node, as a loss of power does, and restarts it without any task. Its tasks are dropped and messages
    /// to it are lost. Its peers see a disconnect and can send to it again. Its disks keep all flushed data, and a
    /// choice of unflushed changes drawn from `seed` if the crash was [expected](crate::Simulation::expect_crashes).
    /// Its metadata store does the same, transaction by transaction.
    ///
    /// A task of the node itself must not call this.
    pub fn crash(&self, seed: u64) {
        self.kill();
        let Node { world, index, disks, metadata, .. } = &*self.node;
        for disk in disks {
            let mut stream = RandomStream::new(seed, &format!("crash of disk {}", disk.index()));
            world.disks.crash(disk.index(), &mut stream);
        }
        if let Some(metadata) = metadata {
            metadata.crash(&mut RandomStream::new(seed, &format!("crash of metadata of node {index}")));
        }
    }
}

impl Machine for SimMachine {
    type Net = Net;
    type Disk = Disk;
    type Metadata = Metadata;

    fn node(&self) -> NodeId {
        NodeId(self.node.index as u64)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.node.world.executor.now())
    }

    /// Returns the time since the machine started, as if it had started at the start of 1970.
    fn date(&self) -> Duration {
        Duration::from_nanos(self.node.world.executor.now())
    }

    /// Returns the node as a computer with one processor: no two simulated nodes share a computer.
    fn computer(&self) -> Option<Computer> {
        let done = self.node.world.processors.statistics(self.node.index);
        let worked = done.threads + done.interrupts;
        Some(Computer { id: self.node.index as u64, processors: 1, worked, worked_for_node: worked })
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        Sleep::until(&self.node.world.executor, deadline.as_nanos())
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static) {
        self.node.world.executor.spawn(name, self.node.index as u32, Box::pin(task));
    }

    #[inline(always)]
    fn compute(&self, work: Work) -> impl Future<Output = ()> {
        let World { executor, processors, costs, .. } = &*self.node.world;
        processors.compute(executor, self.node.index, ProcessorActivity::Work(work), costs.of(work))
    }

    fn net(&self) -> &Net {
        &self.node.net
    }

    fn disks(&self) -> &[Disk] {
        &self.node.disks
    }

    fn metadata(&self) -> Option<&Metadata> {
        self.node.metadata.as_ref()
    }

    fn buffers(&self) -> &BufferPool {
        &self.node.buffers
    }

    #[inline(always)]
    fn notes(&self) -> &NodeNotes {
        &self.node.notes
    }
}
