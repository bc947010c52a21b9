//! The seam between a file system and the machine it runs on.
//!
//! A file system sees the world only through the traits of this crate: a clock, tasks, marks of processor
//! work, messages, disks and bounded buffers, bundled behind one type parameter, [`Machine`]. Two crates
//! implement them, `sim` in virtual time and `real` over sockets and files, and `fs` cannot import either.
//! The laws both must keep are functions in [`conformance`].
//!
//! Map of the code, in reading order:
//!
//! - [`Machine`], [`Net`], [`Disk`] in `lib.rs`: the seam itself; start here
//! - `time.rs`: instants and durations in nanoseconds
//! - `payload.rs`: data that fs moves but never looks at, real or phantom; `checksums.rs`: what vouches for them
//! - `buffer.rs`: pools of buffers; `slot.rs`: what they and payloads are made of; `memory.rs`: where a compute node
//!   wants its data; `lent.rs`: memory of another thread
//! - `condition.rs`: how tasks of one node wait for each other; `in_flight.rs`, `line.rs`, `permits.rs`,
//!   `task_group.rs`, `first_failure.rs`, `first_of.rs`: what they wait for; `give_way.rs`: how they let others go on
//! - `metadata.rs`: values by keys that change by transactions
//! - `range_set.rs`: sets of offsets as ranges
//! - `work.rs`: names of processor work; `error.rs`: what can go wrong; `decimal.rs`, `size.rs`: numbers and sizes as
//!   people write them; `mix.rs`: a hash of a number
//! - `notes.rs`: what happens on a node, told to a listener; `lanes.rs`: the rows it is on; `recorder.rs`: the
//!   listener; `note_ring.rs`: the last notes, kept
//! - `conformance.rs`: the laws
//!
//! What is not here, on purpose: randomness (seeds come in through configuration), paths, connections
//! (nodes have names, the machine connects), timeouts (a sleep raced against anything is one), and any way
//! to ask which world this is.

mod buffer;
mod checksums;
mod condition;
pub mod conformance;
mod decimal;
mod error;
mod first_failure;
mod first_of;
mod give_way;
mod in_flight;
mod lanes;
mod lent;
mod line;
mod memory;
mod metadata;
mod mix;
mod note_ring;
mod notes;
mod payload;
mod permits;
mod range_set;
mod recorder;
mod size;
mod slot;
mod task_group;
mod time;
mod work;

use std::fmt;
use std::future::Future;
use std::ops::Range;

pub use buffer::{Buf, BufferPool};
pub use checksums::{CHECKSUM_UNIT_BYTES, ChecksumMismatch, Checksums};
pub use condition::{Condition, Wait};
pub use decimal::Decimal;
pub use error::{Error, KeyMismatch, NodePart, Result};
pub use first_of::first_of;
pub use give_way::give_way;
pub use in_flight::{InFlight, OperationInFlight};
pub use lanes::SpanPlace;
pub use lent::LentMemory;
pub use line::{Line, PlaceInLine};
pub use memory::{Loan, Memory};
pub use metadata::{
    METADATA_KEY_BYTES_MAX, METADATA_VALUE_BYTES_MAX, MetadataAttempt, MetadataChanges, MetadataEntries,
    MetadataEntry, MetadataStore, MetadataTable, Transaction, check_metadata_bytes,
};
pub use mix::mix;
pub use note_ring::{KeptEvent, KeptNote, NoteRing, NoteRow};
pub use notes::{NodeNotes, NotedSpan, NotedStretch, Present};
pub use payload::{Payload, PayloadPiece, PayloadReader, SharedBytes, Source};
pub use permits::{Permit, Permits};
pub use range_set::RangeSet;
pub use recorder::{NotedEvent, Recorder, RowId};
pub use size::{SIZE_UNITS, parse_bytes};
pub use task_group::TaskGroup;
pub use time::{Duration, Instant};
pub use work::Work;

/// The name of a node, unique among the nodes that talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {:x}", self.0)
    }
}

