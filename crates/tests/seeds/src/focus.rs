//! Schedules that aim at rare places.
//!
//! Some places need several faults and operations of few kinds, which an even draw almost never combines. So one
//! schedule in eight has a focus: operations and faults of a few kinds on few files, or repeated faults.

use crate::draw::Draw;
use crate::schedule::{BYTES, ClientOperation, Fault, FileTarget, NAMES, Schedule, TimedFault, drawn_time};

/// Interval of the seeds with a focus, and the first of them.
const EVERY: u64 = 8;
const FIRST: u64 = 5;

/// Combination of operations and faults.
#[derive(Clone, Copy)]
enum Focus {
    /// Writes under contended locks, whose owners or I/O nodes do not respond for longer than a lease.
    Locks,
    /// Removals of open files with writes in flight, with failed removals and disconnects.
    Removals,
    /// Many small writes with gaps in the same blocks, with disks that fail writes.
    SmallWrites,
    /// Collective operations with a client that is suspended for longer than I/O nodes wait.
    Collectives,
    /// Each fault occurs several times within a short time.
    RepeatedFaults,
}

const ALL: [Focus; 5] =
    [Focus::Locks, Focus::Removals, Focus::SmallWrites, Focus::Collectives, Focus::RepeatedFaults];

impl Schedule {
    /// Draws a schedule.
    pub fn drawn(seed: u64) -> Schedule {
        let mut draw = Draw::of(seed);
        let mut schedule = Schedule::drawn_evenly(seed, &mut draw);
        if seed % EVERY == FIRST {
            let focus = draw.one_of(&ALL);
            schedule.focus_on(focus, &mut draw);
        }
        schedule.add_job(&mut draw);
        schedule
    }

    fn focus_on(&mut self, focus: Focus, draw: &mut Draw) {
        self.at_once = draw.one_of(&[1, 2, 3]);
        if matches!(focus, Focus::Removals) {
            // Writes wait for room in the cache of an I/O node while its disk does not respond.
            self.cache_blocks = 4;
        }
        for program in &mut self.clients {
            for (index, operation) in (0..).zip(program) {
                if !matches!(operation, ClientOperation::Together(_)) && draw.below(8) > 0 {
                    *operation = focus.operation(index, draw).unwrap_or(*operation);
                }
            }
        }
        let count = 2 + draw.below(3);
        for _ in 0..count {
            let client = draw.below(self.clients.len() as u64) as usize;
            let operation = draw.below(self.clients[client].len() as u64) as usize;
            let (io_node, client_hit) =
                (draw.below(self.io_nodes.into()), draw.below(self.clients.len() as u64));
            if let Some(fault) = focus.fault(draw, io_node, client_hit) {
                let at = drawn_time(draw, 16);
                let during = Some((client, operation));
                self.faults.push(TimedFault { during, at, fault });
                if matches!((focus, fault), (Focus::Removals, Fault::HoldDisk(..))) {
                    // The client's writes fail, but wait at the I/O node until the disk responds.
                    let (at, fault) = (at + drawn_time(draw, 19), Fault::Reset(client as u64, io_node));
                    self.faults.push(TimedFault { during, at, fault });
                }
            }
        }
        if let Some(bits) = focus.interval_bits() {
            for TimedFault { during, at, fault } in self.faults.clone() {
                let again = draw.below(3);
                let mut time = at;
                for _ in 0..again {
                    time += drawn_time(draw, bits);
                    self.faults.push(TimedFault { during, at: time, fault });
                }
            }
        }
    }
}

impl Focus {
    /// Returns the binary logarithm of the longest interval in microseconds between a fault and its repetition.
    fn interval_bits(self) -> Option<u64> {
        match self {
            Focus::RepeatedFaults => Some(14),
            // After a failed write, the client repeats it once.
            Focus::Removals => Some(19),
            Focus::Locks | Focus::SmallWrites | Focus::Collectives => None,
        }
    }

