//! Names and numbers for recordings of requests: names of spans, numbers of messages, and the clock of
//! recorded events.

use machine::{Instant, Machine, NodeId, mix};

use crate::protocol::{Flushing, RecordingStep, Request};

/// Names of a kind of request: of the activities of its client and of its server.
pub struct RequestSpans {
    /// Name of the client's span.
    pub ask: &'static str,
    /// Name of the server's span.
    pub serve: &'static str,
    /// Operation as which the request is counted.
    pub operation: RequestOperation,
}

/// Operation of a request, as counted: an index into the list of all operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOperation(u8);

impl RequestOperation {
    /// Number of operations.
    pub const COUNT: usize = OPERATIONS.len();

    /// Returns all operations, in order.
    pub fn all() -> impl Iterator<Item = RequestOperation> {
        (0..Self::COUNT).map(|index| RequestOperation(index as u8))
    }

    /// Returns the index among all operations.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the name of the operation.
    pub fn name(self) -> &'static str {
        OPERATIONS[self.index()]
    }

    /// Returns the operation with this name. It compares names, so call it only at compile time.
    const fn named(name: &str) -> RequestOperation {
        let mut index = 0;
        while !is_same(OPERATIONS[index], name) {
            index += 1;
        }
        RequestOperation(index as u8)
    }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

macro_rules! spans_of_requests {
    ($($request:pat => $name:literal,)*) => {
        const OPERATIONS: &[&str] = &[$($name),*];

        impl Request {
            /// Returns the names of the spans of sending and serving the request, and its operation.
            pub fn spans(&self) -> RequestSpans {
                match self {
                    $($request => RequestSpans {
                        ask: concat!("ask: ", $name),
                        serve: concat!("serve: ", $name),
                        operation: const { RequestOperation::named($name) },
                    },)*
                }
            }
        }
    };
}

spans_of_requests! {
    Request::Describe => "describe",
    Request::Examine => "examine",
    Request::Resize { .. } => "resize",
    Request::Promote { .. } => "promote",
    Request::Scrub { .. } => "scrub",
    Request::Read { .. } => "read",
    Request::Write(_) => "write",
    Request::Collective(_) => "collective",
    Request::Directory { .. } | Request::Stretches { .. } => "directory",
    Request::MoveListed(_) => "move listed",
    Request::Memput { .. } | Request::MemputPieces { .. } => "memput",
    Request::Memget { .. } | Request::MemgetPieces { .. } => "memget",
    Request::EnterBarrier { .. } => "meet",
    Request::Join { .. } => "join",
    Request::Gather { .. } => "gather",
    Request::FlushTogether { .. } => "flush together",
    Request::Leave { .. } => "leave",
    Request::Record(RecordingStep::Fetch) => "fetch recording",
    Request::Record(_) => "record",
    Request::DescribeDisks => "describe disks",
    Request::MarkDisks { .. } => "mark disks",
    Request::Attach { .. } => "attach",
    Request::Flush(Flushing::Stripes(_)) => "flush",
    Request::Flush(Flushing::Own) => "flush own",
    Request::Flush(Flushing::Names) => "flush names",
    Request::Flush(Flushing::Team { .. }) => "flush for team",
    Request::Remove { .. } => "remove",
    Request::ListStripes { .. } => "list stripes",
    Request::Tree { .. } => "names",
    Request::CloseFile { .. } => "let go",
    Request::ReclaimOpenFiles { .. } => "hold again",
    Request::Select(_) => "select",
    Request::MoveSelected(_) => "move selected",
    Request::FormTeam { .. } => "form team",
    Request::Lock { .. } => "lock",
    Request::Fence { .. } => "fence",
    Request::FindData { .. } => "find data",
}

/// Returns the number of the message with a client's request that has this tag. The number is unique among all messages
/// except for hash collisions.
pub fn question(client: NodeId, tag: u64) -> u64 {
    mix(client.0 ^ mix(tag))
}

/// Returns the number of the message with the answer to the request.
pub fn answer(client: NodeId, tag: u64) -> u64 {
    mix(question(client, tag) ^ 1)
}

/// Returns the wall-clock time at time 0 of the recording's clock, in nanoseconds since 1970.
pub fn zero_unix_ns(machine: &impl Machine) -> u64 {
    let since_start = machine.now().since(Instant::START);
    machine.date().as_nanos().saturating_sub(since_start.as_nanos())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_request_has_a_unique_operation_name() {
        let named = |request: Request| request.spans().operation.name();
        assert_eq!(named(Request::Describe), "describe");
        assert_eq!(named(Request::Record(RecordingStep::Fetch)), "fetch recording");
        let names: BTreeSet<&str> = RequestOperation::all().map(RequestOperation::name).collect();
        assert_eq!(names.len(), RequestOperation::COUNT);
    }

    #[test]
    fn each_message_has_a_unique_number() {
        let numbers = (0..20).flat_map(|node| {
            (0..500_u64).flat_map(move |tag| {
                [question, answer].map(|number| number(NodeId(node), (tag + 1) << 32 | (tag % 3)))
            })
        });
        assert_eq!(numbers.collect::<BTreeSet<u64>>().len(), 20 * 500 * 2);
    }
}
