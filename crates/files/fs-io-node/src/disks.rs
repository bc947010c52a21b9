//! The disks of an I/O node: the turns at each, and the space on each.
//!
//! Reading or writing data of a stripe takes a turn at its disk (`disk_queue.rs`). A limited number of
//! requests is at the disk at a time, and the others wait in the order that the settings choose
//! (`schedule.rs`). Names, sizes and attributes need no turn.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use layout::Extent;
use machine::{Buf, Disk, Duration, Instant, Machine, NodeId, NotedSpan, Work};

use super::counts::IoNodeDiskCounts;
use super::open_stripe::OpenStripe;
use super::stripe_place::Home;
use crate::backlog_detector::HeldUp;
use crate::disk_queue::{DiskQueue, DiskTurn};
use crate::error::{Failure, FailureKind};
use crate::free_space::{DiskFreeSpace, ReservedSpace};
use crate::protocol::Direction;
use crate::schedule::{DiskRequest, DiskUser, Position, Urgency, schedule_of};
use crate::scheduling::Scheduling;
use crate::settings::IoNodeSettings;

/// Limit of a stripe in bytes: half the limit of a file, so that a length plus the overhead of a disk cannot overflow.
const STRIPE_BYTES_MAX: u64 = layout::FILE_BYTES_MAX / 2;

/// Limit of runs of a block that are written one by one. With more runs, the gaps between them are read first, and the
/// span of all runs is written at once.
pub(super) const RUNS_MAX: usize = 4;

/// The right to use a disk, until this is dropped.
pub(super) struct DiskUse<'a, M: Machine> {
    _access: DiskAccess<'a, M>,
    _turn: DiskTurn<'a>,
    _pending: Option<PendingWrite<'a, M>>,
    _span: NotedSpan<'a>,
}

/// An access at the disk, until this is dropped.
struct DiskAccess<'a, M: Machine> {
    disks: &'a Disks<M>,
    disk: usize,
    direction: Direction,
    since: Instant,
}

impl<M: Machine> Drop for DiskAccess<'_, M> {
    fn drop(&mut self) {
        let time = self.disks.machine.now().since(self.since);
        let mut counts = self.disks.counts[self.disk].borrow_mut();
        match self.direction {
            Direction::Read => counts.reads.add(time),
            Direction::Write => counts.writes.add(time),
        }
    }
}

/// A write in the queue or at the disk, until this is dropped.
struct PendingWrite<'a, M: Machine> {
    disks: &'a Disks<M>,
    disk: usize,
    bytes: u64,
}

impl<M: Machine> Drop for PendingWrite<'_, M> {
    fn drop(&mut self) {
        self.disks.change_pending(self.disk, |pending| pending - self.bytes);
    }
}

/// Reads delayed at a disk: see `backlog_detector.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldUpReads {
    /// Number of delayed reads.
    pub(super) reads: u64,
    /// Largest number of writes of one job that waited when a read was delayed.
    pub(super) writes_most: u64,
}

/// Time without delayed reads after which the next one is reported to the machine.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

pub(super) struct Disks<M: Machine> {
    machine: M,
    scheduling: Scheduling,
    queues: Vec<DiskQueue>,
    /// By disk, the bytes of writes in the queue or at the disk.
    writes_pending: Vec<Cell<u64>>,
    /// By disk, the delayed reads and the time of the last one, if there were any.
    held_up: Vec<Cell<Option<(HeldUpReads, Instant)>>>,
    room: DiskFreeSpace,
    /// By disk, the counts of its activity; the fields of the present state are not filled in.
    counts: Vec<RefCell<IoNodeDiskCounts>>,
}

impl<M: Machine> Disks<M> {
    pub(super) fn new(machine: M, settings: &IoNodeSettings) -> Self {
        let schedule = || schedule_of(settings.scheduling);
        let queue = || DiskQueue::new(schedule(), settings.requests_at_disk);
        let queues: Vec<DiskQueue> = machine.disks().iter().map(|_| queue()).collect();
        let (writes_pending, held_up) =
            (vec![Cell::new(0); queues.len()], vec![Cell::new(None); queues.len()]);
        let counts = queues.iter().map(|_| RefCell::default()).collect();
        let (scheduling, room) = (settings.scheduling, DiskFreeSpace::new(queues.len()));
        Disks { machine, scheduling, queues, writes_pending, held_up, room, counts }
    }

    /// Returns the disk of an object.
    pub(super) fn of(&self, home: Home) -> &M::Disk {
        &self.machine.disks()[home.disk]
    }