    /// Draws the operation with an index in a program, or returns `None` if every kind is equally useful.
    fn operation(self, index: u64, draw: &mut Draw) -> Option<ClientOperation> {
        let (offset, bytes) = (draw.below(BYTES), 1 + draw.below(BYTES));
        let shared = FileTarget::Shared(0);
        let name = draw.below(NAMES - 1);
        let own = draw.one_of(&[FileTarget::Own(name), FileTarget::Own(name), FileTarget::Unnamed]);
        if matches!(self, Focus::Removals) && draw.below(2) == 0 {
            return Some(removal_step(index, offset, bytes));
        }
        Some(match (self, draw.below(10)) {
            (Focus::Locks, 0..=2) => ClientOperation::Lock(0, offset, bytes, draw.below(4) > 0),
            (Focus::Locks, 3..=5) => ClientOperation::Write(shared, offset, bytes),
            (Focus::Locks, 6) => ClientOperation::Append(shared, bytes),
            (Focus::Locks, 7) => ClientOperation::Send(shared),
            (Focus::Locks, 8) => ClientOperation::Unlock(0),
            (Focus::Locks, _) => ClientOperation::Pause(draw.below(1 << 23)),
            (Focus::Removals, 0) => ClientOperation::Make(name),
            (Focus::Removals, 1..=2) => ClientOperation::Write(own, offset, bytes),
            (Focus::Removals, 3..=4) => ClientOperation::Remove(name),
            (Focus::Removals, 5) => ClientOperation::Replace(name, bytes),
            (Focus::Removals, 6) => ClientOperation::Open(own),
            (Focus::Removals, 7) => ClientOperation::Read(own, offset, bytes, false),
            (Focus::Removals, _) => ClientOperation::Close(own),
            (Focus::SmallWrites, 0..=7) => {
                ClientOperation::Write(shared, draw.below(64) * 16, 1 + draw.below(8))
            }
            (Focus::SmallWrites, 8) => ClientOperation::Send(shared),
            (Focus::SmallWrites, _) => ClientOperation::Sync(shared),
            (Focus::Collectives | Focus::RepeatedFaults, _) => return None,
        })
    }

    /// Draws a fault, or returns `None` if the faults of the schedule suffice.
    fn fault(self, draw: &mut Draw, io_node: u64, client: u64) -> Option<Fault> {
        let (long, few) = ((1 << 22) + draw.below(1 << 24), 1 + draw.below(3));
        Some(match (self, draw.below(6)) {
            (Focus::Locks | Focus::Collectives, 0..=1) => Fault::Isolate(client, long),
            (Focus::Locks, 2) => Fault::HoldDisk(io_node, long),
            (Focus::Locks, 3) => Fault::BlockToIoNode(client, io_node, long),
            (Focus::Locks, 4) => Fault::JumpClock(io_node, draw.below(10_000)),
            (Focus::Locks, _) => Fault::Kill(io_node),
            (Focus::Removals, 0..=1) => Fault::FailRemovals(io_node, few),
            (Focus::Removals, 2) => Fault::Reset(client, io_node),
            (Focus::Removals, 3) => Fault::HoldDisk(io_node, draw.below(1 << 22)),
            (Focus::Removals, 4) => Fault::Kill(io_node),
            (Focus::Removals, _) => Fault::FillDisk(io_node, draw.below(4) * 4096, drawn_time(draw, 22)),
            (Focus::SmallWrites, 0..=2) => Fault::FailWrites(io_node, few),
            (Focus::SmallWrites, 3) => Fault::HoldDisk(io_node, drawn_time(draw, 22)),
            (Focus::SmallWrites, 4) => Fault::FillDisk(io_node, draw.below(4) * 512, drawn_time(draw, 22)),
            (Focus::SmallWrites, _) => Fault::PowerCut(io_node),
            (Focus::Collectives, 2..=3) => Fault::BlockToClient(io_node, client, long),
            (Focus::Collectives, _) => Fault::BlockToIoNode(client, io_node, long),
            (Focus::RepeatedFaults, _) => return None,
        })
    }
}

/// Returns a step of the sequence that creates, writes, closes and removes a private file.
fn removal_step(index: u64, offset: u64, bytes: u64) -> ClientOperation {
    const STEPS: u64 = 5;
    let name = index / STEPS % (NAMES - 1);
    let file = FileTarget::Own(name);
    match index % STEPS {
        0 => ClientOperation::Make(name),
        1 => ClientOperation::Write(file, 0, BYTES),
        2 => ClientOperation::Write(file, offset, bytes),
        3 => ClientOperation::Close(file),
        _ => ClientOperation::Remove(name),
    }
}
