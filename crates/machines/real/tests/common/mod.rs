//! Helpers of the tests of this crate: drivers to test with, nodes in temporary directories, and reports.

#![allow(dead_code, reason = "each test crate uses a part of it")]

pub(crate) mod stranger;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use machine::{Machine, Net, NodeId};
use real::{DiskSettings, Driver, MetadataPlace, Peer, RealMachine, Report, Reporter, Settings};

/// Returns the drivers this computer allows. Tests run with each; polling is always among them.
pub(crate) fn drivers() -> Vec<Driver> {
    let io_uring = real::block_on(Driver::IoUring, async {});
    match io_uring {
        Ok(()) => vec![Driver::Polling, Driver::IoUring],
        Err(error) => {
            prerequisites::skip(format_args!("no io_uring, polling only: {error}"));
            vec![Driver::Polling]
        }
    }
}

/// Returns the address at which test nodes listen.
pub(crate) fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Reports of the nodes under test.
#[derive(Clone, Default)]
pub(crate) struct Reports(Arc<Mutex<Vec<Report>>>);

impl Reports {
    /// Returns the key mismatches of refused callers.
    pub(crate) fn mismatches(&self) -> Vec<machine::KeyMismatch> {
        let reports = self.0.lock().expect("no panic meanwhile");
        let mismatch = |report: &Report| match report {
            Report::Refused { mismatch, .. } => *mismatch,
            _ => None,
        };
        reports.iter().filter_map(mismatch).collect()
    }

    pub(crate) fn reporter(&self) -> Reporter {
        let reports = self.clone();
        Reporter::new(move |report| reports.0.lock().expect("no panic meanwhile").push(report.clone()))
    }

    /// Returns the number of matching reports.
    pub(crate) fn count(&self, is_such: impl Fn(&Report) -> bool) -> usize {
        self.0.lock().expect("no panic meanwhile").iter().filter(|report| is_such(report)).count()
    }

    pub(crate) fn failure(&self) -> Option<machine::Error> {
        self.0.lock().expect("no panic meanwhile").iter().find_map(|report| match report {
            Report::TaskFailed { error, .. } => Some(error.clone()),
            _ => None,
        })
    }

    /// Returns true if a disk has reported a failure with this text.
    pub(crate) fn has_error_with(&self, text: &str) -> bool {
        let reports = self.0.lock().expect("no panic meanwhile");
        let has_text = |report: &Report| matches!(report, Report::DiskFailed { error, .. } if error.to_string().contains(text));
        reports.iter().any(has_text)
    }

    pub(crate) fn refusals(&self) -> Vec<String> {
        let reports = self.0.lock().expect("no panic meanwhile");
        let why = |report: &Report| match report {
            Report::Refused { why, .. } => Some(why.clone()),
            _ => None,
        };
        reports.iter().filter_map(why).collect()
    }
}

/// Returns the settings of a listening node with one disk and a metadata store in `directory`.
pub(crate) fn settings(node: u64, directory: &Path, reports: &Reports) -> Settings {
    Settings {
        listen: Some(any_port()),
        disks: vec![DiskSettings::plain(directory.join(format!("disk-{node}")))],
        metadata: Some(MetadataPlace::Directory(directory.join(format!("metadata-{node}")))),
        reporter: reports.reporter(),
        ..Settings::new(NodeId(node), stranger::keys())
    }
}

/// Runs `test` on nodes 1, 2, ..., all connected, on one thread. `adapt` changes the settings of each.
pub(crate) fn run_nodes<T, F>(
    driver: Driver,
    nodes: u64,
    reports: &Reports,
    adapt: impl Fn(Settings) -> Settings,
    test: impl FnOnce(Vec<RealMachine>) -> F,
) -> machine::Result<T>
where
    F: Future<Output = T>,
{
    run_boxed(driver, nodes, reports, &adapt, Box::new(|machines| Box::pin(test(machines))))
}

/// Boxed test of any type: the code that runs it is compiled once for all tests.
type BoxedTest<'a, T> = Box<dyn FnOnce(Vec<RealMachine>) -> Pin<Box<dyn Future<Output = T> + 'a>> + 'a>;

fn run_boxed<T>(
    driver: Driver,
    nodes: u64,
    reports: &Reports,
    adapt: &dyn Fn(Settings) -> Settings,
    test: BoxedTest<'_, T>,
) -> machine::Result<T> {
    real::block_on(driver, async {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut machines: Vec<RealMachine> = Vec::new();
        for node in 1..=nodes {
            let peers = machines.iter().map(peer).collect();
            let settings = Settings { peers, ..settings(node, directory.path(), reports) };
            machines.push(RealMachine::start(adapt(settings)).await?);
        }
        let outcome = until_failure(test(machines.clone()), reports).await;
        for machine in &machines {
            machine.net().close();
        }
        for machine in &machines {
            machine.finish().await;
        }
        outcome
    })?
}

/// Completes with `test`, or fails with the first failure reported during it.
async fn until_failure<T>(test: impl Future<Output = T>, reports: &Reports) -> machine::Result<T> {
    let mut test = pin!(test);
    poll_fn(|context| {
        let poll = test.as_mut().poll(context);
        match reports.failure() {
            Some(error) => Poll::Ready(Err(error.into())),
            None => poll.map(Ok),
        }
    })
    .await
}

/// Returns the name and address of a node for its peers.
pub(crate) fn peer(machine: &RealMachine) -> Peer {
    Peer { node: machine.node(), address: machine.address().expect("it listens") }
}

/// Waits until `condition` holds; fails after a time that no healthy test needs.
pub(crate) async fn until(machine: &RealMachine, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "the condition never came true");
        machine.sleep_until(machine.now() + machine::Duration::from_millis(1)).await;
    }
}

/// Polls `future` once, to start it, and returns it.
pub(crate) async fn begun<F: Future + Unpin>(mut future: F) -> F {
    poll_fn(|context| {
        let _ = pin!(&mut future).poll(context);
        Poll::Ready(())
    })
    .await;
    future
}
