//! Lanes: the two TCP connections to a node, and the events recorded for them.

use std::rc::Rc;

use machine::{Class, NodeNotes};

/// One of the two TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Control,
    Data,
}

impl Lane {
    pub(crate) fn of(class: Class) -> Lane {
        match class {
            Class::Control => Lane::Control,
            Class::Demand | Class::Background => Lane::Data,
        }
    }
}

/// Recorder of the transfer times of data messages from and to a node.
pub(crate) struct LinkNotes {
    pub(crate) notes: Rc<NodeNotes>,
    /// Number of the connection among the connections of the node.
    pub(crate) number: usize,
}

/// Name of the recorded activity of a link.
pub(crate) const MESSAGE: &str = "message";
