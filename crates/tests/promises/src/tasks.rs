//! Functions with which promises wait: for their tasks, and for background activities.

use std::future::Future;

use machine::{Duration, InFlight, Machine};

/// Tasks that a promise waits for. A panic of one fails the promise without further waiting.
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

/// Waits long enough for all operations in flight to complete.
pub(super) async fn rest<M: Machine>(node: &M) {
    node.sleep_until(node.now() + Duration::from_nanos(200_000_000)).await;
}

/// Waits until a condition holds.
pub(super) async fn until<M: Machine>(node: &M, holds: impl Fn() -> bool) {
    while !holds() {
        node.sleep_until(node.now() + Duration::from_millis(1)).await;
    }
}
