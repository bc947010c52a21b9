//! Schedules: programs of clients and faults, as values that can be drawn, printed, cut and repeated.

use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::job_settings::JobSettings;

/// Number of shared files. All clients may open each of them.
pub(crate) const SHARED: u64 = 2;

/// Number of names in the private directory of a client.
pub(crate) const NAMES: u64 = 3;

/// Maximum length in bytes of a write, and of a file where it is drawn.
pub(crate) const BYTES: u64 = 9 * 512;

/// Complete description of a run: the same schedule gives the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Seed of the order of tasks and of the unflushed changes that survive a power cut.
    pub seed: u64,
    /// Built-in description of the machine.
    pub machine: String,
    /// Speed of the processors, as a binary logarithm relative to an eighth of the described one.
    pub speed: u32,
    /// True for the configuration of agents, false for that of the report.
    pub agents: bool,
    /// True if ready tasks run in a drawn order.
    pub drawn_order: bool,
    /// Number of I/O nodes.
    pub io_nodes: u32,
    /// Number of blocks in the cache of an I/O node.
    pub cache_blocks: u64,
    /// Number of threads of an I/O node; 0 for a thread for each request.
    pub threads: u64,
    /// Number of pages in the page cache of a client.
    pub pages: u64,
    /// Time in microseconds after which a client sends writes; 0 for only when it must.
    pub send_after: u64,
    /// True if all clients persist everything after the last fault, and must succeed.
    pub recovers: bool,
    /// Number of operations that a client executes at a time.
    pub at_once: u64,
    /// True if the I/O nodes store objects in the format of real disks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub formatted: bool,
    /// Job of some clients; `None` if no client has a write cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobSettings>,
    /// Collective operations, which all clients enter in this order.
    pub collectives: Vec<CollectiveAccess>,
    /// Operations of each client.
    pub clients: Vec<Vec<ClientOperation>>,
    /// Faults, in any order.
    pub faults: Vec<TimedFault>,
}

/// Collective operation: client `c` of `n` accesses the records `c`, `c + n`, `c + 2 n`, ... after an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveAccess {
    /// Shared file.
    pub file: u64,
    /// True for a write.
    pub writes: bool,
    /// Records of the first client. Those of the others follow in its gaps.
    #[serde(flatten)]
    pub records: StridedRecords,
    /// True if the clients sync the file together afterwards.
    pub syncs: bool,
}

/// File of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FileTarget {
    /// File that all clients share.
    Shared(u64),
    /// Name in the client's private directory.
    Own(u64),
    /// File that the client has open and that has lost its private names.
    Unnamed,
}

/// Operation of a client. Operations on contents open the file unless the client has it open. A member of a job writes
/// the shared files through its write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientOperation {
    /// Writes at an offset.
    Write(FileTarget, u64, u64),
    /// Appends this number of bytes.
    Append(FileTarget, u64),
    /// Sets the length.
    Cut(FileTarget, u64),
    /// Reads at an offset; after a query of the size if the last field is true.
    Read(FileTarget, u64, u64, bool),
    /// Sends writes to the I/O nodes.
    Send(FileTarget),
    /// Persists the file.
    Sync(FileTarget),
    /// Opens the file once more.
    Open(FileTarget),
    /// Closes one of the client's handles of the file.
    Close(FileTarget),
    /// Writes records, with gaps of the same length.
    WriteRecords(FileTarget, StridedRecords),
    /// Reads records, with gaps of the same length.
    ReadRecords(FileTarget, StridedRecords),
    /// Creates a private file under a name that must be free.
    Make(u64),
    /// Creates a private file under a hidden name, writes it and renames it over a name.
    Replace(u64, u64),
    /// Renames a private file and replaces the target.
    Rename(u64, u64),
    /// Gives a private file another name, which must be free.
    Link(u64, u64),
    /// Removes a private name.
    Remove(u64),
    /// Lists the private directory.
    List,
    /// Persists all changes of names.
    FlushNames,
    /// Persists everything.
    SyncAll,
    /// Locks a range of a shared file, exclusively if the last field is true.
    Lock(u64, u64, u64, bool),
    /// Releases all locks on a shared file.
    Unlock(u64),
    /// Waits for this number of microseconds.
    Pause(u64),
    /// Takes part in the collective operation with this index.
    Together(usize),
    /// Flushes the writes of all members of the job to a shared file, or to all files.
    FlushJob(Option<u64>),
    /// Flushes the writes of this process and leaves the job. A later write joins it again.
    LeaveJob,
}