    /// Returns the position of an object's byte at `offset`, for the order of turns.
    fn position(&self, home: Home, offset: u64) -> Position {
        match self.scheduling {
            Scheduling::PhysicalCyclicScan => (0, self.of(home).position(home.object, offset)),
            _ => (home.object.0, offset),
        }
    }

    /// Waits for a turn to use the disk of an object for a part of it.
    pub(super) async fn turn(
        &self,
        home: Home,
        part: Extent,
        direction: Direction,
        user: DiskUser,
    ) -> DiskUse<'_, M> {
        let position = self.position(home, part.offset);
        let request = DiskRequest { user, direction, position, bytes: part.bytes };
        let pending = (direction == Direction::Write).then(|| self.begin_write(home.disk, part.bytes));
        let asked = self.machine.now();
        let about = || [("disk", home.disk as u64), ("bytes", part.bytes), ("job", user.job.0)];
        let waiting = self.machine.notes().span("wait for disk", about);
        let turn = self.queues[home.disk].turn(request).await;
        drop(waiting);
        self.of(home).waited_since(asked);
        let since = self.machine.now();
        self.counts[home.disk].borrow_mut().waits.add(since.since(asked));
        let access = DiskAccess { disks: self, disk: home.disk, direction, since };
        if let Some(held_up) = turn.held_up {
            self.note_delayed(home.disk, held_up);
        }
        let name = match direction {
            Direction::Read => "disk read",
            Direction::Write => "disk write",
        };
        let span = self.machine.notes().span(name, about);
        DiskUse { _access: access, _turn: turn, _pending: pending, _span: span }
    }

    /// Counts the bytes of a successful read or write, or else a failure.
    pub(super) fn count_bytes<T>(
        &self,
        home: Home,
        direction: Direction,
        bytes: u64,
        outcome: &machine::Result<T>,
    ) {
        let mut counts = self.counts[home.disk].borrow_mut();
        match (outcome, direction) {
            (Err(_), _) => counts.failures += 1,
            (Ok(_), Direction::Read) => counts.bytes_read += bytes,
            (Ok(_), Direction::Write) => counts.bytes_written += bytes,
        }
    }

    /// Counts a completed flush that began at `since`.
    pub(super) fn count_flush(&self, home: Home, since: Instant, outcome: &machine::Result<()>) {
        let mut counts = self.counts[home.disk].borrow_mut();
        counts.flushes.add(self.machine.now().since(since));
        counts.failures += u64::from(outcome.is_err());
    }

    /// Returns the counts of each disk, with the requests waiting there.
    pub(super) fn counts(&self) -> Vec<IoNodeDiskCounts> {
        let counts = self.counts.iter().enumerate().map(|(disk, counts)| IoNodeDiskCounts {
            held_up_reads: self.held_up[disk].get().map_or(0, |(held_up, _)| held_up.reads),
            waiting: self.queues[disk].waiting(),
            pending_write_bytes: self.writes_pending[disk].get(),
            ..counts.borrow().clone()
        });
        counts.collect()
    }

    /// Counts a delayed read, and reports it to the machine if there was none for a while.
    fn note_delayed(&self, disk: usize, HeldUp { by, writes }: HeldUp) {
        let now = self.machine.now();
        let (before, last) = self.held_up[disk].get().unzip();
        let before: HeldUpReads = before.unwrap_or_default();
        let counts = HeldUpReads { reads: before.reads + 1, writes_most: before.writes_most.max(writes) };
        self.held_up[disk].set(Some((counts, now)));
        self.machine.notes().count(("disk", disk), "reads held up", counts.reads);
        if last.is_none_or(|last| now.since(last) >= REPORT_INTERVAL) {
            self.machine.disks()[disk].reads_held_up(by, writes);
        }
    }

    /// Returns the delayed reads at a disk and the time since the last one, if there were any.
    pub(super) fn held_up(&self, disk: usize) -> Option<(HeldUpReads, Duration)> {
        self.held_up[disk].get().map(|(reads, last)| (reads, self.machine.now().since(last)))
    }

    /// Counts `bytes` bytes of a write as pending.
    fn begin_write(&self, disk: usize, bytes: u64) -> PendingWrite<'_, M> {
        self.change_pending(disk, |pending| pending + bytes);
        PendingWrite { disks: self, disk, bytes }
    }

    fn change_pending(&self, disk: usize, change: impl FnOnce(u64) -> u64) {
        let pending = &self.writes_pending[disk];
        pending.set(change(pending.get()));
        self.machine.disks()[disk].writes_pending(pending.get());
    }

    /// Promotes background requests for this part of an object to demand.
    pub(super) fn promote(&self, home: Home, offset: u64) {
        let queue = &self.queues[home.disk];
        if queue.has_background() {
            queue.promote(self.position(home, offset));
        }
    }

    /// Fills `into` with the object's bytes from `offset` on, at its turn.
    pub(super) async fn read(
        &self,
        home: Home,
        offset: u64,
        into: Buf,
        user: DiskUser,
    ) -> machine::Result<Buf> {
        let part = Extent::new(offset, into.len());
        let _turn = self.turn(home, part, Direction::Read, user).await;
        let outcome = self.of(home).read(home.object, offset, into).await;
        self.count_bytes(home, Direction::Read, part.bytes, &outcome);
        self.machine.compute(Work::CompleteDiskRequest).await;
        outcome
    }

    /// Waits for a turn, then writes these runs of `buffer`, which holds the block at `offset` of the object. The write
    /// counts for `job`.
    pub(super) async fn write_runs(
        &self,
        home: Home,
        offset: u64,
        buffer: &Buf,
        runs: impl IntoIterator<Item = Range<u64>>,
        job: NodeId,
    ) -> Result<(), Box<Failure>> {
        let (part, user) = (Extent::new(offset, buffer.len()), DiskUser { job, urgency: Urgency::Demand });
        let _turn = self.turn(home, part, Direction::Write, user).await;
        let mut outcome = Ok(());
        for run in runs {
            let (at, bytes) = (offset + run.start, run.end - run.start);
            let written = self.of(home).write(home.object, at, buffer.slice(run)).await;
            self.count_bytes(home, Direction::Write, bytes, &written);
            outcome = outcome.and(written);
        }
        self.machine.compute(Work::CompleteDiskRequest).await;
        Ok(outcome?)
    }

    /// Extends a stripe to `end`, if it is shorter. Its positions on the disk are known then. On a real disk the new
    /// part is a hole.
    pub(super) async fn extend(&self, stripe: &OpenStripe, end: u64) -> Result<(), Box<Failure>> {
        let _turn = stripe.sizing.take().await;
        if end <= stripe.length.bytes() {
            return Ok(());
        }
        check_length(end)?;
        self.resize(stripe, end).await
    }

    /// Truncates or extends a stripe to `end`.
    pub(super) async fn set_end(&self, stripe: &OpenStripe, end: u64) -> Result<(), Box<Failure>> {
        let _turn = stripe.sizing.take().await;
        self.resize(stripe, end).await
    }

    async fn resize(&self, stripe: &OpenStripe, end: u64) -> Result<(), Box<Failure>> {
        self.of(stripe.home).resize(stripe.home.object, end).await?;
        stripe.set_end(end);
        Ok(())
    }

    /// Reserves space on its disk for `bytes` of a stripe; returns `None` if too little is known to be free.
    pub(super) fn take_room(&self, stripe: &OpenStripe, bytes: u64) -> Option<ReservedSpace> {
        self.room.take(stripe.home.disk, stripe.length.bytes_on_disk(), bytes)
    }

    /// Like [`take_room`](Self::take_room), after asking the disk for its free space.
    pub(super) async fn look_for_room(
        &self,
        stripe: &OpenStripe,
        bytes: u64,
    ) -> machine::Result<Option<ReservedSpace>> {
        let asked = self.room.before_asking(stripe.home.disk);
        let space = self.of(stripe.home).space().await?;
        let before = stripe.length.bytes_on_disk();
        Ok(self.room.take_of(stripe.home.disk, (before, bytes), space, asked))
    }

    /// True if a disk has all of this part of a stripe, without a hole.
    pub(super) async fn has(&self, stripe: &OpenStripe, part: &Range<u64>) -> machine::Result<bool> {
        let data = self.of(stripe.home).data_after(stripe.home.object, part.start).await?;
        Ok(data.is_some_and(|data| data.start <= part.start && part.end <= data.end))
    }
}

/// Fails if a stripe cannot end at `end`. A stripe may be longer than the space of its disk: holes take no
/// space, and writes reserve their own.
pub(super) fn check_length(end: u64) -> Result<(), Box<Failure>> {
    if end <= STRIPE_BYTES_MAX {
        return Ok(());
    }
    let text = format!("byte {end} is beyond the limit of a stripe, {STRIPE_BYTES_MAX} bytes");
    Err(Failure::new(FailureKind::TooLarge, text).into())
}
