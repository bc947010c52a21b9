//! Traits through which a file system uses the machine that it runs on.
//!
//! A file system sees the world only through the traits of this crate: clock, tasks, processor costs, messages, disks
//! and bounded buffers. One type parameter, [`Machine`], bundles them. Two crates implement the traits: `sim` in
//! virtual time, `real` with sockets and files. `fs` can import neither crate. The functions in [`conformance`] check
//! the laws that both must keep.
//!
//! Map of the code, in reading order:
//!
//! - [`Machine`], [`Net`], [`Disk`] in `lib.rs`: the traits; start here
//! - `time.rs`: instants and durations in nanoseconds
//! - `payload.rs`: data that fs moves without reading, real or phantom; `checksums.rs`: their checksums
//! - `buffer.rs`: buffer pools; `slot.rs`: memory of buffers and payloads; `memory.rs`: memory of a compute node for
//!   its data; `lent.rs`: memory of another thread
//! - `condition.rs`: condition variable for tasks of one node; built on it: `in_flight.rs`, `ordered_queue.rs`,
//!   `permits.rs`, `task_group.rs`, `first_failure.rs`, `first_of.rs`; `yield_now.rs`: yields to other tasks
//! - `metadata.rs`: key-value store with transactions
//! - `range_set.rs`: sets of offsets as ranges
//! - `work.rs`: names of processor work; `error.rs`: errors; `decimal.rs`, `size.rs`: parsers of numbers and sizes;
//!   `mix.rs`: hash of a number
//! - `notes.rs`: events on a node for a listener; `lanes.rs`: their rows; `recorder.rs`: trait of the listener;
//!   `note_ring.rs`: ring buffer of the last events
//! - `conformance.rs`: the laws; `marks.rs`: marks of rare places, for tests
//!
//! The traits have no functions for randomness, because the configuration provides seeds, and none for paths. They
//! have none for connections: the file system names nodes, and the machine connects. For a timeout, use a sleep and the
//! operation with `first_of`. No function distinguishes machines.

mod buffer;
mod checksums;
mod condition;
pub mod conformance;
mod decimal;
mod error;
mod first_failure;
mod first_of;
mod in_flight;
mod lanes;
mod lent;
pub mod marks;
mod memory;
mod metadata;
mod mix;
mod note_ring;
mod notes;
mod ordered_queue;
mod payload;
mod permits;
mod range_set;
mod recorder;
mod size;
mod slot;
mod task_group;
mod time;
mod work;
mod yield_now;

use std::fmt;
use std::future::Future;
use std::ops::Range;

pub use buffer::{Buf, BufferPool};
pub use checksums::{CHECKSUM_UNIT_BYTES, ChecksumMismatch, Checksums};
pub use condition::{Condition, Wait};
pub use decimal::Decimal;
pub use error::{Error, KeyMismatch, NodePart, Result};
pub use first_of::first_of;
pub use in_flight::{InFlight, OperationInFlight};
pub use lanes::SpanPlace;
pub use lent::LentMemory;
pub use memory::{Loan, Memory};
pub use metadata::{
    METADATA_KEY_BYTES_MAX, METADATA_VALUE_BYTES_MAX, MetadataAttempt, MetadataChanges, MetadataEntries,
    MetadataEntry, MetadataStore, MetadataTable, Transaction, check_metadata_bytes,
};
pub use mix::mix;
pub use note_ring::{KeptEvent, KeptNote, NoteRing, NoteRow};
pub use notes::{NodeNotes, NotedSpan, NotedStretch, Present};
pub use ordered_queue::{OrderedQueue, QueuePosition};
pub use payload::{Payload, PayloadPiece, PayloadReader, SharedBytes, Source};
pub use permits::{Permit, Permits};
pub use range_set::RangeSet;
pub use recorder::{NotedEvent, Recorder, RowId};
pub use size::{SIZE_UNITS, parse_bytes};
pub use task_group::TaskGroup;
pub use time::{Duration, Instant};
pub use work::Work;
pub use yield_now::yield_now;

/// Identifier of a node, unique among nodes that communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {:x}", self.0)
    }
}

