//! What a simulated node has another of its threads do, as real nodes do with calls that may block: transactions on
//! metadata, and making, opening and removing objects.

use std::rc::Rc;

use description::Level;
use machine::Duration;

use crate::sleep::Sleep;
use crate::trace::ProcessorActivity;
use crate::world::World;

/// Another thread of a node.
#[derive(Clone)]
pub(super) struct OtherThread {
    world: Rc<World>,
    node: usize,
    hand_over: Duration,
}

impl OtherThread {
    /// A thread that takes work over and hands it back in `hand_over` altogether.
    pub(super) fn new(world: Rc<World>, node: usize, hand_over: Duration) -> Self {
        OtherThread { world, node, hand_over }
    }

    /// Lets the time pass in which work is handed over.
    pub(super) async fn take_over(&self) {
        if self.hand_over > Duration::ZERO {
            let executor = &self.world.executor;
            Sleep::until(executor, executor.now().saturating_add(self.hand_over.as_nanos())).await;
        }
    }

    /// Lets the time pass in which work is handed over, and then done by the node's processor in `nanoseconds`.
    pub(super) async fn work(&self, nanoseconds: u64, activity: ProcessorActivity) {
        self.take_over().await;
        self.work_here(nanoseconds, activity).await;
    }

    /// As [`work`](Self::work), for work that is not handed over: the node's own thread does it.
    pub(super) async fn work_here(&self, nanoseconds: u64, activity: ProcessorActivity) {
        let World { executor, processors, .. } = &*self.world;
        processors.compute(executor, self.node, activity, (nanoseconds, Level::Thread)).await;
    }
}