/// One node of a parallel machine, real or simulated.
///
/// A `Machine` is a handle: cloning is cheap. A node lives on one thread, so nothing here is `Send`, and
/// tasks of a node share their state in plain cells.
pub trait Machine: Clone + 'static {
    /// The node's access to the network.
    type Net: Net;
    /// A disk of the node.
    type Disk: Disk;
    /// The node's store of metadata.
    type Metadata: MetadataStore;

    /// This node's name.
    fn node(&self) -> NodeId;

    /// The time since the machine started. Never runs backwards.
    fn now(&self) -> Instant;

    /// The time since 1970 began, as the node's clock on the wall has it. A simulated machine starts in 1970.
    ///
    /// For telling people when something was, or that a clock is wrong. It may run backwards, and nothing may depend
    /// on it.
    fn date(&self) -> Duration;

    /// The computer that the node runs on, with what its processors have done; none if that is not known.
    ///
    /// For telling people what disturbs a measurement. Nothing may depend on it.
    fn computer(&self) -> Option<Computer>;

    /// Waits until `deadline`; not at all if it has passed.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()>;

    /// Starts a task of this node that runs on its own.
    ///
    /// Its error is never lost: on a simulated machine it ends the run, on a real one it is reported. `name`
    /// is what the report calls the task.
    fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static);

    /// Runs `work` so that a panic in it, a defect, costs no more than this work: on a real machine the panic is
    /// reported under `name` and becomes an error here. On a simulated machine it propagates to the caller of the
    /// simulation, so that tests see it.
    fn contain<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T>> {
        let _ = name;
        async { Ok(work.await) }
    }

    /// Occupies the node's processor for as long as `work` takes there.
    ///
    /// A simulated machine looks the cost up in its description and waits for the processor. On a real one
    /// the work itself takes the time, and this does nothing.
    fn compute(&self, work: Work) -> impl Future<Output = ()>;

    /// The node's access to the network.
    fn net(&self) -> &Self::Net;

    /// The node's own disks.
    fn disks(&self) -> &[Self::Disk];

    /// Where the node keeps metadata, if it has a place for them.
    fn metadata(&self) -> Option<&Self::Metadata>;

    /// The node's memory for transfers.
    fn buffers(&self) -> &BufferPool;

    /// Where the node notes what happens, for a listener. Notes change nothing of what happens.
    fn notes(&self) -> &NodeNotes;
}

/// A node's knowledge of the computer it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computer {
    /// Identifies one run of the computer: all nodes on it have the same number until it is started anew.
    pub id: u64,
    /// How many processors it has.
    pub processors: u32,
    /// Busy time of its processors since it was started, for all programs, summed over the processors.
    pub worked: Duration,
    /// Busy time of its processors for this node.
    pub worked_for_node: Duration,
}

/// How urgent a message is, the most urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Commands and their answers. They are small and never wait behind data.
    Control,
    /// Data that a caller waits for, and requests for them.
    #[default]
    Demand,
    /// Data that no caller waits for yet, prefetched or written behind, and requests for them.
    Background,
}

impl Class {
    /// All of them, the most urgent first.
    pub const ALL: [Class; 3] = [Class::Control, Class::Demand, Class::Background];
}

/// A message between nodes: a header that the file system encodes, and data that it does not look into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// How urgent it is.
    pub class: Class,
    /// Real bytes in both worlds, so that the codec is always exercised.
    pub header: Vec<u8>,
    /// Data that travel with it.
    pub payload: Payload,
}

impl Message {
    /// The longest header a machine has to carry, in bytes.
    pub const HEADER_BYTES_MAX: usize = 64 * 1024;
    /// The longest payload a machine has to carry, in bytes.
    pub const PAYLOAD_BYTES_MAX: u64 = 4 * 1024 * 1024;
    /// The longest payload of a message of class [`Control`](Class::Control), in bytes.
    pub const CONTROL_PAYLOAD_BYTES_MAX: u64 = 4 * 1024;
}

/// An event that a node receives from the network.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// A message from the node.
    Message(Message),
    /// The node is gone, for the reason given; nothing more comes from it under this connection.
    Gone(String),
}

/// Reliable messages between nodes, in order for each pair and [`Class`].
///
/// A message may overtake others of the same pair that are less urgent, wherever they wait.
pub trait Net {
    /// Sends `message` to node `to`.
    ///
    /// Completes when the message has left this node: its payload is no longer looked at, and messages sent to the same
    /// node later in the same class arrive later. Says nothing about arrival.
    fn send(&self, to: NodeId, message: Message) -> impl Future<Output = Result<()>>;

    /// Waits for the next message, or the loss of a peer. Fails once the network is closed.
    fn receive(&self) -> impl Future<Output = Result<(NodeId, Delivery)>>;

    /// Ends the connection to `peer`, if there is one, because it breaks the protocol or does not progress:
    /// `receive` reports on both sides that the other is gone, here with this reason. Messages that arrived earlier
    /// may still be received first.
    fn give_up(&self, peer: NodeId, why: &str);

    /// Closes this node's network: its peers hear that it is gone, its own `receive` fails.
    fn close(&self);
}

/// An open object on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// Metadata of an object on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The name under which it is read and written from now on.
    pub id: ObjectId,
    /// The label written by its creator.
    pub label: Vec<u8>,
    /// Its length.
    pub bytes: u64,
}

