//! Controller of a mechanical disk: read-ahead, write-behind, and the rules for counting movements.
//!
//! Read-ahead is evaluated lazily: between two commands nothing is computed; each command first advances the medium to
//! the present time. The cache is a ring buffer of the sectors that passed last. Read-ahead pauses before it would
//! overwrite the first sector of the last command, and resumes when a later command permits this.
//!
//! The drive reports a write as complete when its data are in the buffer. The controller accepts the data after it has
//! finished the previous write. A write that continues the buffered writes then enters the buffer as long as it fits.
//! Any other write waits until the mechanics start on the last buffered write (Ruemmler and Wilkes 1994).
//!
//! Following the published counts of STARFISH, a movement is counted if
//! 1. a command makes the arm move or wait for the rotation,
//! 2. a sequential read starts exactly at a track that read-ahead has not yet entered,
//! 3. a read finds read-ahead paused, even if its own data are in the cache.
//!
//! A write that continues the write in progress is not counted as a movement.

use std::collections::VecDeque;
use std::mem;

use description::MechanicalDisk;
use machine::{Duration, Instant};

use crate::Statistics;
use crate::mechanism::{Mechanism, SectorRun};
use crate::phases::{Phase, Phases};

#[derive(Clone, Debug)]
pub(crate) struct Mechanical {
    mechanism: Mechanism,
    activity: Activity,
    /// Instant, past or future, at which the mechanics are at rest, apart from read-ahead.
    at_rest: Instant,
    /// Instant, past or future, at which the mechanics take the last write from the buffer.
    buffer_empty: Instant,
    /// Instant at which all writes are on the medium.
    written: Instant,
    /// Buffered writes that continue each other: the instant at which each is on the medium, and its length in sectors.
    /// Writes that are already on the medium may be missing.
    buffered: VecDeque<(Instant, u64)>,
    /// Instant at which the controller has finished the last write; it handles one command at a time.
    controller_free: Instant,
    read_overhead: Duration,
    write_overhead: Duration,
    exposed_per_repositioned_write: Duration,
    cache_sectors: u64,
    sector_bytes: u64,
}

#[derive(Clone, Debug)]
enum Activity {
    Idle,
    Reading(Stream),
    /// Write that ends before sector `next`.
    Writing {
        next: u64,
    },
}

/// Read and the read-ahead that follows.
#[derive(Clone, Debug)]
struct Stream {
    /// First sector of the stream.
    first: u64,
    /// Sector before which read-ahead pauses.
    limit: u64,
    run: SectorRun,
}

impl Stream {
    fn has_paused(&self) -> bool {
        self.run.sector == self.limit
    }
}

impl Mechanical {
    pub(crate) fn new(disk: &MechanicalDisk, phase: f64) -> Self {
        let controller = &disk.controller;
        let exposed = controller.exposed_per_repositioned_write.as_ref();
        Mechanical {
            mechanism: Mechanism::new(disk, phase),
            activity: Activity::Idle,
            at_rest: Instant::START,
            buffer_empty: Instant::START,
            written: Instant::START,
            buffered: VecDeque::new(),
            controller_free: Instant::START,
            read_overhead: controller.read_overhead.value.0,
            write_overhead: controller.write_overhead.value.0,
            exposed_per_repositioned_write: exposed.map_or(Duration::ZERO, |time| time.value.0),
            cache_sectors: controller.cache.value.0 / disk.sector_bytes.value.0,
            sector_bytes: disk.sector_bytes.value.0,
        }
    }

    pub(crate) fn sector_bytes(&self) -> u64 {
        self.sector_bytes
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.mechanism.geometry.capacity
    }

    pub(crate) fn read(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        let decoded = now + self.read_overhead;
        self.mechanism.statistics.overhead += self.read_overhead;
        let end = first + sectors;
        let limit = (first + self.cache_sectors.max(sectors)).min(self.capacity_sectors());
        let mut stream = match self.stream_with(first, now) {
            Some(mut stream) => {
                self.keep_ahead(&mut stream, first, limit, now, decoded);
                stream
            }
            None => self.new_stream(first, limit, decoded.max(self.at_rest)),
        };
        let missing = end.saturating_sub(stream.run.sector);
        let passed = if missing == 0 { decoded } else { self.mechanism.pass(&mut stream.run, missing) };
        self.activity = Activity::Reading(stream);
        decoded.max(passed)
    }

    /// Returns the stream in progress, advanced to `now`, if it has read `first` or reads it next. Otherwise ends the
    /// stream.
    fn stream_with(&mut self, first: u64, now: Instant) -> Option<Stream> {
        let mut stream = match mem::replace(&mut self.activity, Activity::Idle) {
            Activity::Reading(stream) => stream,
            Activity::Idle | Activity::Writing { .. } => return None,
        };
        self.mechanism.pass_until(&mut stream.run, stream.limit, now);
        if self.serves(&stream, first) {
            return Some(stream);
        }
        self.at_rest = self.mechanism.abandon(&stream.run, now);
        None
    }

