//! The logs of a write cache: one, or two, so that one is written to while the other is flushed.
//!
//! ```text
//!  one log    fill | flush, writes wait | fill ...
//!  two logs   fill A | fill B, flush A | fill A, flush B | ...
//! ```

use layout::{Extent, Striping};

use super::Written;
use super::log::{Division, Log, Section};
use crate::directory::Entry;
use crate::file::check_no_file_ends_before;

/// The logs of a write cache, in one memory.
pub(super) struct Logs {
    logs: Vec<Log>,
    /// The log that was written to last.
    latest: usize,
    /// True if all logs are being flushed, so that writes must wait.
    closed: bool,
    /// True if another member may not have begun the flush yet: a write now would be flushed after that member's later
    /// writes.
    held: bool,
    last_time: u64,
}

/// Reason why a write must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteDelay {
    /// This section is full.
    Full(Section),
    /// All logs are being flushed.
    Flushing,
}

impl Logs {
    /// Returns `count` logs in a memory of `bytes` bytes.
    pub(super) fn new(count: usize, bytes: u64, division: Division) -> Self {
        let of_each = bytes / count as u64;
        let data = Log::new(0, of_each, division).data_capacity();
        let logs = (0..count as u64).map(|index| Log::new(index * data, of_each, division)).collect();
        Logs { logs, latest: 0, closed: false, held: false, last_time: 0 }
    }

    /// Returns the maximum memory of each log's data, in bytes.
    pub(super) fn data_capacities(&self) -> impl Iterator<Item = u64> {
        self.logs.iter().map(Log::data_capacity)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.logs.iter().all(Log::is_empty)
    }

    /// Returns the fullness of the current log, from 0 to 1.
    pub(super) fn fullness(&self) -> f64 {
        self.logs[self.latest].fullness()
    }

    /// Returns the number of bytes to write next, out of `bytes` bytes at `offset` of a file: see [`Log::room_for`].
    pub(super) fn room_for(&self, striping: Striping, offset: u64, bytes: u64) -> Result<u64, WriteDelay> {
        if self.closed || self.held {
            return Err(WriteDelay::Flushing);
        }
        self.logs[self.latest].room_for(striping, offset, bytes).map_err(WriteDelay::Full)
    }

    /// Appends an entry for a write that fits and returns the offset of its data. The time of a write is never before
    /// that of the previous one, even if the clock has gone back.
    pub(super) fn append(&mut self, file: usize, offset: u64, bytes: u64, now: u64) -> u64 {
        self.last_time = now.max(self.last_time);
        self.logs[self.latest].append(file, offset, bytes, self.last_time)
    }

    /// Appends entries for the first of these writes to a file, as long as they fit whole. Returns the offset of their
    /// data, the number of writes and the number of bytes; `None` if the first does not fit.
    pub(super) fn append_whole(
        &mut self,
        striping: Striping,
        file: usize,
        writes: &[Written],
    ) -> Option<(u64, usize, u64)> {
        let (mut first_at, mut count, mut bytes) = (None, 0, 0);
        for write in writes {
            let is_whole = write.bytes > 0
                && check_no_file_ends_before(Extent::new(write.offset, write.bytes)).is_ok()
                && self.room_for(striping, write.offset, write.bytes) == Ok(write.bytes);
            if !is_whole {
                break;
            }
            let at = self.append(file, write.offset, write.bytes, write.time);
            first_at.get_or_insert(at);
            (count, bytes) = (count + 1, bytes + write.bytes);
        }
        first_at.map(|at| (at, count, bytes))
    }

    /// Freezes the present entries for a flush. Later writes go to the other log, or wait.
    pub(super) fn begin_flush(&mut self) {
        self.held = true;
        let other = self.by_age().find(|&index| index != self.latest && self.logs[index].is_empty());
        match other {
            Some(other) => self.latest = other,
            // The current log is empty, so it has nothing to flush and stays open.
            None if self.logs.len() > 1 && self.logs[self.latest].is_empty() => {}
            None => self.closed = true,
        }
    }

    /// Lets writers continue, if a log is open: all members have begun the flush.
    pub(super) fn all_have_begun(&mut self) {
        self.held = false;
    }

    /// Ends a flush of the file of this index, or of all, and drops the flushed entries.
    pub(super) fn end_flush(&mut self, file: Option<usize>) {
        let all_is_flushed = self.closed;
        for (_, log) in
            self.logs.iter_mut().enumerate().filter(|(index, _)| all_is_flushed || *index != self.latest)
        {
            match file {
                Some(file) => log.forget(file),
                None => log.clear(),
            }
        }
        (self.closed, self.held) = (false, false);
    }

