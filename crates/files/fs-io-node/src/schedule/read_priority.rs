//! Read-priority: any read before any write, each kind in order of arrival.
//!
//! No caller waits for a write-behind, so reads can overtake it. With endless reads a write would wait for ever, unless
//! the number of reads that overtake it is limited.
//!
//! No read returns older data because of this order: a dirty block stays in the cache until it is written. A read of
//! this block returns the cached block, or merges the dirty bytes into the bytes from the disk
//! (`fs-io-node/src/blocks/load.rs`). Operations that bypass the cache first wait until dirty blocks are written.

use super::classes::Classes;
use super::fifo::Fifo;
use super::{DiskRequest, DiskSchedule, Number, Position};
use crate::protocol::Direction;

/// Separate queues of reads and writes.
#[derive(Debug)]
pub(super) struct ReadPriority {
    reads: Classes<Fifo>,
    writes: Classes<Fifo>,
    /// Number of reads that have overtaken the next write.
    passed: usize,
    /// Maximum number of reads that overtake a write, if limited.
    most: Option<usize>,
}

impl ReadPriority {
    /// Creates an empty queue in which at most `most` reads overtake a write.
    pub(super) fn new(most: Option<usize>) -> Self {
        let queue = || Classes::of(Fifo::default);
        ReadPriority { reads: queue(), writes: queue(), passed: 0, most }
    }

    fn pop_read(&mut self, arm: Position) -> Option<(DiskRequest, Number)> {
        if self.most.is_some_and(|most| self.passed >= most) {
            return None;
        }
        let read = self.reads.pop(arm)?;
        self.passed = if self.writes.is_empty() { 0 } else { self.passed + 1 };
        Some(read)
    }

    fn pop_write(&mut self, arm: Position) -> Option<(DiskRequest, Number)> {
        self.passed = 0;
        self.writes.pop(arm)
    }
}

impl DiskSchedule for ReadPriority {
    fn push(&mut self, request: DiskRequest, number: Number) {
        match request.direction {
            Direction::Read => self.reads.push(request, number),
            Direction::Write => self.writes.push(request, number),
        }
    }

    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)> {
        // The write that reads have overtaken may have been removed since.
        self.pop_read(arm).or_else(|| self.pop_write(arm)).or_else(|| self.pop_read(arm))
    }

    fn has_background(&self) -> bool {
        self.reads.has_background() || self.writes.has_background()
    }

    fn promote(&mut self, position: Position) {
        self.reads.promote(position);
        self.writes.promote(position);
    }

    fn remove(&mut self, number: Number) {
        self.reads.remove(number);
        self.writes.remove(number);
    }
}
