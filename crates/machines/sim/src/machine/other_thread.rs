//! Work that a simulated node passes to another thread, as real nodes do for calls that can block: metadata
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
    /// Returns a thread to which work is passed and from which its result is returned in the time `hand_over` in total.
    pub(super) fn new(world: Rc<World>, node: usize, hand_over: Duration) -> Self {
        OtherThread { world, node, hand_over }
    }

    /// Waits for the time to pass work to the thread and its result back.
    pub(super) async fn take_over(&self) {
        if self.hand_over > Duration::ZERO {
            let executor = &self.world.executor;
            Sleep::until(executor, executor.now().saturating_add(self.hand_over.as_nanos())).await;
        }
    }

    /// Waits for the time to pass work to the thread. Then does the work on the node's processor in `nanoseconds`.
    pub(super) async fn work(&self, nanoseconds: u64, activity: ProcessorActivity) {
        self.take_over().await;
        self.work_here(nanoseconds, activity).await;
    }

    /// Does work on the node's main thread instead of the other thread; otherwise like [`work`](Self::work).
    pub(super) async fn work_here(&self, nanoseconds: u64, activity: ProcessorActivity) {
        let World { executor, processors, .. } = &*self.world;
        processors.compute(executor, self.node, activity, (nanoseconds, Level::Thread)).await;
    }
}
