//! What nodes note of requests: names of spans, numbers of messages, and the clock of what is noted.

use machine::{Instant, Machine, NodeId, mix};

use crate::protocol::{Flushing, RecordingStep, Request};

/// A kind of request, as what its client does and as what its server does.
pub struct RequestSpans {
    /// The name of the client's span.
    pub ask: &'static str,
    /// The name of the server's span.
    pub serve: &'static str,
    /// What it is counted as.
    pub operation: RequestOperation,
}

/// What requests ask for, as they are counted: a place in the list of all operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOperation(u8);

impl RequestOperation {
    /// How many there are.
    pub const COUNT: usize = OPERATIONS.len();

    /// All of them, in their order.
    pub fn all() -> impl Iterator<Item = RequestOperation> {
        (0..Self::COUNT).map(|index| RequestOperation(index as u8))
    }

    /// Its place among all.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        OPERATIONS[self.index()]
    }

    /// The operation of this name. Evaluated when this is compiled, since names are compared.
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
            /// What is noted of asking and serving it.
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
    Request::Meet { .. } => "meet",
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
    Request::Remove { .. } => "remove",
    Request::ListStripes { .. } => "list stripes",
    Request::Tree { .. } => "names",
    Request::LetGo { .. } => "let go",
    Request::HoldAgain { .. } => "hold again",
    Request::Select(_) => "select",
    Request::MoveSelected(_) => "move selected",
    Request::FormTeam { .. } => "form team",
    Request::Lock { .. } => "lock",
    Request::Fence { .. } => "fence",
    Request::FindData { .. } => "find data",
}

/// The number of the message in which a node asks with a tag: its own among all, but for an accident.
pub fn question(client: NodeId, tag: u64) -> u64 {
    mix(client.0 ^ mix(tag))
}

/// The number of the message that answers it.
pub fn answer(client: NodeId, tag: u64) -> u64 {
    mix(question(client, tag) ^ 1)
}

/// What the clock on the wall shows when that of the notes is at 0, in nanoseconds since 1970.
pub fn zero_unix_ns(machine: &impl Machine) -> u64 {
    let since_start = machine.now().since(Instant::START);
    machine.date().as_nanos().saturating_sub(since_start.as_nanos())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_request_is_counted_under_its_own_name() {
        let named = |request: Request| request.spans().operation.name();
        assert_eq!(named(Request::Describe), "describe");
        assert_eq!(named(Request::Record(RecordingStep::Fetch)), "fetch recording");
        let names: BTreeSet<&str> = RequestOperation::all().map(RequestOperation::name).collect();
        assert_eq!(names.len(), RequestOperation::COUNT);
    }

    #[test]
    fn messages_have_numbers_of_their_own() {
        let numbers = (0..20).flat_map(|node| {
            (0..500_u64).flat_map(move |tag| {
                [question, answer].map(|number| number(NodeId(node), (tag + 1) << 32 | (tag % 3)))
            })
        });
        assert_eq!(numbers.collect::<BTreeSet<u64>>().len(), 20 * 500 * 2);
    }
}
