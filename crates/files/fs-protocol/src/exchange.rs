//! Exchanges bytes of a file with the memory of the compute nodes that own them, with Memput and Memget.
//!
//! A node with an extent of the file in memory divides the extent into the pieces that each compute node owns in the
//! view. The node is an I/O node with a buffer, or a compute node between the phases of two-phase I/O. In a *plain*
//! exchange each piece is a separate message, and all messages of an extent are in flight at once. In a *queued*
//! exchange (gather/scatter) pieces for the same destination are sent together, a block of them at a time, with one
//! message in flight to each destination. If there is no memory to begin a queue, another queue is sent first:
//!
//! ```text
//!  extent   | n0 | n1 | n2 | n0 | n1 | n2 | n0 |
//!  queues   n0: p p p | full: sent     n1: p p     n2: p p           until finish() sends the rest
//! ```
//!
//! As in the report, a compute node can be configured to send one plain piece at a time. Then its thread sleeps until
//! the piece is in place.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::iter;
use std::rc::Rc;

use layout::Piece;
use machine::{Buf, BufferPool, Condition, Machine, Memory, NodeId, Payload, Work, yield_now};
use slab::Slab;

use crate::endpoint::{Endpoint, Mailbox};
use crate::error::{Error, Result};
use crate::protocol::{MemoryId, PIECES_MAX, Request};
use crate::settings::TwoPhaseExchange;

/// Size of a piece's offset and length in a queue, in bytes.
const PIECE_HEAD_BYTES: u64 = 8;

/// Maximum number of pieces of one extent that are in flight, each in a separate message.
const UNDER_WAY_MAX: usize = 8192;

/// Maximum number of pieces of one extent that are gathered at a time for queued Memgets.
const GATHERED_MAX: usize = 65_536;

/// Number of pieces that a task finds in a row before it yields to others, because finding pieces need not wait.
const PIECES_IN_A_ROW: usize = 2048;

/// A part of an extent that is exchanged with a member as a whole: contiguous in the member's memory, but possibly
/// scattered in the file.
pub trait Exchanged {
    /// Returns the index of the member that owns the part.
    fn member(&self) -> u32;

    /// Returns the offset in bytes of the part in the member's memory.
    fn memory_offset(&self) -> u64;

    /// Returns the length in bytes: at least 1, at most the block size.
    fn bytes(&self) -> u64;
}

impl Exchanged for Piece {
    fn member(&self) -> u32 {
        self.node
    }