    /// Returns true if `first` is in the cache or is the next sector to pass.
    fn serves(&self, stream: &Stream, first: u64) -> bool {
        let next = stream.run.sector;
        let oldest = stream.first.max(next.saturating_sub(self.cache_sectors));
        (oldest..=next).contains(&first)
    }

    /// Extends read-ahead to `limit` for a read at `first`, and counts a movement if one is necessary.
    fn keep_ahead(&mut self, stream: &mut Stream, first: u64, limit: u64, now: Instant, decoded: Instant) {
        let has_paused = stream.has_paused();
        let makes_room = limit > stream.limit;
        stream.limit = stream.limit.max(limit);
        if has_paused && makes_room {
            self.mechanism.statistics.movements += 1;
            stream.run = self.mechanism.turn_to(stream.run.sector, decoded);
        } else if first == stream.run.sector
            && self.mechanism.geometry.is_track_start(first)
            && self.mechanism.awaits_track(&stream.run, now)
        {
            self.mechanism.statistics.movements += 1;
        }
    }

    fn new_stream(&mut self, first: u64, limit: u64, start: Instant) -> Stream {
        self.mechanism.statistics.movements += 1;
        Stream { first, limit, run: self.mechanism.turn_to(first, start) }
    }

    pub(crate) fn write_ready(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        self.stop_reading(now);
        self.mechanism.statistics.overhead += self.write_overhead;
        let ready = now.max(self.controller_free);
        if self.continues_write(first) { self.room_for(ready, sectors) } else { ready.max(self.buffer_empty) }
    }

    fn continues_write(&self, first: u64) -> bool {
        matches!(self.activity, Activity::Writing { next } if next == first)
    }

    /// Returns the first instant at which the buffer has space for `sectors` more sectors of the writes in progress.
    fn room_for(&mut self, now: Instant, sectors: u64) -> Instant {
        while self.buffered.front().is_some_and(|&(written, _)| written <= now) {
            self.buffered.pop_front();
        }
        let mut used: u64 = self.buffered.iter().map(|&(_, sectors)| sectors).sum();
        let mut ready = now;
        for &(written, leaving) in &self.buffered {
            if used + sectors <= self.cache_sectors {
                break;
            }
            used -= leaving;
            ready = written;
        }
        ready
    }

    pub(crate) fn write(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        let continues = self.continues_write(first);
        // The controller processes a write after it has received the data.
        let prepared = now + self.write_overhead;
        self.controller_free = prepared;
        let mut start = prepared.max(self.at_rest);
        if !(continues && prepared <= self.at_rest) {
            self.mechanism.statistics.movements += 1;
            self.mechanism.statistics.overhead += self.exposed_per_repositioned_write;
            start += self.exposed_per_repositioned_write;
        }
        let mut run = self.mechanism.turn_to(first, start);
        self.buffer_empty = start;
        self.written = self.mechanism.pass(&mut run, sectors);
        if !continues {
            self.buffered.clear();
        }
        self.buffered.push_back((self.written, sectors));
        self.at_rest = self.written;
        self.activity = Activity::Writing { next: first + sectors };
        now
    }

    fn stop_reading(&mut self, now: Instant) {
        if let Activity::Reading(stream) = &mut self.activity {
            self.mechanism.pass_until(&mut stream.run, stream.limit, now);
            self.at_rest = self.mechanism.abandon(&stream.run, now);
            self.activity = Activity::Idle;
        }
    }

    pub(crate) fn settled(&self) -> Instant {
        self.written
    }

    pub(crate) fn movements(&self) -> u64 {
        self.mechanism.statistics.movements
    }

    pub(crate) fn statistics(&self, now: Instant) -> Statistics {
        match &self.activity {
            Activity::Reading(stream) => {
                self.mechanism.clone().during(stream.run, stream.limit, now).statistics
            }
            Activity::Idle | Activity::Writing { .. } => self.mechanism.statistics,
        }
    }

    pub(crate) fn phases(&mut self) -> &mut Phases {
        &mut self.mechanism.phases
    }

    /// Stops recording phases and returns the remaining ones, with read-ahead until `now`.
    pub(crate) fn stop_recording_phases(&mut self, now: Instant) -> Vec<Phase> {
        let mut mechanism = self.mechanism.clone();
        self.mechanism.phases.stop();
        if let Activity::Reading(stream) = &self.activity {
            mechanism = mechanism.during(stream.run, stream.limit, now);
        }
        mechanism.phases.stop()
    }
}
