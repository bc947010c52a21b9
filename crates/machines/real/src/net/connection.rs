//! A connection consists of two TCP connections (*lanes*), one for control and one for data. So a long transfer, or a
//! peer that does not read its data, never delays a command. For each TCP connection one task reads frames into the
//! inbox, and one writes an outbox.
//!
//! The end of a connection is reported once, after all its messages. A clean shutdown involves both sides. The closing
//! side writes the remaining messages, sends a bye, and continues to read and discard until the other side has closed
//! too. If it closed a socket with unread data, the system would discard the sent data. If a lane ends without a bye,
//! the peer has failed, and the other lane ends at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use compio::net::TcpStream;
use machine::{BufferPool, Condition, Error, Message, NodeId, Result};

use super::frame::Prelude;
use super::inbox::InboxShare;
use super::lane::{Lane, LinkNotes, MESSAGE};
use super::outbox::{Batch, Outbox};
use super::reader::{Incoming, LaneError, Reader, Room};
use super::writer::Writer;

/// Connection to another node: the state shared by its senders and its tasks.
pub(crate) struct Connection {
    /// Name by which this node knows the peer.
    pub(crate) peer: NodeId,
    /// Lanes, indexed by [`Lane`].
    sides: [Side; 2],
    /// Share of the peer in the node's pool for received data. Only its limit is used.
    share: BufferPool,
    /// True if data have arrived since the last check.
    pub(crate) has_received: Cell<bool>,
    /// Woken when data arrive.
    word: Condition,
    /// Woken when this connection must end, because the peer has connected again or this side disconnects the peer.
    pub(crate) replaced: Condition,
    /// Reason why this side disconnected the peer, if it did.
    given_up: RefCell<Option<String>>,
    /// Reason why the connection ended, if it has ended.
    loss: RefCell<Option<String>>,
    /// Woken when the file system has received the report of the loss.
    pub(crate) forgotten: Condition,
    noted: LinkNotes,
}

/// State of one lane of a connection.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) outbox: Outbox,
    pub(crate) place: Rc<InboxShare>,
}

/// Both halves of a TCP connection after its handshake.
pub(crate) struct TcpHalves {
    pub(crate) stream: TcpStream,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
}

impl Connection {
    /// Creates a connection with a limit of `share_bytes` bytes for received messages that wait in this node.
    pub(crate) fn new(peer: NodeId, share_bytes: u64, noted: LinkNotes) -> Rc<Self> {
        Rc::new(Connection {
            peer,
            sides: Default::default(),
            share: BufferPool::new(share_bytes),
            has_received: Cell::new(true),
            word: Condition::new(),
            replaced: Condition::new(),
            given_up: RefCell::default(),
            loss: RefCell::default(),
            forgotten: Condition::new(),
            noted,
        })
    }

    pub(crate) fn side(&self, lane: Lane) -> &Side {
        &self.sides[lane as usize]
    }

    pub(crate) async fn send(&self, message: Message) -> Result<()> {
        self.side(Lane::of(message.class)).outbox.send(message).await
    }

    /// Records that data have arrived.
    pub(crate) fn note_received(&self) {
        self.has_received.set(true);
        self.word.wake_all();
    }

    /// Sends a ping. Returns true if data arrive within `limit`.
    pub(crate) async fn shows_life(&self, limit: Duration) -> bool {
        self.side(Lane::Control).outbox.show_life(Prelude::PING);
        compio::time::timeout(limit, self.word.wait()).await.is_ok()
    }

    /// Accepts no more messages. Waiting messages are still sent.
    pub(crate) fn close(&self) {
        self.sides.iter().for_each(|side| side.outbox.close());
    }

    /// Ends the connection for this reason.
    pub(crate) fn give_up(&self, why: &str) {
        *self.given_up.borrow_mut() = Some(why.to_owned());
        self.replaced.wake_all();
    }

    /// Returns the reason why the connection must end, after `replaced` was woken.
    pub(crate) fn replaced_because(&self) -> String {
        let given_up = self.given_up.borrow().clone();
        given_up.unwrap_or_else(|| "it reconnected and does not answer on this connection".to_owned())
    }

    /// Marks the connection as lost.
    pub(crate) fn lose(&self, why: &str) {
        *self.loss.borrow_mut() = Some(why.to_owned());
        self.sides.iter().for_each(|side| side.outbox.lose(self.gone(why)));
    }

    pub(crate) fn loss(&self) -> Option<String> {
        self.loss.borrow().clone()
    }

    /// Writes the bytes `first`, then the outbox of a lane until it is closed and empty, or the connection fails.
    pub(crate) async fn write(self: Rc<Self>, lane: Lane, mut writer: Writer, first: Vec<u8>) {
        let outbox = &self.side(lane).outbox;
        if let Err(error) = writer.greet(first).await {
            return outbox.lose(self.gone(&error.to_string()));
        }
        while let Some(Batch { messages, bytes }) = outbox.next_batch().await {
            let since = self.noted.notes.moment().filter(|_| lane == Lane::Data);
            let outcome = writer.write(&messages, bytes).await;
            drop(messages);
            let LinkNotes { notes, number } = &self.noted;
            notes.did(("link out", *number), MESSAGE, since, || [("bytes", bytes)]);
            match outcome {
                Ok(()) => outbox.settle(),
                Err(error) => return outbox.lose(self.gone(&error.to_string())),
            }
        }
        if outbox.is_closed_in_order() { writer.bye().await } else { writer.close().await }
    }

    /// Reads the next frame of a lane.
    pub(crate) async fn next(
        &self,
        lane: Lane,
        reader: &mut Reader,
        room: &Room,
    ) -> std::result::Result<Incoming, LaneError> {
        reader.next(lane, room, &self.share, &self.noted).await
    }

    pub(crate) fn gone(&self, why: &str) -> Box<Error> {
        Error::PeerGone { node: self.peer, why: why.to_owned() }.into()
    }
}