/// Node of a parallel machine, real or simulated.
///
/// A `Machine` is a handle: cloning is cheap. A node lives on one thread, so no type of the machine is `Send`, and
/// tasks of a node share their state in plain cells.
pub trait Machine: Clone + 'static {
    /// Network interface of the node.
    type Net: Net;
    /// Disk of the node.
    type Disk: Disk;
    /// Metadata store of the node.
    type Metadata: MetadataStore;

    /// Returns this node's identifier.
    fn node(&self) -> NodeId;

    /// Returns the time since the machine started. Never runs backwards.
    fn now(&self) -> Instant;

    /// Returns the wall-clock time since the start of 1970. A simulated machine starts in 1970.
    ///
    /// For reports to people only: the wall clock can run backwards, and the behaviour of a node must not depend on it.
    fn date(&self) -> Duration;

    /// Returns the computer that the node runs on, with the load of its processors; `None` if unknown.
    ///
    /// For reports on disturbed measurements only. The behaviour of a node must not depend on the result.
    fn computer(&self) -> Option<Computer>;

    /// Sleeps until `deadline`; returns at once if it has passed.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()>;

    /// Spawns a detached task of this node.
    ///
    /// An error of the task is never lost: a simulated machine ends the run, and a real machine reports the error with
    /// the task's `name`.
    fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static);

    /// Runs `work`, and keeps a panic in `work` from ending other work. A real machine reports the panic under `name`
    /// and returns it as an error. A simulated machine propagates the panic to the caller of the simulation, so that
    /// tests see it.
    fn contain<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T>> {
        let _ = name;
        async { Ok(work.await) }
    }

    /// Occupies the node's processor for the cost of `work`.
    ///
    /// A simulated machine reads the cost from its description and waits until the processor has done the work. A real
    /// machine does nothing, because the work itself takes the time.
    fn compute(&self, work: Work) -> impl Future<Output = ()>;

    /// Returns the node's network interface.
    fn net(&self) -> &Self::Net;

    /// Returns the node's disks.
    fn disks(&self) -> &[Self::Disk];

    /// Returns the node's metadata store, if it has one.
    fn metadata(&self) -> Option<&Self::Metadata>;

    /// Returns the node's pool of transfer buffers.
    fn buffers(&self) -> &BufferPool;

    /// Returns the recorder of events on this node. Recording never changes the behaviour of a node.
    fn notes(&self) -> &NodeNotes;
}

/// Computer that a node runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computer {
    /// Boot identifier of the computer: the same for all nodes on it until it restarts.
    pub id: u64,
    /// Number of processors.
    pub processors: u32,
    /// Busy time of all processors since the computer started, for all programs, summed over processors.
    pub worked: Duration,
    /// Busy time of all processors for this node.
    pub worked_for_node: Duration,
}

/// Priority of a message, the most urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Commands and their answers. Control messages are small and never wait behind data.
    Control,
    /// Data that a caller waits for, and requests for such data.
    #[default]
    Demand,
    /// Data without a waiting caller (prefetching and write-behind), and requests for such data.
    Background,
}

impl Class {
    /// All classes, the most urgent first.
    pub const ALL: [Class; 3] = [Class::Control, Class::Demand, Class::Background];
}

/// Message between nodes: a header that the file system encodes, and data that it does not read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// Priority.
    pub class: Class,
    /// Encoded header: real bytes on both machines, so that simulations also test the encoding.
    pub header: Vec<u8>,
    /// Attached data.
    pub payload: Payload,
}

impl Message {
    /// Maximum length in bytes of a header that a machine must carry.
    pub const HEADER_BYTES_MAX: usize = 64 * 1024;
    /// Maximum length in bytes of a payload that a machine must carry.
    pub const PAYLOAD_BYTES_MAX: u64 = 4 * 1024 * 1024;
    /// Maximum length in bytes of the payload of a [`Control`](Class::Control) message.
    pub const CONTROL_PAYLOAD_BYTES_MAX: u64 = 4 * 1024;
}

/// Event from the network.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// A message from the node.
    Message(Message),
    /// The node disconnected, for this reason. The connection delivers nothing more from this node.
    Gone(String),
}

/// Network that delivers messages reliably, and in order among messages with the same sender, receiver and [`Class`].
///
/// In any queue a message can overtake less urgent messages of the same sender and receiver.
pub trait Net {
    /// Sends `message` to node `to`.
    ///
    /// Completes when the message has left this node. From then on the payload is no longer read, and later messages of
    /// the same class to the same node arrive after this message. Completion does not mean that the message has
    /// arrived.
    fn send(&self, to: NodeId, message: Message) -> impl Future<Output = Result<()>>;

    /// Waits for the next message, or for the disconnection of a peer. Fails once the network is closed.
    fn receive(&self) -> impl Future<Output = Result<(NodeId, Delivery)>>;

    /// Disconnects `peer`, if connected, because it violates the protocol or makes no progress. `receive` reports the
    /// disconnect on both sides, on this side with the reason `why`. `receive` may return earlier messages of the peer
    /// first.
    fn give_up(&self, peer: NodeId, why: &str);

    /// Closes this node's network: its peers see it disconnect, and its own `receive` fails.
    fn close(&self);
}

