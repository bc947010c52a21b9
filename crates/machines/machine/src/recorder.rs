//! What a listener is told: rows, and notes on them.

use crate::{Instant, NodeId};

/// A row of notes, by the number that its recorder has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// What happens on a row at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedEvent<'a> {
    /// A span begins, within that which has begun on the row and has not ended.
    Begin {
        /// What is done: `read`, `wait for disk`, ...
        name: &'static str,
        /// More about it: numbers by name. Names end in their unit (`_ns`), but for `bytes`.
        arguments: &'a [(&'static str, u64)],
    },
    /// The span that has begun last and has not ended ends.
    End,
    /// The value of the row's counter from now on.
    Count(u64),
    /// A message of this number leaves.
    Sent(u64),
    /// The message of this number, which has been sent from another row, arrives.
    Received(u64),
}

/// A listener that is told what happens.
///
/// The notes of a row come in order of time, and its spans lie within or after each other. Those of different rows
/// may come in any order.
pub trait Recorder {
    /// There is another row: a lane for tasks of a node, one after the other, or a part of the machine. `counts` says
    /// that it has counts and nothing else.
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId;

    /// Something happens.
    fn note(&mut self, row: RowId, time: Instant, note: NotedEvent<'_>);
}
