//! A simulated node, as the file system sees it.

use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use machine::{BufferPool, Instant, Machine, NodeId, Result, Work};

use crate::disk::Disk;
use crate::network::Net;
use crate::sleep::Sleep;
use crate::world::World;

/// One node of a simulated machine.
#[derive(Clone)]
pub struct SimMachine {
    node: Rc<Node>,
}

struct Node {
    world: Rc<World>,
    index: usize,
    net: Net,
    disks: Vec<Disk>,
    buffers: BufferPool,
}

impl SimMachine {
    pub(crate) fn new(world: Rc<World>, index: usize, disks: Range<usize>, buffer_bytes: u64) -> Self {
        let node = Node {
            index,
            net: Net::new(world.clone(), index),
            disks: disks.map(|disk| Disk::new(world.clone(), disk)).collect(),
            buffers: BufferPool::new(buffer_bytes),
            world,
        };
        SimMachine { node: Rc::new(node) }
    }
}

impl Machine for SimMachine {
    type Net = Net;
    type Disk = Disk;

    fn node(&self) -> NodeId {
        NodeId(self.node.index as u64)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.node.world.executor.now())
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
        processors.compute(executor, self.node.index, work, costs.of(work))
    }

    fn net(&self) -> &Net {
        &self.node.net
    }

    fn disks(&self) -> &[Disk] {
        &self.node.disks
    }

    fn buffers(&self) -> &BufferPool {
        &self.node.buffers
    }
}
