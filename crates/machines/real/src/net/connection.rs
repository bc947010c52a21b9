//! A connection: two of TCP, one for control and one for data, so that a long transfer, or a peer that does not
//! take its data, never delays a command. For each of them a task reads frames into the inbox, and one writes an
//! outbox.
//!
//! The readers report that a connection is over, after all that came over it; so a peer is lost exactly once. Ending in
//! order takes both sides: the side that closes writes what is left, sends a bye, and reads on, discarding, until the
//! other side has closed too. A socket closed with data unread would discard what was sent. A lane that ends without a
//! bye is that of a peer that is gone: then the other lane ends with it, whatever it waits for.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use compio::net::TcpStream;
use machine::{BufferPool, Condition, Error, Message, NodeId, Result};

use super::frame::Prelude;
use super::inbox::InboxShare;
use super::lane::{Lane, LinkNotes, MESSAGE};
use super::outbox::{Batch, Outbox};
use super::reader::{Broken, Heard, Reader, Room};
use super::writer::Writer;

/// A connection to another node, as far as its senders and its tasks share it.
pub(crate) struct Connection {
    /// What this node calls the other.
    pub(crate) peer: NodeId,
    /// By lane.
    sides: [Side; 2],
    /// What of the node's pool for received data is the peer's. Used for its bound alone.
    share: BufferPool,
    /// Whether anything has come since the last look.
    pub(crate) heard: Cell<bool>,
    /// Woken when something comes.
    word: Condition,
    /// Woken when its other side has called again, or this side gives it up, and this connection is to end.
    pub(crate) replaced: Condition,
    /// Why this side has given the connection up, if it has.
    given_up: RefCell<Option<String>>,
    /// Why it is over, if it is.
    loss: RefCell<Option<String>>,
    /// Woken when the loss has been received.
    pub(crate) forgotten: Condition,
    noted: LinkNotes,
}

/// One lane of a connection.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) outbox: Outbox,
    pub(crate) place: Rc<InboxShare>,
}

/// The two halves of a TCP connection after its handshake.
pub(crate) struct TcpHalves {
    pub(crate) stream: TcpStream,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
}

impl Connection {
    /// A connection of whose messages `share_bytes` may wait in this node at once.
    pub(crate) fn new(peer: NodeId, share_bytes: u64, noted: LinkNotes) -> Rc<Self> {
        Rc::new(Connection {
            peer,
            sides: Default::default(),
            share: BufferPool::new(share_bytes),
            heard: Cell::new(true),
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

    /// Something has come.
    pub(crate) fn hear(&self) {
        self.heard.set(true);
        self.word.wake_all();
    }

    /// Whether anything comes within `limit`, now that the other side is asked whether it is there.
    pub(crate) async fn shows_life(&self, limit: Duration) -> bool {
        self.side(Lane::Control).outbox.show_life(Prelude::PING);
        compio::time::timeout(limit, self.word.wait()).await.is_ok()
    }

    /// Takes no more messages. What waits is still sent.
    pub(crate) fn close(&self) {
        self.sides.iter().for_each(|side| side.outbox.close());
    }

    /// Has the connection ended, for this reason.
    pub(crate) fn give_up(&self, why: &str) {
        *self.given_up.borrow_mut() = Some(why.to_owned());
        self.replaced.wake_all();
    }

    /// Why it ends, once `replaced` has been woken.
    pub(crate) fn replaced_because(&self) -> String {
        let given_up = self.given_up.borrow().clone();
        given_up.unwrap_or_else(|| "it has called again and is silent over this connection".to_owned())
    }

    /// The connection is over.
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
    ) -> std::result::Result<Heard, Broken> {
        reader.next(lane, room, &self.share, &self.noted).await
    }

    pub(crate) fn gone(&self, why: &str) -> Box<Error> {
        Error::PeerGone { node: self.peer, why: why.to_owned() }.into()
    }
}
