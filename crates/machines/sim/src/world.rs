//! All parts of one simulated machine, and the dispatch of timed events to them.

use std::rc::Rc;

use description::MachineDescription;
use machine::{NodeId, NodeNotes};

use crate::agenda::Kind;
use crate::disk::Disks;
use crate::executor::{Executor, Waiter};
use crate::network::Network;
use crate::processor::{Costs, Processors};
use crate::settings::Settings;

pub(crate) struct World {
    pub(crate) executor: Rc<Executor>,
    pub(crate) costs: Costs,
    pub(crate) processors: Processors,
    pub(crate) network: Network,
    pub(crate) disks: Disks,
    /// Recorder of events of each node.
    pub(crate) notes: Vec<Rc<NodeNotes>>,
}

impl World {
    pub(crate) fn new(description: &MachineDescription, settings: &Settings) -> Self {
        let (costs, executor) = (Costs::new(description), Executor::new(settings));
        let notes = |node| Rc::new(NodeNotes::new(NodeId(node), executor.clone()));
        World {
            notes: (0..u64::from(description.node_count())).map(notes).collect(),
            executor,
            processors: Processors::new(description.node_count() as usize, &costs),
            costs,
            network: Network::new(description),
            disks: Disks::new(description, settings),
        }
    }

    /// Returns the handler of timed events. A single function, so that the executor is compiled once.
    pub(crate) fn events(&self) -> impl Fn(Kind, usize) -> Option<Waiter> {
        |kind, index| self.fire(kind, index)
    }

    /// Handles a timed event; returns the task to wake in the end.
    #[inline(always)]
    fn fire(&self, kind: Kind, index: usize) -> Option<Waiter> {
        let World { executor, costs, processors, network, disks, .. } = self;
        match kind {
            Kind::Processor => return processors.fire(executor, index),
            Kind::Arrival => return network.arrive(executor, processors, costs, index),
            Kind::Delivery => return network.deliver(executor, index),
            Kind::Head => network.advance(executor, index),
            Kind::Disk => disks.fire(executor, processors, costs, index),
            Kind::Transfer => disks.complete(executor, index),
            Kind::Task | Kind::Foreign => unreachable!("the executor's own"),
        }
        None
    }
}