/// Equally long records of a client, with equal gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StridedRecords {
    /// Offset of the first record.
    pub offset: u64,
    /// Size of a record in bytes.
    pub record: u64,
    /// Number of records.
    pub count: u64,
    /// True for two-phase, false for disk-directed.
    pub in_two_phases: bool,
}

/// Fault at a time, or during an operation: many faults do harm only while a certain operation is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedFault {
    /// Client and index of the operation after whose start the time counts; `None` for the start of the programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<(usize, usize)>,
    /// Time in microseconds.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// Fault. Durations are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The power of an I/O node fails; it restarts at once.
    PowerCut(u64),
    /// The process of an I/O node is killed; it restarts at once.
    Kill(u64),
    /// A client is killed. Another process continues its program after the second number of microseconds.
    KillClient(u64, u64),
    /// The connection of a client to an I/O node is reset.
    Reset(u64, u64),
    /// Messages of a client to an I/O node are delayed.
    BlockToIoNode(u64, u64, u64),
    /// Messages of an I/O node to a client are delayed.
    BlockToClient(u64, u64, u64),
    /// Messages of an I/O node to another one are delayed.
    BlockBetween(u64, u64, u64),
    /// All messages from and to a client are delayed, as if it was suspended.
    Isolate(u64, u64),
    /// The disk of an I/O node does not respond for a time.
    HoldDisk(u64, u64),
    /// This number of writes to a disk fail.
    FailWrites(u64, u64),
    /// This number of flushes of a disk fail.
    FailFlushes(u64, u64),
    /// The medium fails in this number of flushes: flushes of the same objects fail until the node restarts.
    FailMedium(u64, u64),
    /// This number of transactions of a metadata store fail.
    FailTransactions(u64, u64),
    /// This number of removals of objects fail.
    FailRemovals(u64, u64),
    /// A disk has this number of free bytes for the duration of the last field.
    FillDisk(u64, u64, u64),
    /// A bit flips in the memory of an I/O node after a read from its disk.
    FlipRead(u64),
    /// A bit flips in the memory of an I/O node before a write to its disk.
    FlipWrite(u64),
    /// Stored data of an I/O node are damaged. The number determines which.
    Damage(u64, u64),
    /// The clock of an I/O node jumps ahead by this number of milliseconds.
    JumpClock(u64, u64),
    /// The next write to the medium of an I/O node succeeds, but changes nothing.
    LoseWrite(u64),
    /// The next write to the medium of an I/O node changes another place.
    MisdirectWrite(u64),
}

impl Fault {
    /// Number of kinds of faults.
    pub(crate) const KINDS: u64 = 21;

    /// Draws a fault of the kind `kind`.
    pub(crate) fn drawn(kind: u64, draw: &mut Draw, io_nodes: u64, clients: u64) -> Fault {
        let (io_node, client) = (draw.below(io_nodes), draw.below(clients));
        let few = 1 + draw.below(3);
        match kind {
            0 => Fault::PowerCut(io_node),
            1 => Fault::Kill(io_node),
            2 => Fault::KillClient(client, drawn_time(draw, 24)),
            3 => Fault::Reset(client, io_node),
            4 => Fault::BlockToIoNode(client, io_node, drawn_time(draw, 24)),
            5 => Fault::BlockToClient(io_node, client, drawn_time(draw, 24)),
            6 => Fault::HoldDisk(io_node, drawn_time(draw, 22)),
            7 => Fault::FailWrites(io_node, few),
            8 => Fault::FailFlushes(io_node, few),
            9 => Fault::FailMedium(io_node, few),
            10 => Fault::FailTransactions(io_node, few),
            11 => Fault::FailRemovals(io_node, few),
            12 => Fault::FillDisk(io_node, draw.below(20) * 4096, drawn_time(draw, 22)),
            13 => Fault::FlipRead(io_node),
            14 => Fault::FlipWrite(io_node),
            15 => Fault::BlockBetween(io_node, draw.below(io_nodes), drawn_time(draw, 24)),
            16 => Fault::Isolate(client, drawn_time(draw, 24)),
            17 => Fault::Damage(io_node, draw.below(1 << 32)),
            18 => Fault::LoseWrite(io_node),
            19 => Fault::MisdirectWrite(io_node),
            _ => Fault::JumpClock(io_node, draw.below(20_000)),
        }
    }
}