/// Open object on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// Metadata of an object on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Identifier for reads and writes.
    pub id: ObjectId,
    /// Label written by the object's creator.
    pub label: Vec<u8>,
    /// Length in bytes.
    pub bytes: u64,
}

/// Reserved [identity](Disk::identity) that no disk has. It represents an unknown disk.
pub const NO_DISK: u64 = u64::MAX;

/// Capacity and free space of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Free space for this node, in bytes.
    pub free: u64,
}

/// Disk: a store of named objects, each an extensible array of bytes with a label.
///
/// The disk chooses the location of the objects. A simulated disk does so by its description. A real disk stores each
/// object in a file of the local file system, which chooses the location.
pub trait Disk {
    /// Creates an empty object `name` with label `label`. Fails with [`Error::Exists`] if the name exists.
    ///
    /// Does not wait for the medium. If the power fails before the first [flush](Self::flush) of the object, the object
    /// can be missing afterwards, and [`list`](Self::list) can return its name although it cannot be opened.
    fn create(&self, name: &str, label: &[u8]) -> impl Future<Output = Result<Object>>;

    /// Opens the object `name`.
    fn open(&self, name: &str) -> impl Future<Output = Result<Object>>;

    /// Returns the names of all objects, sorted.
    fn list(&self) -> impl Future<Output = Result<Vec<String>>>;

    /// Removes the object `name`. A caller with the object open can still read it.
    ///
    /// Does not wait for the medium: the object can exist again after a power cut.
    fn remove(&self, name: &str) -> impl Future<Output = Result<()>>;

    /// Removes the existing objects among `names`, as [`remove`](Self::remove) does. Missing objects are no error.
    /// After a failure it still removes the other objects, and then returns the first error.
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

    /// Truncates the object to `bytes`, or extends it to this length with zeros.
    fn resize(&self, object: ObjectId, bytes: u64) -> impl Future<Output = Result<()>>;

    /// Fills all of `into` with the object's bytes from `offset` on, and returns `into`. Bytes past the object's end
    /// are zeros.
    ///
    /// If the future is dropped, the transfer still completes, and the buffer returns to its pool afterwards.
    fn read(&self, object: ObjectId, offset: u64, into: Buf) -> impl Future<Output = Result<Buf>>;

    /// Writes `from` at `offset`, extending the object if necessary.
    fn write(&self, object: ObjectId, offset: u64, from: Payload) -> impl Future<Output = Result<()>>;

    /// Returns the first range of the object at or after `offset` that can contain bytes other than zeros; `None` if
    /// there is no such range. The range can contain unwritten bytes, because the disk distinguishes them only in units
    /// that may be larger than a write.
    fn data_after(&self, object: ObjectId, offset: u64) -> impl Future<Output = Result<Option<Range<u64>>>>;

    /// Flushes all completed writes to the object, and its directory entry, to stable storage.
    ///
    /// After a failure of the medium the contents of the object are unknown: every later flush of the object fails
    /// until the node restarts.
    fn flush(&self, object: ObjectId) -> impl Future<Output = Result<()>>;

    /// Returns the capacity and free space of the disk; `None` if the capacity is unknown or unlimited.
    fn space(&self) -> impl Future<Output = Result<Option<Space>>>;

    /// Returns the random number that identifies the disk as long as it has objects, even if it moves to another node.
    /// Two disks share a number only if one is a copy of the other. No disk has [`NO_DISK`].
    fn identity(&self) -> impl Future<Output = Result<u64>>;

    /// Returns an identifier of the disk's device, unique on the computer; `None` if unknown.
    ///
    /// For reports on disks that share a device. The behaviour of a node must not depend on it.
    fn device(&self) -> Option<u64>;

    /// Returns true if the disk's speed is independent of other disks on its device. For reports only.
    fn has_own_pace(&self) -> bool;

    /// Returns a number that grows with the physical position of the object's byte at `offset`, as far as known.
    ///
    /// Good only for sorting accesses by position.
    fn position(&self, object: ObjectId, offset: u64) -> u64;

    /// Records that a task has waited for its slot at this disk since `since`, until now.
    ///
    /// Only the file system knows this wait, because it orders the slots. Only machines that report how time is spent
    /// record it.
    fn waited_since(&self, _since: Instant) {}

    /// Records the number of bytes of writes pending at this disk from now on: queued or being served.
    ///
    /// Only the file system knows which requests are queued.
    fn writes_pending(&self, _bytes: u64) {}

    /// Records that reads at this disk are delayed by writes of other nodes. Node `by` has `writes` writes in the
    /// queue.
    fn reads_held_up(&self, _by: NodeId, _writes: u64) {}
}
