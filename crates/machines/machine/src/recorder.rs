//! Interface of a listener (an attached recorder): rows, and events on the rows.

use crate::{Instant, NodeId};

/// Row of events, by the number that its recorder assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// Event on a row at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedEvent<'a> {
    /// Begin of a span, within the innermost open span of the row.
    Begin {
        /// Name of the activity: `read`, `wait for disk`, ...
        name: &'static str,
        /// Details: numbers by name. Names end in their unit (`_ns`), except `bytes`.
        arguments: &'a [(&'static str, u64)],
    },
    /// End of the innermost open span.
    End,
    /// Value that the row's counter has from now on.
    Count(u64),
    /// Departure of the message with this number.
    Sent(u64),
    /// Arrival of the message with this number, sent from another row.
    Received(u64),
}

/// Listener to the events of nodes.
///
/// The events of a row arrive in order of time, and its spans nest. Events of different rows may arrive in any order.
pub trait Recorder {
    /// Announces a row and returns its number. A row is a lane for successive tasks of a node, or a part of the
    /// machine. `counts` is true if the row has counts only.
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId;

    /// Records an event.
    fn note(&mut self, row: RowId, time: Instant, note: NotedEvent<'_>);
}