/// Draws a time in microseconds below 2^`bits`: each order of magnitude is equally probable.
pub(crate) fn drawn_time(draw: &mut Draw, bits: u64) -> u64 {
    let most = 1 << (1 + draw.below(bits));
    draw.below(most)
}

impl Schedule {
    /// Draws a schedule. A run has a drawn half of the kinds of operations and a third of those of faults, so that each
    /// pair of kinds often occurs without the others.
    pub(crate) fn drawn_evenly(seed: u64, draw: &mut Draw) -> Schedule {
        let io_nodes = 1 + draw.below(4);
        let most = draw.one_of(&[1, 2, 2, 3, 6]);
        let clients = 1 + draw.below(most);
        let length = draw.one_of(&[6, 12, 25, 40]);
        let is_possible: Vec<bool> = (0..ClientOperation::KINDS).map(|_| draw.below(2) == 0).collect();
        let style = Style {
            targets: draw.below(4),
            grid: draw.one_of(&[1, 1, 64, 512]),
            pause: draw.one_of(&[20, 20, 23]),
        };
        let programs = (0..clients).map(|_| {
            let mut program = Vec::new();
            while program.len() < length {
                let kind = draw.below(ClientOperation::KINDS);
                if is_possible[kind as usize] || kind < 3 {
                    program.push(ClientOperation::drawn(kind, draw, &style));
                }
            }
            program
        });
        let mut programs: Vec<Vec<ClientOperation>> = programs.collect();
        let collectives: Vec<CollectiveAccess> =
            (0..draw.one_of(&[0, 0, 1, 3])).map(|_| CollectiveAccess::drawn(draw)).collect();
        for program in &mut programs {
            let mut place = 0;
            for index in 0..collectives.len() {
                place += draw.below((program.len() - place) as u64 + 1) as usize;
                program.insert(place, ClientOperation::Together(index));
                place += 1;
            }
        }
        // One run in five has no fault: then every operation must succeed.
        let is_armed: Vec<bool> = (0..Fault::KINDS).map(|_| draw.below(3) == 0).collect();
        let count = draw.one_of(&[0, 1, 2, 4, 8]);
        let mut faults = Vec::new();
        for _ in 0..count {
            let kind = draw.below(Fault::KINDS);
            if is_armed[kind as usize] {
                let client = draw.below(clients) as usize;
                let during = (draw.below(2) == 0)
                    .then(|| (client, draw.below(programs[client].len() as u64) as usize));
                let at = drawn_time(draw, if during.is_some() { 16 } else { 22 });
                faults.push(TimedFault { during, at, fault: Fault::drawn(kind, draw, io_nodes, clients) });
            }
        }
        Schedule {
            seed,
            machine: draw.one_of(&crate::testbed::MACHINES).into(),
            speed: draw.below(7) as u32,
            agents: draw.below(2) == 0,
            drawn_order: draw.below(2) == 0,
            io_nodes: io_nodes as u32,
            cache_blocks: 4 + draw.below(20),
            threads: draw.one_of(&[0, 2, 4]),
            pages: 4 + draw.below(16),
            send_after: draw.one_of(&[0, 1_000, 2_000_000]),
            recovers: draw.below(2) == 0,
            at_once: draw.one_of(&[1, 1, 2, 3]),
            formatted: draw.below(2) == 0,
            job: None,
            collectives,
            clients: programs,
            faults,
        }
    }

