//! Running a node: the choice of the driver, the start, and an orderly end.

use std::future::Future;
use std::pin::Pin;

use compio::driver::{DriverType, ProactorBuilder};
use compio::runtime::{JoinError, ResumeUnwind};
use compio::runtime::{Runtime, RuntimeBuilder};
use machine::{Error, Result};

use crate::machine::RealMachine;
use crate::settings::{Driver, Settings};
use crate::task::Boxed;

/// Runs a node on this thread until `node` is done, then ends it in order.
///
/// The node has its disks, listens, and is connected to its peers before `node` is called. At the end its
/// network is closed; what was sent still leaves and transfers complete, within the time
/// [`Limits::drain`](crate::Limits::drain) gives them. Other tasks of the node are dropped.
///
/// # Panics
/// If `node` does.
pub fn run<T, F>(settings: Settings, node: impl FnOnce(RealMachine) -> F) -> Result<T>
where
    F: Future<Output = T> + 'static,
    T: 'static,
{
    block_on(settings.driver, async {
        let machine = RealMachine::start(settings).await?;
        let node: Boxed<T> = Box::pin(node(machine.clone()));
        let outcome = compio::runtime::spawn(node).await;
        machine.finish().await;
        Ok(unwrap_outcome(outcome))
    })?
}

/// Runs `future` on a runtime of its own on this thread. For several nodes on one thread; else use [`run`].
pub fn block_on<T>(driver: Driver, future: impl Future<Output = T>) -> Result<T> {
    let future: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(future);
    Ok(build(driver)?.block_on(future))
}

fn unwrap_outcome<T>(outcome: std::result::Result<T, JoinError>) -> T {
    outcome.resume_unwind().expect("a task is cancelled only when its handle is dropped")
}

/// File operations in flight without io_uring, of all disks of a node. Beyond it the runtime spins.
const THREADS_MAX: usize = 256;

/// Tasks that other threads can wake before the node takes that in. A thread that wakes one more waits for the node,
/// often holding a lock of the channel by which it does so; if the node comes to that channel then, it waits for ever.
const WOKEN_MAX: usize = 1 << 14;

fn build(driver: Driver) -> Result<Runtime> {
    let mut proactor = ProactorBuilder::new();
    proactor.thread_pool_limit(THREADS_MAX);
    match driver {
        Driver::Automatic => {}
        Driver::IoUring => drop(proactor.driver_type(DriverType::IoUring)),
        Driver::Polling => drop(proactor.driver_type(DriverType::Poll)),
    }
    RuntimeBuilder::new().with_proactor(proactor).sync_queue_size(WOKEN_MAX).build().map_err(|error| {
        let what = format!("starting a node with the driver `{driver}`");
        let why = match driver {
            Driver::IoUring => format!("{error}; the driver `polling` does without io_uring"),
            _ => error.to_string(),
        };
        Error::Io { what, why }.into()
    })
}
