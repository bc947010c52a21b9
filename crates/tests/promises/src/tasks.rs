//! What promises wait for: tasks of their own, and all that others do meanwhile.

use std::future::Future;

use machine::{Duration, InFlight, Machine};

/// Tasks that a promise waits for. One that panics fails the promise, and is not waited for.
#[derive(Clone, Default)]
pub(super) struct Tasks(InFlight);

impl Tasks {
    pub(super) fn begin(&self, node: &impl Machine, task: impl Future<Output = ()> + 'static) {
        let operation = self.0.begin();
        node.spawn("task of a promise", async move {
            task.await;
            drop(operation);
            Ok(())
        });
    }

    pub(super) async fn wait(&self) {
        self.0.none().await;
    }
}

/// Lets everything under way come to its end.
pub(super) async fn rest<M: Machine>(node: &M) {
    node.sleep_until(node.now() + Duration::from_nanos(200_000_000)).await;
}

/// Waits until something holds.
pub(super) async fn until<M: Machine>(node: &M, holds: impl Fn() -> bool) {
    while !holds() {
        node.sleep_until(node.now() + Duration::from_millis(1)).await;
    }
}
