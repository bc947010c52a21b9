//! Disk without mechanics: a constant transfer rate, possibly another one for writes, and a fixed positioning time.
//!
//! A command that starts at the sector after the previous command continues that command and costs the transfer alone.
//! Any other command also costs the positioning time. Sequential reads are read ahead: the transfer begins at the end
//! of the previous one, however late the command arrives. Read-ahead covers at most one command, or less if the
//! description limits it. Writes are buffered as on a mechanical disk. The model has no rotation and no cache hits.

use description::StreamingDisk;
use machine::{Duration, Instant};

use crate::Statistics;
use crate::phases::{Activity, Phases};

#[derive(Clone, Debug)]
pub(crate) struct Streaming {
    sector_bytes: u64,
    capacity: u64,
    read_per_second: u64,
    written_per_second: u64,
    positioning: Duration,
    command_overhead: Duration,
    /// Longest part of a transfer that read-ahead does before the command arrives; `None` for the whole transfer.
    read_ahead: Option<Duration>,
    last: Option<Access>,
    /// Instant at which the medium has finished all accepted commands.
    free: Instant,
    /// Instant, past or future, at which the medium takes the last write from the buffer.
    buffer_empty: Instant,
    /// Instant at which all writes are on the medium.
    written: Instant,
    statistics: Statistics,
    phases: Phases,
}

/// Last served command and the number of the sector after it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Access {
    Read { next: u64 },
    Write { next: u64 },
}

impl Streaming {
    pub(crate) fn new(disk: &StreamingDisk) -> Self {
        let overhead = disk.command_overhead.as_ref();
        Streaming {
            sector_bytes: disk.sector_bytes.value.0,
            capacity: disk.capacity.value.0 / disk.sector_bytes.value.0,
            read_per_second: disk.rate.value.0,
            written_per_second: disk.written_per_second(),
            positioning: disk.positioning.value.0,
            command_overhead: overhead.map_or(Duration::ZERO, |time| time.value.0),
            read_ahead: disk
                .read_ahead
                .as_ref()
                .map(|ahead| Duration::of_transfer(ahead.value.0, disk.rate.value.0)),
            last: None,
            free: Instant::START,
            buffer_empty: Instant::START,
            written: Instant::START,
            statistics: Statistics::default(),
            phases: Phases::default(),
        }
    }

    pub(crate) fn sector_bytes(&self) -> u64 {
        self.sector_bytes
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn read(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        let decoded = self.decode(now);
        let is_read_ahead = self.last == Some(Access::Read { next: first });
        let idle = decoded.since(self.free);
        let ahead = if is_read_ahead { self.read_ahead.unwrap_or(idle) } else { Duration::ZERO };
        let start = self.free + (idle - ahead.min(idle));
        self.free = decoded.max(self.access(start, first, sectors, self.read_per_second));
        self.last = Some(Access::Read { next: first + sectors });
        self.free
    }

    pub(crate) fn write_ready(&mut self, now: Instant) -> Instant {
        self.decode(now).max(self.buffer_empty)
    }

    pub(crate) fn write(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        self.buffer_empty = now.max(self.free);
        self.written = self.access(self.buffer_empty, first, sectors, self.written_per_second);
        self.free = self.written;
        self.last = Some(Access::Write { next: first + sectors });
        now
    }

    pub(crate) fn settled(&self) -> Instant {
        self.written
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.statistics
    }

    pub(crate) fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }

    fn decode(&mut self, now: Instant) -> Instant {
        self.statistics.overhead += self.command_overhead;
        now + self.command_overhead
    }

    /// Adds the positioning time if necessary, and the transfer. Returns the end of the transfer.
    fn access(&mut self, start: Instant, first: u64, sectors: u64, bytes_per_second: u64) -> Instant {
        let mut end = start;
        if !self.continues_at(first) {
            self.statistics.movements += 1;
            self.statistics.seek += self.positioning;
            end += self.positioning;
            self.phases.add(Activity::Seek, start, end);
        }
        let transfer = Duration::of_transfer(sectors * self.sector_bytes, bytes_per_second);
        self.statistics.transfer += transfer;
        self.phases.add(Activity::Transfer, end, end + transfer);
        end + transfer
    }

    fn continues_at(&self, first: u64) -> bool {
        matches!(self.last, Some(Access::Read { next } | Access::Write { next }) if next == first)
    }
}
