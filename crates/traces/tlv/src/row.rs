//! Rows of a trace: each recorded thread has a row, which holds its ring.
//!
//! The memory of a row is never freed, so an ending thread and the writer need not agree on a time to free it. The
//! phase of a row determines who uses it. The number of rows is the largest number of concurrent threads so far,
//! limited by the memory for the rings.
//!
//! ```text
//!   FREE -- a thread takes the row --> LIVE -- the thread ends --> ENDED -- the writer has taken all entries --> FREE
//! ```

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::prctl;
use nix::unistd::{getpid, gettid};
use trace::ThreadId;

use crate::entry::Words;
use crate::error::Refused;
use crate::ring::{Pushed, Ring};
use crate::switch;

/// Maximum size in bytes of the rings of all threads together.
pub(crate) const BYTES_MAX: usize = 1 << 30;

/// Size in bytes of a slot.
pub(crate) const SLOT_BYTES: usize = size_of::<Words>();

/// Number of slots in the ring of a new row.
static SLOTS: AtomicUsize = AtomicUsize::new(0);

/// Phase of a row's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RowPhase {
    Free,
    Live,
    Ended,
}

/// Row of a thread.
pub(crate) struct ThreadRow {
    ring: Ring,
    phase: AtomicU8,
    /// Number of the thread that uses the row, counted among all threads ever recorded.
    thread: AtomicU32,
    /// Number of the ring's dropped records already reported. For the writer only.
    reported_drops: AtomicU64,
}

/// All rows, and their memory.
pub(crate) struct Rows {
    all: Vec<NamedRow>,
    bytes: usize,
    threads: u32,
    /// Number of records since the last report that were rejected because their threads have no row.
    refused: u64,
}

struct NamedRow {
    row: &'static ThreadRow,
    name: String,
    /// True if the name has been reported to the writer.
    is_announced: bool,
}

/// Progress of the thread of a row.
pub(crate) struct Seen {
    pub(crate) row: &'static ThreadRow,
    pub(crate) phase: RowPhase,
    pub(crate) head: u64,
    /// Name of the row, if it has changed since the last call of [`Rows::look`].
    pub(crate) new_name: Option<String>,
}

static ROWS: Mutex<Rows> = Mutex::new(Rows { all: Vec::new(), bytes: 0, threads: 0, refused: 0 });

thread_local! {
    static CURRENT: Cell<Option<&'static ThreadRow>> = const { Cell::new(None) };
    static END: EndOfThread = const { EndOfThread };
}

/// Releases a thread's row when the thread ends, for any reason.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        if let Some(row) = CURRENT.take() {
            row.phase.store(RowPhase::Ended as u8, Ordering::Release);
        }
    }
}

/// Returns all rows, locked. The lock is never held for long.
pub(crate) fn rows() -> MutexGuard<'static, Rows> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the row of this thread, if it has one.
#[inline]
pub(crate) fn current() -> Option<&'static ThreadRow> {
    CURRENT.get()
}

/// Sets the number of slots in the rings of future rows.
pub(crate) fn set_slots(slots: usize) {
    SLOTS.store(slots, Ordering::Relaxed);
}

/// Assigns a row to this thread, if it has none, and sets its name, if one is given.
pub(crate) fn add(name: Option<&str>) -> Result<&'static ThreadRow, Refused> {
    if let Some(row) = current() {
        name.into_iter().for_each(|name| rows().rename(row, name.to_owned()));
        return Ok(row);
    }
    // The first use of `END` registers its destructor, which runs when the thread ends.
    END.try_with(|_| ()).map_err(|_| Refused::Ending)?;
    let row = rows().take(name)?;
    CURRENT.set(Some(row));
    Ok(row)
}

/// Assigns a row to this thread for a record. If no row is available, counts the record as rejected.
pub(crate) fn add_for_record() -> Result<&'static ThreadRow, Refused> {
    add(None).inspect_err(|refused| {
        if *refused == Refused::TooManyThreads {
            rows().refused += 1;
        }
    })
}

