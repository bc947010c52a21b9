//! Work that a simulated node passes to another thread, as real nodes do for calls that may block: metadata
//! transactions, and creating, opening and removing objects.

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
    /// Returns a thread that takes `hand_over` in total to accept work and return it.
    pub(super) fn new(world: Rc<World>, node: usize, hand_over: Duration) -> Self {
        OtherThread { world, node, hand_over }
    }

    /// Waits for the time to pass work to the thread and back.
    pub(super) async fn take_over(&self) {
        if self.hand_over > Duration::ZERO {
            let executor = &self.world.executor;
            Sleep::until(executor, executor.now().saturating_add(self.hand_over.as_nanos())).await;
        }
    }

    /// Waits for the time to pass work over, then does it on the node's processor in `nanoseconds`.
    pub(super) async fn work(&self, nanoseconds: u64, activity: ProcessorActivity) {
        self.take_over().await;
        self.work_here(nanoseconds, activity).await;
    }

    /// Does work of the node's main thread, without passing it over; otherwise like [`work`](Self::work).
    pub(super) async fn work_here(&self, nanoseconds: u64, activity: ProcessorActivity) {
        let World { executor, processors, .. } = &*self.world;
        processors.compute(executor, self.node, activity, (nanoseconds, Level::Thread)).await;
    }
}
