//! Reports of refused callers. Their number per period is limited, because callers can cause any number of refusals,
//! and each report can become a log line.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use machine::NodeId;

use super::handshake::Fault;
use crate::report::Report;
use crate::task::Tasks;

/// Maximum number of refusals that are reported one by one in a [`PERIOD`].
const REPORTED: u64 = 10;

/// Period in which refusals are counted. It begins with a refusal.
const PERIOD: Duration = Duration::from_secs(10);

/// Refusals of a node.
pub(crate) struct Refusals {
    node: NodeId,
    tasks: Tasks,
    /// Number of refusals in the current period; 0 between periods.
    count: Cell<u64>,
}

impl Refusals {
    pub(crate) fn new(node: NodeId, tasks: Tasks) -> Self {
        Refusals { node, tasks, count: Cell::new(0) }
    }

    /// Reports a refused caller. Beyond the maximum number only counts the refusal; the count is reported at the end of
    /// the period.
    pub(crate) fn report(self: &Rc<Self>, from: SocketAddr, fault: &Fault) {
        let count = self.count.get() + 1;
        self.count.set(count);
        if count == 1 {
            let refusals = self.clone();
            self.tasks.spawn("counting refusals", async move {
                compio::time::sleep(PERIOD).await;
                refusals.end_period();
                Ok(())
            });
        }
        if count <= REPORTED {
            let (why, mismatch) = (fault.to_string(), fault.mismatch());
            self.tasks.report(&Report::Refused { node: self.node, from, why, mismatch });
        }
    }

    fn end_period(&self) {
        let count = self.count.replace(0).saturating_sub(REPORTED);
        if count > 0 {
            self.tasks.report(&Report::RefusedMore { node: self.node, count, within: PERIOD });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::report::Reporter;

    #[test]
    fn the_first_refusals_are_reported_and_later_ones_counted() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let sink = reported.clone();
        let reporter = Reporter::new(move |report| sink.lock().expect("no panic").push(report.to_string()));
        crate::block_on(crate::Driver::Polling, async {
            let refusals = Rc::new(Refusals::new(NodeId(1), Tasks::new(NodeId(1), reporter)));
            let refuse =
                |times| (0..times).for_each(|_| refusals.report(([127, 0, 0, 1], 9).into(), &"no".into()));
            refuse(1000);
            refusals.end_period();
            refuse(1);
            refusals.end_period();
        })
        .expect("a runtime");
        let reported = reported.lock().expect("no panic");
        assert_eq!(reported.len(), 12);
        assert_eq!(
            reported[9..],
            ["node 1: refused 127.0.0.1:9: no", "node 1: refused 990 more within 10 s", &*reported[0]]
        );
    }
}