    /// Ends a failed flush and keeps all entries.
    pub(super) fn end_failed_flush(&mut self) {
        (self.closed, self.held) = (false, false);
    }

    /// Drops the entries of the file of this index. Returns true if there were any.
    pub(super) fn forget(&mut self, file: usize) -> bool {
        let any = self.entries_of(file).next().is_some();
        self.logs.iter_mut().for_each(|log| log.forget(file));
        any
    }

    /// Returns the entries of the file of this index in the current flush, in the order of writing.
    pub(super) fn leaving_entries_of(&self, file: usize) -> Vec<Entry> {
        let leaving = self.by_age().filter(|&index| self.closed || index != self.latest);
        leaving.flat_map(|index| self.logs[index].entries_of(file)).copied().collect()
    }

    /// Returns the entries of the file of this index, in the order of writing.
    pub(super) fn entries_of(&self, file: usize) -> impl Iterator<Item = &Entry> {
        self.by_age().flat_map(move |index| self.logs[index].entries_of(file))
    }

    /// Returns the logs, the current one last.
    fn by_age(&self) -> impl Iterator<Item = usize> {
        let latest = self.latest;
        (0..self.logs.len()).filter(move |index| *index != latest).chain([latest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIVISION: Division = Division::Fixed { directory: 0.5 };

    fn write(logs: &mut Logs, file: usize, bytes: u64) -> Result<u64, WriteDelay> {
        let striping = Striping::new(512, 2).expect("it is one");
        logs.room_for(striping, 0, bytes).map(|_| logs.append(file, 0, bytes, 0))
    }

    fn leaving(logs: &Logs, file: usize) -> Vec<u64> {
        logs.leaving_entries_of(file).iter().map(|entry| entry.at).collect()
    }

    #[test]
    fn a_single_log_accepts_no_writes_during_its_flush() {
        let mut logs = Logs::new(1, 4096, DIVISION);
        write(&mut logs, 0, 10).expect("room");
        logs.begin_flush();
        assert_eq!((write(&mut logs, 0, 10), leaving(&logs, 0)), (Err(WriteDelay::Flushing), vec![0]));
        logs.end_failed_flush();
        assert_eq!(write(&mut logs, 0, 10), Ok(10));
        logs.begin_flush();
        assert_eq!(leaving(&logs, 0), [0, 10]);
        logs.end_flush(None);
        assert!(logs.is_empty() && write(&mut logs, 0, 10) == Ok(0));
    }

    #[test]
    fn the_second_log_accepts_writes_while_the_first_is_flushed() {
        let mut logs = Logs::new(2, 4096, DIVISION);
        assert_eq!(logs.data_capacities().sum::<u64>(), 2048);
        assert_eq!(write(&mut logs, 0, 10), Ok(0));
        logs.begin_flush();
        assert_eq!(write(&mut logs, 0, 10), Err(WriteDelay::Flushing));
        logs.all_have_begun();
        assert_eq!((write(&mut logs, 0, 10), leaving(&logs, 0)), (Ok(1024), vec![0]));
        logs.end_flush(None);
        assert_eq!(logs.entries_of(0).map(|entry| entry.at).collect::<Vec<_>>(), [1024]);
        // If both logs have entries, writes wait until one of them is free.
        logs.begin_flush();
        logs.all_have_begun();
        write(&mut logs, 0, 20).expect("the first is free");
        logs.end_failed_flush();
        logs.begin_flush();
        assert_eq!((write(&mut logs, 0, 10), leaving(&logs, 0)), (Err(WriteDelay::Flushing), vec![1024, 0]));
        logs.end_flush(None);
        assert!(logs.is_empty());
    }

    #[test]
    fn a_flush_of_one_file_keeps_the_entries_of_others() {
        for count in [1, 2] {
            let mut logs = Logs::new(count, 4096, DIVISION);
            for (file, bytes) in [(0, 10), (1, 20), (0, 30)] {
                write(&mut logs, file, bytes).expect("room");
            }
            logs.begin_flush();
            assert_eq!(leaving(&logs, 0), [0, 30]);
            logs.end_flush(Some(0));
            assert_eq!((logs.entries_of(0).count(), logs.entries_of(1).count()), (0, 1));
            logs.begin_flush();
            assert_eq!(leaving(&logs, 1), [10]);
            logs.end_flush(Some(1));
            assert!(logs.is_empty());
        }
    }
}
