//! Lanes: the two TCP connections to a node, and the notes on their use.

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

/// Where it is noted how long messages with data take the links from and to a node.
pub(crate) struct LinkNotes {
    pub(crate) notes: Rc<NodeNotes>,
    /// The number of the connection among those of the node.
    pub(crate) number: usize,
}

/// What a link does.
pub(crate) const MESSAGE: &str = "message";