    /// Returns the number of operations and faults.
    pub fn size(&self) -> usize {
        self.clients.iter().map(Vec::len).sum::<usize>() + self.faults.len()
    }
}

/// Returns a value as JSON in one line.
fn line_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it has string keys")
}

impl Schedule {
    /// Returns the schedule without `count` operations and faults from the `first` on: first the faults, then the
    /// operations client by client.
    pub(crate) fn without(&self, first: usize, count: usize) -> Schedule {
        let mut index = 0..;
        let mut stays = || !(first..first + count).contains(&index.next().expect("endless"));
        let mut left = self.clone();
        left.faults.retain(|_| stays());
        let mut kept: Vec<Vec<bool>> =
            left.clients.iter().map(|program| program.iter().map(|_| stays()).collect()).collect();
        // A collective operation without one of the clients would never end.
        for index in 0..self.collectives.len() {
            let together = ClientOperation::Together(index);
            let place = |program: &Vec<ClientOperation>| program.iter().position(|other| *other == together);
            let places: Vec<_> = self.clients.iter().map(place).collect();
            let is_whole = (0..)
                .zip(&places)
                .all(|(client, place): (usize, _)| place.is_some_and(|place| kept[client][place]));
            for (client, place) in places.into_iter().enumerate().filter(|_| !is_whole) {
                place.into_iter().for_each(|place| kept[client][place] = false);
            }
        }
        for (program, kept) in left.clients.iter_mut().zip(&kept) {
            let mut kept = kept.iter();
            program.retain(|_| *kept.next().expect("one for each operation"));
        }
        left.faults.retain_mut(|fault| {
            let Some((client, operation)) = &mut fault.during else { return true };
            let kept = &kept[*client];
            let stays = kept[*operation];
            *operation = kept[..*operation].iter().filter(|kept| **kept).count();
            stays
        });
        left
    }

    /// Returns the schedule as JSON, with an operation in each line.
    pub fn to_text(&self) -> String {
        let program = |operations: &Vec<ClientOperation>| {
            let lines: Vec<String> =
                operations.iter().map(|operation| format!("\n    {}", line_of(operation))).collect();
            format!("\n  [{}\n  ]", lines.join(","))
        };
        let mut rest = serde_json::to_value(self).expect("it has string keys");
        let fields = rest.as_object_mut().expect("an object");
        fields.remove("clients");
        fields.remove("faults");
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!(" {name:?}: {value},")).collect();
        let faults: Vec<String> = self.faults.iter().map(|fault| format!("\n  {}", line_of(fault))).collect();
        let clients: Vec<String> = self.clients.iter().map(program).collect();
        format!(
            "{{\n{}\n \"faults\": [{}\n ],\n \"clients\": [{}\n ]\n}}\n",
            fields.join("\n"),
            faults.join(","),
            clients.join(",")
        )
    }

    /// Reads a schedule from [`to_text`](Self::to_text).
    ///
    /// # Errors
    /// If it is no schedule.
    pub fn from_text(text: &str) -> Result<Schedule, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// Traits that the operations of a program have in common.
struct Style {
    /// Kinds of files: shared, private, both, or private and unnamed.
    targets: u64,
    /// Common divisor of offsets and lengths in bytes, so that ranges often have equal ends.
    grid: u64,
    /// Binary logarithm of the longest pause in microseconds.
    pause: u64,
}

impl StridedRecords {
    fn drawn(draw: &mut Draw, offset: u64) -> StridedRecords {
        let (record, count) = (draw.one_of(&[8, 100, 512, 700]), 1 + draw.below(4));
        StridedRecords { offset, record, count, in_two_phases: draw.below(2) == 0 }
    }
}

impl CollectiveAccess {
    fn drawn(draw: &mut Draw) -> CollectiveAccess {
        let (file, writes, offset) = (draw.below(SHARED), draw.below(3) > 0, draw.below(BYTES));
        let records = StridedRecords::drawn(draw, offset);
        CollectiveAccess { file, writes, records, syncs: draw.below(2) == 0 }
    }
}

