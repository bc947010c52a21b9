//! Counters of a node's requests and transferred bytes. They only grow. This is pure state, without futures.
//!
//! - A served request is counted once, when its answer has been sent, by its operation and its class at that time. It
//!   is not counted if the caller disconnects before. Requests to other nodes are counted separately, when the answer
//!   arrives, or when it is known that no answer will arrive.
//! - A failure counts as an answer.
//! - Bytes are the data sent or received with messages, whichever side requested them; headers are not counted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::{Class, Duration};

use crate::span_names::RequestOperation;
use crate::time_histogram::TimeHistogram;

/// Counters of an endpoint.
#[derive(Default)]
pub struct Traffic {
    /// Times by operation and class. Most nodes serve few operations.
    served: RefCell<Vec<Option<Box<TimeHistogram>>>>,
    failures: RefCell<BTreeMap<&'static str, u64>>,
    bytes_sent: Cell<u64>,
    bytes_received: Cell<u64>,
    bad_messages: Cell<u64>,
}

/// Requests of one operation and class that a node has served, with their times from arrival until the answer was sent;
/// or requests that a client has sent, with their times until the answer arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRequests {
    /// Name of the operation.
    pub operation: &'static str,
    /// Class of the requests.
    pub class: Class,
    /// Times of the requests.
    pub times: TimeHistogram,
}

/// Counts of a node's requests and bytes since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// The requests, by operation and class. Operations without requests are omitted.
    pub served: Vec<ServedRequests>,
    /// Number of failed requests, by the [name](crate::FailureKind::name) of the kind of failure.
    pub failures: Vec<(&'static str, u64)>,
    /// Number of bytes of sent data.
    pub bytes_sent: u64,
    /// Number of bytes of received data.
    pub bytes_received: u64,
    /// Number of messages that could not be decoded.
    pub bad_messages: u64,
}

impl Traffic {
    /// Counts sent bytes.
    #[inline]
    pub fn sent(&self, bytes: u64) {
        self.bytes_sent.set(self.bytes_sent.get() + bytes);
    }

    /// Counts received bytes.
    #[inline]
    pub fn received(&self, bytes: u64) {
        self.bytes_received.set(self.bytes_received.get() + bytes);
    }

    /// Counts a message that could not be decoded.
    pub fn bad_message(&self) {
        self.bad_messages.set(self.bad_messages.get() + 1);
    }

    /// Counts a request whose answer has been sent, or has arrived.
    #[inline]
    pub fn served(
        &self,
        operation: RequestOperation,
        class: Class,
        took: Duration,
        failure: Option<&'static str>,
    ) {
        let mut served = self.served.borrow_mut();
        if served.is_empty() {
            served.resize_with(RequestOperation::COUNT * Class::ALL.len(), || None);
        }
        let index = operation.index() * Class::ALL.len() + class as usize;
        served[index].get_or_insert_default().add(took);
        if let Some(kind) = failure {
            *self.failures.borrow_mut().entry(kind).or_default() += 1;
        }
    }

    /// Returns the current counts.
    pub fn counts(&self) -> TrafficCounts {
        let served = self.served.borrow();
        let served = RequestOperation::all()
            .flat_map(|operation| Class::ALL.map(|class| (operation, class)))
            .zip(served.iter())
            .filter_map(|((operation, class), times)| {
                let times = TimeHistogram::clone(times.as_ref()?);
                Some(ServedRequests { operation: operation.name(), class, times })
            });
        TrafficCounts {
            served: served.collect(),
            failures: self.failures.borrow().iter().map(|(&kind, &count)| (kind, count)).collect(),
            bytes_sent: self.bytes_sent.get(),
            bytes_received: self.bytes_received.get(),
            bad_messages: self.bad_messages.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{RecordingStep, Request};

    #[test]
    fn requests_are_counted_by_operation_and_class() {
        let traffic = Traffic::default();
        assert_eq!(traffic.counts(), TrafficCounts::default());
        let served = |request: Request, class, took, failure| {
            traffic.served(request.spans().operation, class, Duration::from_nanos(took), failure);
        };
        served(Request::Describe, Class::Control, 0, None);
        served(Request::Record(RecordingStep::Fetch), Class::Background, 20, Some("invalid"));
        served(Request::Record(RecordingStep::Fetch), Class::Background, 10, Some("invalid"));
        let counts = traffic.counts();
        let served: Vec<_> =
            counts.served.iter().map(|of| (of.operation, of.class, of.times.count())).collect();
        assert_eq!(served, [("describe", Class::Control, 1), ("fetch recording", Class::Background, 2)]);
        assert_eq!(counts.served[1].times.sum().as_nanos(), 30);
        assert_eq!(counts.failures, [("invalid", 2)]);
    }
}
