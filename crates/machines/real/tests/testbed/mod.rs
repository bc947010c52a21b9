//! Real nodes for conformance tests.

use std::future::Future;
use std::time::Duration;

use machine::conformance::{POOL_BYTES, Testbed};
use real::{Driver, Limits, RealMachine, Settings};

use crate::common::{Reports, run_nodes};

/// Nodes on one thread, connected over the loopback device, with disks in a temporary directory.
pub(crate) struct Loopback {
    pub(crate) driver: Driver,
}

impl Testbed for Loopback {
    type Machine = RealMachine;

    fn run<T, F>(&self, nodes: usize, test: impl FnOnce(Vec<RealMachine>) -> F) -> machine::Result<T>
    where
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        // In these tests a closed node is not restarted, and a node whose connection was broken answers at once.
        let limits = Limits { recall: Duration::from_millis(200), ..Limits::default() };
        let adapt = |settings| Settings { buffer_bytes: POOL_BYTES, limits: limits.clone(), ..settings };
        run_nodes(self.driver, nodes as u64, &Reports::default(), adapt, test)
    }
}