impl ClientOperation {
    /// Returns the operation with offsets and lengths in whole blocks.
    pub(crate) fn aligned(self) -> ClientOperation {
        self.map(|value| value.next_multiple_of(crate::testbed::BLOCK))
    }

    /// Returns true if the operation reads or changes names.
    pub(crate) fn is_of_names(self) -> bool {
        matches!(
            self,
            ClientOperation::Make(_)
                | ClientOperation::Replace(..)
                | ClientOperation::Rename(..)
                | ClientOperation::Link(..)
                | ClientOperation::Remove(_)
                | ClientOperation::List
                | ClientOperation::FlushNames
                | ClientOperation::SyncAll
        )
    }

    /// Returns the operation with smaller offsets and lengths.
    pub(crate) fn halved(self) -> ClientOperation {
        self.map(|value| value.div_ceil(2))
    }

    fn map(self, change: impl Fn(u64) -> u64) -> ClientOperation {
        match self {
            ClientOperation::Write(target, offset, bytes) => {
                ClientOperation::Write(target, change(offset), change(bytes))
            }
            ClientOperation::Append(target, bytes) => ClientOperation::Append(target, change(bytes)),
            ClientOperation::Cut(target, length) => ClientOperation::Cut(target, change(length)),
            ClientOperation::Replace(name, bytes) => ClientOperation::Replace(name, change(bytes)),
            ClientOperation::Lock(file, offset, bytes, mode) => {
                ClientOperation::Lock(file, change(offset), change(bytes), mode)
            }
            ClientOperation::Pause(time) => ClientOperation::Pause(time / 2),
            other => other,
        }
    }

    const KINDS: u64 = 21;

    fn drawn(kind: u64, draw: &mut Draw, style: &Style) -> ClientOperation {
        let shared = draw.below(SHARED);
        let (name, other) = (draw.below(NAMES), draw.below(NAMES));
        let target = match style.targets {
            0 => FileTarget::Shared(shared),
            1 => FileTarget::Own(name),
            2 => draw.one_of(&[FileTarget::Shared(shared), FileTarget::Own(name)]),
            _ => draw.one_of(&[FileTarget::Own(name), FileTarget::Own(name), FileTarget::Unnamed]),
        };
        let grid = style.grid;
        let (offset, bytes) =
            (draw.below(BYTES) / grid * grid, (1 + draw.below(BYTES)).next_multiple_of(grid));
        match kind {
            0 => ClientOperation::Write(target, offset, bytes),
            1 => ClientOperation::Read(target, 0, 4 * BYTES, draw.below(2) == 0),
            2 => ClientOperation::Sync(target),
            3 => ClientOperation::Append(target, (bytes / 4 + 1).next_multiple_of(grid)),
            4 => ClientOperation::Cut(target, offset),
            5 => ClientOperation::Read(target, offset, bytes, draw.below(2) == 0),
            6 => ClientOperation::Send(target),
            7 => ClientOperation::Close(target),
            8 => ClientOperation::Make(name),
            9 => ClientOperation::Replace(name, bytes),
            10 => ClientOperation::Rename(name, other),
            11 => ClientOperation::Link(name, other),
            12 => ClientOperation::Remove(name),
            13 => {
                if draw.below(2) == 0 {
                    ClientOperation::FlushNames
                } else {
                    ClientOperation::SyncAll
                }
            }
            14 => ClientOperation::Lock(shared, offset, bytes, draw.below(2) == 0),
            15 => ClientOperation::Unlock(shared),
            16 => ClientOperation::Pause(drawn_time(draw, style.pause)),
            17 => ClientOperation::Open(target),
            18 => ClientOperation::List,
            19 => ClientOperation::WriteRecords(target, StridedRecords::drawn(draw, offset)),
            _ => ClientOperation::ReadRecords(target, StridedRecords::drawn(draw, offset)),
        }
    }
}
