//! The disks of an I/O node: whose turn it is at each, and how many bytes it has.
//!
//! Whoever reads or writes data of a stripe has a turn at its disk (`disk_queue.rs`): the disk is given some requests
//! at a time, and the others wait in the order of the settings (`schedule.rs`). Names, sizes and notes need no turn.

use std::cell::Cell;
use std::ops::Range;

use machine::{Buf, Class, Disk, Machine, Work};

use super::home::Home;
use super::open_stripe::OpenStripe;
use crate::disk_queue::{DiskQueue, DiskTurn, Urgency};
use crate::error::{Failure, FailureKind};
use crate::schedule::{Position, Scheduling};
use crate::settings::IoNodeSettings;

/// The most bytes a stripe has: so few that those that a disk adds for itself do not make a number that is too large.
pub(super) const STRIPE_BYTES_MAX: u64 = layout::FILE_BYTES_MAX / 2;

/// The disks.
pub(super) struct Disks<M: Machine> {
    machine: M,
    scheduling: Scheduling,
    queues: Vec<DiskQueue>,
    /// Of each disk how many bytes it has at least.
    bytes: Vec<Cell<u64>>,
}

impl<M: Machine> Disks<M> {
    pub(super) fn new(machine: M, settings: &IoNodeSettings) -> Self {
        let queue = || DiskQueue::new(settings.scheduling, settings.sweeps, settings.requests_at_disk);
        let queues: Vec<DiskQueue> = machine.disks().iter().map(|_| queue()).collect();
        let bytes = vec![Cell::new(0); queues.len()];
        Disks { machine, scheduling: settings.scheduling, queues, bytes }
    }

    /// The disk that an object lies on.
    pub(super) fn of(&self, home: Home) -> &M::Disk {
        &self.machine.disks()[home.disk]
    }

    /// Where an object lies at `offset`, for the order of turns.
    fn position(&self, home: Home, offset: u64) -> Position {
        match self.scheduling {
            Scheduling::PhysicalCyclicScan => (0, self.of(home).position(home.object, offset)),
            Scheduling::Fcfs | Scheduling::CyclicScan => (home.object.0, offset),
        }
    }

    /// Waits for a turn to use the disk of an object at `offset` within it.
    pub(super) async fn turn(&self, home: Home, offset: u64, urgency: impl Into<Urgency>) -> DiskTurn<'_> {
        let position = self.position(home, offset);
        let asked = self.machine.now();
        let turn = self.queues[home.disk].turn(position, urgency.into()).await;
        self.of(home).waited_since(asked);
        turn
    }

    /// Promotes requests that wait in the background for this part of an object to on demand.
    pub(super) fn promote(&self, home: Home, offset: u64) {
        let queue = &self.queues[home.disk];
        if queue.has_background() {
            queue.promote(self.position(home, offset));
        }
    }

    /// Fills `into` with what an object has from `offset` on, when it is its turn.
    pub(super) async fn read(
        &self,
        home: Home,
        offset: u64,
        into: Buf,
        class: Class,
    ) -> machine::Result<Buf> {
        let _turn = self.turn(home, offset, class).await;
        let outcome = self.of(home).read(home.object, offset, into).await;
        self.machine.compute(Work::CompleteDiskRequest).await;
        outcome
    }

    /// Writes runs of a buffer, which holds the block at `offset` of an object, when it is their turn.
    pub(super) async fn write_runs(
        &self,
        home: Home,
        offset: u64,
        buffer: &Buf,
        runs: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<(), Box<Failure>> {
        let _turn = self.turn(home, offset, Class::Demand).await;
        let mut outcome = Ok(());
        for run in runs {
            let at = offset + run.start;
            let written = self.of(home).write(home.object, at, buffer.slice(run)).await;
            outcome = outcome.and(written);
        }
        self.machine.compute(Work::CompleteDiskRequest).await;
        Ok(outcome?)
    }

    /// Fails if a stripe extended to `end` would be larger than its disk, or than the largest stripe.
    pub(super) async fn check_space(&self, stripe: &OpenStripe, end: u64) -> Result<(), Box<Failure>> {
        let disk = stripe.home.disk;
        let known = &self.bytes[disk];
        if end > STRIPE_BYTES_MAX {
            return Err(Failure::invalid(format!("{end} bytes: no stripe has that many")).into());
        }
        if end <= stripe.length.bytes() || end <= known.get() {
            return Ok(());
        }
        let space = self.of(stripe.home).space().await?;
        known.set(space.map_or(u64::MAX, |space| space.bytes));
        if end <= known.get() {
            return Ok(());
        }
        let text = format!("{end} bytes of a stripe on disk {disk}, which has {} in all", known.get());
        Err(Failure::new(FailureKind::NoSpace, text).into())
    }
}