/// The [identity](Disk::identity) that no disk has: it stands for a disk that is not known.
pub const NO_DISK: u64 = u64::MAX;

/// How much a disk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it, in bytes.
    pub bytes: u64,
    /// Free space for this node, in bytes.
    pub free: u64,
}

/// One disk: a store of named objects, each an extensible array of bytes with a label.
///
/// The disk decides where an object lies, as in reality the file system below does: a simulated disk lays objects out
/// as its description says, a real one keeps each in a file.
pub trait Disk {
    /// Makes an empty object named `name`, carrying `label`. Fails if there is one of that name.
    ///
    /// It does not wait for the medium. If the power fails before the object has been [flushed](Self::flush) for the
    /// first time, the object may be missing, and [`list`](Self::list) may then give a name without an object.
    fn create(&self, name: &str, label: &[u8]) -> impl Future<Output = Result<Object>>;

    /// Opens the object named `name`.
    fn open(&self, name: &str) -> impl Future<Output = Result<Object>>;

    /// The names of all objects, sorted.
    fn list(&self) -> impl Future<Output = Result<Vec<String>>>;

    /// Removes the object named `name`. A caller that has it open can go on reading it.
    ///
    /// It does not wait for the medium: after a power cut the object may be there again.
    fn remove(&self, name: &str) -> impl Future<Output = Result<()>>;

    /// Removes those objects of these names that exist, as [`remove`](Self::remove) does. If one cannot be removed the
    /// others still are; the first failure is told.
    fn remove_all(&self, names: &[String]) -> impl Future<Output = Result<()>> {
        async move {
            let mut outcome = Ok(());
            for name in names {
                match self.remove(name).await {
                    Err(error) if !matches!(*error, Error::NotFound { .. }) => {
                        outcome = outcome.and(Err(error))
                    }
                    _ => {}
                }
            }
            outcome
        }
    }

    /// Cuts the object to `bytes`, or extends it to them with zeros.
    fn resize(&self, object: ObjectId, bytes: u64) -> impl Future<Output = Result<()>>;

    /// Fills all of `into` with the object's bytes from `offset` on and gives it back; what lies past the
    /// object's end is zeros.
    ///
    /// If the future is dropped the transfer still completes, and the buffer then returns to its pool.
    fn read(&self, object: ObjectId, offset: u64, into: Buf) -> impl Future<Output = Result<Buf>>;

    /// Writes `from` at `offset`, extending the object if need be.
    fn write(&self, object: ObjectId, offset: u64, from: Payload) -> impl Future<Output = Result<()>>;

    /// The first stretch of the object at `offset` or after it that may be anything but zeros; none if nothing is. What
    /// was never written counts as zeros only as far as the disk can tell: its unit may be larger than what was
    /// written.
    fn data_after(&self, object: ObjectId, offset: u64) -> impl Future<Output = Result<Option<Range<u64>>>>;

    /// Waits until everything written to the object is on the medium, and the existence of the object, too.
    ///
    /// If the medium fails, nobody can say later what it has: no flush of the object succeeds then as long as the node
    /// runs.
    fn flush(&self, object: ObjectId) -> impl Future<Output = Result<()>>;

    /// Capacity and free space of the disk; none if no bound is known.
    fn space(&self) -> impl Future<Output = Result<Option<Space>>>;

    /// A number drawn at random that tells the disk from all others for as long as it has objects, even if it is moved
    /// to another node. Two disks have the same only if one is a copy of the other, and none has [`NO_DISK`].
    fn identity(&self) -> impl Future<Output = Result<u64>>;

    /// Identifies the device of the disk among those of the same computer; none if that is not known.
    ///
    /// For reports about which disks share one. Nothing may depend on it.
    fn device(&self) -> Option<u64>;

    /// Whether its speed is independent of other disks on its device. For reports, too.
    fn has_own_pace(&self) -> bool;

    /// A number that grows with the physical position of the object's byte at `offset`, as far as known.
    ///
    /// Good for sorting accesses by position, and for nothing else.
    fn position(&self, object: ObjectId, offset: u64) -> u64;

    /// Notes that a task has waited since `since` for its turn to use this disk, and has it now.
    ///
    /// The order of turns is the file system's, so only it knows. For a machine that tells where time goes; others
    /// do nothing.
    fn waited_since(&self, _since: Instant) {}

    /// Notes that from now on writes of `bytes` bytes altogether are pending at this disk: they wait for their turn, or
    /// have it.
    ///
    /// Only the file system knows which requests wait.
    fn writes_pending(&self, _bytes: u64) {}

    /// Notes that reads are held up at this disk by writes of other nodes, of which node `by` has `writes` waiting.
    fn reads_held_up(&self, _by: NodeId, _writes: u64) {}
}