    fn memory_offset(&self) -> u64 {
        self.memory_offset
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The pieces of an extent, found one by one.
struct Found<I> {
    pieces: I,
    count: usize,
}

impl<I> Found<I> {
    fn new(pieces: I) -> Self {
        Found { pieces, count: 0 }
    }
}

/// This node's role as a member of the group, if it is a member.
pub struct Own {
    /// This node's memory, for which data need no message.
    pub memory: Memory,
    /// Method of exchanging pieces with the other members.
    pub exchange: TwoPhaseExchange,
}

/// Participants and settings of an exchange.
pub struct ExchangeGroup {
    /// The memory that each member has opened for the exchange.
    pub memory: MemoryId,
    /// The members, in the order of their ranks.
    pub members: Vec<NodeId>,
    /// This node's memory and method, if it is a member.
    pub own: Option<Own>,
    /// Number of array dimensions in which the place of each piece is computed; 0 if this node passes through its part
    /// sequentially.
    pub dimensions: u64,
    /// Number of buffers of all queues together, if pieces are queued. With two buffers for each member, all queues can
    /// be full and in flight.
    pub queue_buffers: Option<u64>,
    /// Size in bytes of each of these buffers.
    pub queue_bytes: u64,
}

/// One node's part of an exchange with the members of a group.
pub struct Exchange<M: Machine> {
    endpoint: Rc<Endpoint<M>>,
    /// Number of array dimensions in which the place of each piece is computed.
    dimensions: u64,
    memory: MemoryId,
    members: Vec<NodeId>,
    /// This node's memory and method, if it is a member.
    own: Option<Own>,
    /// One queue for each member if Memputs and Memgets are queued (if `queue_buffers` is set); otherwise empty.
    queues: Vec<Queue>,
    queue_buffers: BufferPool,
    queue_bytes: u64,
    /// Wakes waiting tasks when a destination has answered.
    answered: Condition,
    failure: RefCell<Option<Box<Error>>>,
}

/// The queue for one destination.
#[derive(Default)]
struct Queue {
    /// True while a message to the destination is in flight.
    under_way: Cell<bool>,
    waiting: RefCell<Option<Waiting>>,
}

impl Queue {
    fn has_waiting(&self) -> bool {
        self.waiting.borrow().is_some()
    }
}

/// Queued Memputs.
struct Waiting {
    pieces: Vec<(u64, u32)>,
    data: Payload,
    /// Memory of the queue, which limits its data.
    room: Buf,
}

impl Waiting {
    fn has_room(&self, bytes: u64) -> bool {
        let used = self.data.len() + PIECE_HEAD_BYTES * self.pieces.len() as u64;
        self.pieces.len() < PIECES_MAX && used + PIECE_HEAD_BYTES + bytes <= self.room.len()
            || self.pieces.is_empty()
    }
}

impl<M: Machine> Exchange<M> {
    /// Creates this node's part of an exchange with a group.
    pub fn new(endpoint: Rc<Endpoint<M>>, group: ExchangeGroup) -> Rc<Self> {
        let ExchangeGroup { memory, members, own, dimensions, queue_buffers, queue_bytes } = group;
        let queues = queue_buffers.map_or(0, |_| members.len());
        Rc::new(Exchange {
            endpoint,
            dimensions,
            memory,
            own,
            queues: (0..queues).map(|_| Queue::default()).collect(),
            queue_buffers: BufferPool::new(queue_buffers.unwrap_or(0) * queue_bytes),
            queue_bytes,
            members,
            answered: Condition::new(),
            failure: RefCell::default(),
        })
    }

    /// Returns the node's machine.
    pub fn machine(&self) -> &M {
        self.endpoint.machine()
    }

    /// Returns the number of members.
    pub fn member_count(&self) -> usize {
        self.members.len()
    }

    fn is_queued(&self) -> bool {
        !self.queues.is_empty()
    }

    /// True if this node exchanges one piece at a time.
    fn is_one_by_one(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.exchange == TwoPhaseExchange::OneByOne)
    }

    /// Returns the next piece, after the processor time to find it.
    async fn match_piece<T>(&self, found: &mut Found<impl Iterator<Item = T>>) -> Option<T> {
        let piece = found.pieces.next()?;
        found.count += 1;
        if found.count.is_multiple_of(PIECES_IN_A_ROW) {
            yield_now().await;
        }
        self.machine().compute(Work::MatchPiece { dimensions: self.dimensions }).await;
        Some(piece)
    }

    /// Puts the data of `pieces`, in the order of the file, into the members' memories. In a plain exchange the data
    /// are in place when this function completes. In a queued exchange they have been copied, and are sent at the
    /// latest by [`finish`](Self::finish).
    pub async fn put<P: Exchanged>(
        self: &Rc<Self>,
        pieces: impl Iterator<Item = P>,
        data: impl Fn(&P) -> Payload,
    ) -> Result<()> {
        let mut pieces = Found::new(pieces);
        let (mailbox, mut under_way) = (Mailbox::new(), 0);
        while let Some(piece) = self.match_piece(&mut pieces).await {
            if under_way == UNDER_WAY_MAX {
                self.end_memput(&mailbox).await?;
                under_way -= 1;
            }
            let payload = data(&piece);
            if let Some(own) = self.own_memory(&piece) {
                self.machine().compute(Work::MovePiece { bytes: piece.bytes() }).await;
                own.place(piece.memory_offset(), &payload);
            } else if self.is_queued() {
                self.queue(&piece, &payload).await?;
            } else {
                self.machine().compute(Work::CallMemput).await;
                let request = Request::Memput { memory: self.memory, offset: piece.memory_offset() };
                self.endpoint.begin(self.member(&piece), request, payload, &mailbox, 0).await;
                if self.is_one_by_one() {
                    self.asleep(self.end_memput(&mailbox)).await?;
                } else {
                    under_way += 1;
                }
            }
        }
        for _ in 0..under_way {
            self.end_memput(&mailbox).await?;
        }
        Ok(())
    }

    /// Suspends the thread until an answer has arrived and been processed.
    async fn asleep(&self, answer: impl Future<Output = Result<()>>) -> Result<()> {
        self.machine().compute(Work::SuspendThread).await;
        answer.await?;
        self.machine().compute(Work::ResumeThread).await;
        Ok(())
    }

    async fn end_memput(&self, mailbox: &Mailbox) -> Result<()> {
        mailbox.next().await.1?;
        self.machine().compute(Work::ReturnMemput).await;
        Ok(())
    }

    async fn queue(self: &Rc<Self>, piece: &impl Exchanged, payload: &Payload) -> Result<()> {
        let (destination, bytes) = (piece.member() as usize, piece.bytes());
        self.machine().compute(Work::QueuePiece { bytes }).await;
        loop {
            self.check()?;
            let full = match &mut *self.queues[destination].waiting.borrow_mut() {
                Some(waiting) if waiting.has_room(bytes) => {
                    waiting.pieces.push((piece.memory_offset(), bytes as u32));
                    // Copy the data, because the buffer of the block will be reused.
                    waiting.data.push(&payload.out_of_pools());
                    return Ok(());
                }
                waiting => waiting.is_some(),
            };
            if full {
                self.send(destination).await;
            } else if let Some(room) = self.queue_buffers.try_take(self.queue_bytes) {
                let mut waiting = self.queues[destination].waiting.borrow_mut();
                waiting.get_or_insert(Waiting { pieces: Vec::new(), data: Payload::empty(), room });
            } else if let Some(other) = self.queues.iter().position(Queue::has_waiting) {
                self.send(other).await;
            } else {
                // All buffers are in flight. The answers release them.
                self.answered.wait().await;
            }
        }
    }

    /// Sends the queued pieces for a destination, after the previous message to it has been answered.
    async fn send(self: &Rc<Self>, destination: usize) {
        self.take_turn(destination).await;
        let Some(waiting) = self.queues[destination].waiting.take() else {
            // Another task has already sent these pieces.
            return self.end_turn(destination);
        };
        let exchange = self.clone();
        self.machine().spawn("queued Memput", async move {
            let machine = exchange.machine();
            machine.compute(Work::CallMemput).await;
            let Waiting { pieces, data, room } = waiting;
            let request = Request::MemputPieces { memory: exchange.memory, pieces };
            let answer = exchange.endpoint.call(exchange.members[destination], request, data).await;
            drop(room);
            machine.compute(Work::ReturnMemput).await;
            if let Err(error) = answer {
                exchange.failure.borrow_mut().get_or_insert(error);
            }
            exchange.end_turn(destination);
            Ok(())
        });
    }

    async fn take_turn(&self, destination: usize) {
        while self.queues[destination].under_way.replace(true) {
            self.answered.wait().await;
        }
    }

    fn end_turn(&self, destination: usize) {
        self.queues[destination].under_way.set(false);
        self.answered.wake_all();
    }

    /// Sends all queued pieces and waits until they are in place.
    pub async fn finish(self: &Rc<Self>) -> Result<()> {
        for destination in 0..self.queues.len() {
            if self.queues[destination].has_waiting() {
                self.send(destination).await;
            }
        }
        while self.queues.iter().any(|queue| queue.under_way.get()) {
            self.answered.wait().await;
        }
        self.check()
    }

    fn check(&self) -> Result<()> {
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Gets the data of `pieces` from the members, and passes the data of each piece to `place`. In a queued exchange
    /// each item is requested as one piece, even if it is a run of pieces.
    pub async fn get<P: Exchanged>(
        &self,
        pieces: impl Iterator<Item = P>,
        place: impl FnMut(&P, &Payload),
    ) -> Result<()> {
        match self.is_queued() {
            true => self.get_queued(Found::new(pieces), place).await,
            false => self.get_plain(Found::new(pieces), place).await,
        }
    }

    async fn get_plain<P: Exchanged>(
        &self,
        mut pieces: Found<impl Iterator<Item = P>>,
        mut place: impl FnMut(&P, &Payload),
    ) -> Result<()> {
        let (mailbox, mut asked) = (Mailbox::new(), Slab::new());
        while let Some(piece) = self.match_piece(&mut pieces).await {
            if self.copy_own(&piece, &mut place).await {
                continue;
            }
            if asked.len() == UNDER_WAY_MAX {
                self.end_memget(&mailbox, &mut asked, &mut place).await?;
            }
            self.machine().compute(Work::CallMemget).await;
            let (offset, bytes) = (piece.memory_offset(), piece.bytes());
            let request = Request::Memget { memory: self.memory, offset, bytes: bytes as u32 };
            let to = self.member(&piece);
            let token = asked.insert(piece);
            self.endpoint.begin(to, request, Payload::empty(), &mailbox, token).await;
            if self.is_one_by_one() {
                self.asleep(self.end_memget(&mailbox, &mut asked, &mut place)).await?;
            }
        }
        while !asked.is_empty() {
            self.end_memget(&mailbox, &mut asked, &mut place).await?;
        }
        Ok(())
    }

    /// Processes the next answer to the Memgets of the pieces `asked`.
    async fn end_memget<P: Exchanged>(
        &self,
        mailbox: &Mailbox,
        asked: &mut Slab<P>,
        place: &mut impl FnMut(&P, &Payload),
    ) -> Result<()> {
        let (token, answer) = mailbox.next().await;
        let piece = asked.remove(token);
        let (_, data) = answer?;
        check_length(self.member(&piece), &data, piece.bytes())?;
        self.machine().compute(Work::ReturnMemget { bytes: piece.bytes() }).await;
        place(&piece, &data);
        Ok(())
    }

    /// Gets queued pieces, and passes the data of each piece to `place`.
    ///
    /// All pieces of a destination are requested in one message, unless the message would be too long. The message is
    /// sent when all these pieces are known and the destination has answered the previous message.
    async fn get_queued<P: Exchanged>(
        &self,
        mut pieces: Found<impl Iterator<Item = P>>,
        mut place: impl FnMut(&P, &Payload),
    ) -> Result<()> {
        let mut asked: Vec<Vec<P>> = self.members.iter().map(|_| Vec::new()).collect();
        let mut gathered = 0;
        while let Some(piece) = self.match_piece(&mut pieces).await {
            if self.copy_own(&piece, &mut place).await {
                continue;
            }
            self.machine().compute(Work::QueuePiece { bytes: 0 }).await;
            asked[piece.member() as usize].push(piece);
            gathered += 1;
            if gathered == GATHERED_MAX {
                self.get_gathered(&asked, &mut place).await?;
                asked.iter_mut().for_each(Vec::clear);
                gathered = 0;
            }
        }
        self.get_gathered(&asked, &mut place).await
    }

    /// Gets pieces that have been gathered for each member.
    async fn get_gathered<P: Exchanged>(
        &self,
        asked: &[Vec<P>],
        place: &mut impl FnMut(&P, &Payload),
    ) -> Result<()> {
        let (mailbox, mut under_way) = (Mailbox::new(), 0);
        let messages = |pieces| messages_of(pieces, self.queue_bytes);
        let parts: Vec<&[P]> = asked.iter().flat_map(|pieces| messages(pieces)).collect();
        let mut outcome = Ok(());
        for (token, part) in parts.iter().enumerate() {
            let destination = part[0].member() as usize;
            while self.queues[destination].under_way.get() && under_way > 0 {
                // This task may have sent the messages in flight, so it must process their answers.
                outcome = outcome.and(self.take_in(&mailbox, &parts, place).await);
                under_way -= 1;
            }
            self.take_turn(destination).await;
            self.machine().compute(Work::CallMemget).await;
            let list = part.iter().map(|piece| (piece.memory_offset(), piece.bytes() as u32)).collect();
            let request = Request::MemgetPieces { memory: self.memory, pieces: list };
            self.endpoint.begin(self.members[destination], request, Payload::empty(), &mailbox, token).await;
            under_way += 1;
        }
        for _ in 0..under_way {
            outcome = outcome.and(self.take_in(&mailbox, &parts, place).await);
        }
        outcome
    }

    /// Processes the next answer to a queued Memget.
    async fn take_in<P: Exchanged>(
        &self,
        mailbox: &Mailbox,
        parts: &[&[P]],
        place: &mut impl FnMut(&P, &Payload),
    ) -> Result<()> {
        let (token, answer) = mailbox.next().await;
        let part = parts[token];
        let destination = part[0].member() as usize;
        self.end_turn(destination);
        let (_, data) = answer?;
        let bytes = part.iter().map(P::bytes).sum();
        check_length(self.members[destination], &data, bytes)?;
        self.machine().compute(Work::ReturnMemget { bytes }).await;
        let mut data = data.reader();
        part.iter().for_each(|piece| place(piece, &data.part(piece.bytes())));
        Ok(())
    }

    /// Returns this node's memory, if the piece belongs to this node.
    fn own_memory(&self, piece: &impl Exchanged) -> Option<&Memory> {
        let own = self.own.as_ref().filter(|_| self.member(piece) == self.machine().node());
        own.map(|own| &own.memory)
    }

    async fn copy_own<P: Exchanged>(&self, piece: &P, place: &mut impl FnMut(&P, &Payload)) -> bool {
        let Some(own) = self.own_memory(piece) else { return false };
        self.machine().compute(Work::MovePiece { bytes: piece.bytes() }).await;
        place(piece, &own.get(piece.memory_offset(), piece.bytes()));
        true
    }

    fn member(&self, piece: &impl Exchanged) -> NodeId {
        self.members[piece.member() as usize]
    }
}

/// Splits the pieces of a member into messages. Each message has at most [`PIECES_MAX`] pieces, and at most
/// `most_bytes` bytes of data unless it has a single piece.
fn messages_of<P: Exchanged>(pieces: &[P], most_bytes: u64) -> impl Iterator<Item = &[P]> {
    let mut rest = pieces;
    iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |piece: &&P| {
            bytes += piece.bytes();
            bytes <= most_bytes
        };
        let count = rest.iter().take(PIECES_MAX).take_while(fits).count();
        let (message, later) = rest.split_at(count.max(1).min(rest.len()));
        rest = later;
        (!message.is_empty()).then_some(message)
    })
}

fn check_length(node: NodeId, data: &Payload, bytes: u64) -> Result<()> {
    if data.len() == bytes {
        Ok(())
    } else {
        Err(Error::Protocol { node, why: format!("answered a Memget of {bytes} bytes with {}", data.len()) }
            .into())
    }
}
