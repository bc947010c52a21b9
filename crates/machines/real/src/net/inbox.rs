//! Inbox of a node: arrived messages that the file system has not received yet. It has one queue for each class, which
//! all connections share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Class, Condition, Delivery, Error, Message, NodeId, Result};

/// Maximum number of messages of one TCP connection in the inbox. At the limit the node stops reading from this
/// connection.
const WAITING_MAX: usize = 64;

/// Queue of one class: sender, delivery, and the share of its connection.
type Line = VecDeque<(NodeId, Delivery, Rc<InboxShare>)>;

/// Messages, and ends of connections, that have arrived for a node.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Queues by class, the most urgent first.
    arrived: RefCell<[Line; Class::ALL.len()]>,
    arrival: Condition,
    closed: Cell<bool>,
}

/// Share of a connection in the inbox.
#[derive(Default)]
pub(crate) struct InboxShare {
    waiting: Cell<usize>,
    taken: Condition,
}

impl Inbox {
    /// Waits until the connection is below its limit, and appends a message to the queue.
    pub(crate) async fn put(&self, from: NodeId, message: Message, place: &Rc<InboxShare>) {
        while place.waiting.get() >= WAITING_MAX && !self.closed.get() {
            place.taken.wait().await;
        }
        self.append(message.class, from, Delivery::Message(message), place);
    }

    /// Appends the end of a connection, behind all its messages.
    pub(crate) fn put_gone(&self, from: NodeId, why: String, place: &Rc<InboxShare>) {
        self.append(Class::Background, from, Delivery::Gone(why), place);
    }

    fn append(&self, class: Class, from: NodeId, delivery: Delivery, place: &Rc<InboxShare>) {
        if !self.closed.get() {
            place.waiting.set(place.waiting.get() + 1);
            self.arrived.borrow_mut()[class as usize].push_back((from, delivery, place.clone()));
            self.arrival.wake_one();
        }
    }

    pub(crate) async fn receive(&self) -> Result<(NodeId, Delivery)> {
        loop {
            if self.closed.get() {
                return Err(Error::Closed.into());
            }
            let first = self.arrived.borrow_mut().iter_mut().find_map(VecDeque::pop_front);
            match first {
                Some((from, delivery, place)) => {
                    place.waiting.set(place.waiting.get() - 1);
                    place.taken.wake_one();
                    return Ok((from, delivery));
                }
                None => self.arrival.wait().await,
            }
        }
    }

    /// Discards all present and future messages.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        let thrown_away = std::mem::take(&mut *self.arrived.borrow_mut());
        for (_, _, place) in thrown_away.iter().flatten() {
            place.taken.wake_all();
        }
        self.arrival.wake_all();
    }
}