impl Rows {
    fn take(&mut self, name: Option<&str>) -> Result<&'static ThreadRow, Refused> {
        let free = self.all.iter().map(|named| named.row).find(|row| row.phase() == RowPhase::Free);
        let row = match free {
            Some(row) => row,
            None => {
                // Wake the writer: it frees the rows of ended threads.
                if self.all.iter().any(|named| named.row.phase() == RowPhase::Ended) {
                    switch::wake_writer();
                }
                self.make()?
            }
        };
        self.threads += 1;
        row.thread.store(self.threads, Ordering::Relaxed);
        self.rename(row, name.map_or_else(|| name_of_thread(self.threads), str::to_owned));
        row.phase.store(RowPhase::Live as u8, Ordering::Release);
        Ok(row)
    }

    fn make(&mut self) -> Result<&'static ThreadRow, Refused> {
        let slots = SLOTS.load(Ordering::Relaxed);
        let bytes = slots * SLOT_BYTES;
        if self.bytes + bytes > BYTES_MAX {
            return Err(Refused::TooManyThreads);
        }
        let row: &'static ThreadRow = Box::leak(Box::new(ThreadRow {
            ring: Ring::new(slots),
            phase: AtomicU8::new(RowPhase::Free as u8),
            thread: AtomicU32::new(0),
            reported_drops: AtomicU64::new(0),
        }));
        self.bytes += bytes;
        self.all.push(NamedRow { row, name: String::new(), is_announced: false });
        Ok(row)
    }

    fn rename(&mut self, row: &'static ThreadRow, name: String) {
        let named =
            self.all.iter_mut().find(|named| std::ptr::eq(named.row, row)).expect("`all` contains every row");
        named.name = name;
        named.is_announced = false;
    }

    /// Returns the progress of each thread, for the writer.
    pub(crate) fn look(&mut self) -> Vec<Seen> {
        let look = |named: &mut NamedRow| {
            let is_announced = mem::replace(&mut named.is_announced, true);
            let new_name = (!is_announced).then(|| named.name.clone());
            // Read the phase before the head: an ended thread adds nothing, so the head is then final.
            let phase = named.row.phase();
            Seen { row: named.row, phase, head: named.row.ring.head(), new_name }
        };
        self.all.iter_mut().map(look).collect()
    }

    /// Returns the number of records since the previous call that were rejected because their threads have no row. For
    /// the writer.
    pub(crate) fn newly_refused(&mut self) -> u64 {
        mem::take(&mut self.refused)
    }

    /// Discards unwritten records. Only for the writer, or while no other thread runs.
    pub(crate) fn discard(&mut self) {
        self.refused = 0;
        for named in &mut self.all {
            named.is_announced = false;
            let ThreadRow { ring, reported_drops, .. } = named.row;
            // Read the phase first, as in `look`.
            let phase = named.row.phase();
            ring.discard();
            reported_drops.store(ring.dropped(), Ordering::Relaxed);
            if phase == RowPhase::Ended {
                named.row.free();
            }
        }
    }

    /// Frees all rows, in a forked process, which has only this thread.
    pub(crate) fn free_all(&mut self) {
        self.discard();
        CURRENT.set(None);
        self.all.iter().for_each(|named| named.row.free());
    }
}

/// Returns the default name of a thread. A name equal to that of the program is not used: a new thread inherits the
/// name of its creator.
fn name_of_thread(number: u32) -> String {
    if gettid() == getpid() {
        return "main".into();
    }
    let name = prctl::get_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    if name.is_empty() || name == of_program.trim_end() { format!("thread {number}") } else { name }
}

impl ThreadRow {
    /// Records an entry: either all of these slots or none. For the thread that owns the row.
    #[inline]
    pub(crate) fn push(&self, slots: &[Words]) -> Result<(), Refused> {
        match self.ring.push(slots) {
            Pushed::Recorded => Ok(()),
            other => Self::push_with_notice(other),
        }
    }

    #[cold]
    fn push_with_notice(pushed: Pushed) -> Result<(), Refused> {
        switch::wake_writer();
        if pushed == Pushed::Dropped { Err(Refused::NoRoom) } else { Ok(()) }
    }

    /// Returns the phase of the row. If its thread has ended, the ring gets no more entries.
    pub(crate) fn phase(&self) -> RowPhase {
        match self.phase.load(Ordering::Acquire) {
            0 => RowPhase::Free,
            1 => RowPhase::Live,
            _ => RowPhase::Ended,
        }
    }

    /// Returns the thread that the row belongs to.
    pub(crate) fn thread(&self) -> ThreadId {
        ThreadId(self.thread.load(Ordering::Relaxed))
    }

    /// Returns the ring of the row, for the writer.
    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Returns the number of dropped records since the previous call. For the writer.
    pub(crate) fn newly_dropped(&self) -> u64 {
        let dropped = self.ring.dropped();
        dropped - self.reported_drops.swap(dropped, Ordering::Relaxed)
    }

    /// Frees the row. The caller has taken all its entries.
    pub(crate) fn free(&self) {
        self.phase.store(RowPhase::Free as u8, Ordering::Release);
    }
}
