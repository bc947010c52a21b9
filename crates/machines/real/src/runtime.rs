//! Running a node: choice of the driver, start, and clean shutdown.

use std::future::Future;
use std::pin::Pin;

use compio::driver::{DriverType, ProactorBuilder};
use compio::runtime::{JoinError, ResumeUnwind};
use compio::runtime::{Runtime, RuntimeBuilder};
use machine::{Error, Result};

use crate::machine::RealMachine;
use crate::settings::{Driver, Settings};
use crate::task::Boxed;

/// Runs a node on this thread until `node` completes, then shuts it down cleanly.
///
/// Before `node` is called, the disks are open, the node listens, and it is connected to its peers. At the end the
/// network is closed. Sent messages still leave and transfers complete, within the time limit
/// [`Limits::drain`](crate::Limits::drain). Other tasks of the node are dropped.
///
/// # Panics
/// Panics if `node` does.
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

/// Runs `future` on a new runtime on this thread. Meant for several nodes on one thread; otherwise use [`run`].
pub fn block_on<T>(driver: Driver, future: impl Future<Output = T>) -> Result<T> {
    let future: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(future);
    Ok(build(driver)?.block_on(future))
}

fn unwrap_outcome<T>(outcome: std::result::Result<T, JoinError>) -> T {
    outcome.resume_unwind().expect("a task is cancelled only when its handle is dropped")
}

/// Limit of file operations in flight without io_uring, for all disks of a node. Beyond this limit the runtime
/// busy-waits.
const THREADS_MAX: usize = 256;

/// Number of tasks that other threads can wake before the node processes these wake-ups. A thread that wakes one more
/// blocks until the node does, often while it holds a lock of the channel used. If the node then needs that lock, both
/// deadlock.
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
        let what = format!("cannot start a node with the driver `{driver}`");
        let why = match driver {
            Driver::IoUring => format!("{error}; the driver `polling` needs no io_uring"),
            _ => error.to_string(),
        };
        Error::Io { what, why }.into()
    })
}
