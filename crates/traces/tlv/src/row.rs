//! The rows of a trace: each thread that is recorded has one, with a ring of its own.
//!
//! A row is never freed, so that a thread that is about to end and the writer need not agree on when: it goes from hand
//! to hand. There are as many as there were threads at once, as far as there is memory for their rings.
//!
//! ```text
//!   FREE --- a thread takes it ---> LIVE --- the thread ends ---> ENDED --- the writer has taken all ---> FREE
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

/// The most memory for the rings of all threads, in bytes.
pub(crate) const BYTES_MAX: usize = 1 << 30;

/// The bytes of a slot.
pub(crate) const SLOT_BYTES: usize = size_of::<Words>();

/// How many slots the ring of a new row has.
static SLOTS: AtomicUsize = AtomicUsize::new(0);

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RowPhase {
    Free,
    Live,
    Ended,
}

/// A thread's.
pub(crate) struct ThreadRow {
    ring: Ring,
    phase: AtomicU8,
    /// The number of its thread among all that were ever recorded.
    thread: AtomicU32,
    /// How many of the ring's dropped records have been told. The writer's.
    told: AtomicU64,
}

/// All rows there are, and what memory they take.
pub(crate) struct Rows {
    all: Vec<NamedRow>,
    bytes: usize,
    threads: u32,
    /// How many records had no room since that was told last because their threads have no row.
    refused: u64,
}

struct NamedRow {
    row: &'static ThreadRow,
    name: String,
    /// Whether the name has been told to the writer.
    is_told: bool,
}

/// How far a thread has come.
pub(crate) struct Seen {
    pub(crate) row: &'static ThreadRow,
    pub(crate) phase: RowPhase,
    pub(crate) head: u64,
    /// Its name, if it is another than was seen last.
    pub(crate) new_name: Option<String>,
}

static ROWS: Mutex<Rows> = Mutex::new(Rows { all: Vec::new(), bytes: 0, threads: 0, refused: 0 });

thread_local! {
    static CURRENT: Cell<Option<&'static ThreadRow>> = const { Cell::new(None) };
    static END: EndOfThread = const { EndOfThread };
}

/// Leaves a thread's row when the thread ends, however it does.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        if let Some(row) = CURRENT.take() {
            row.phase.store(RowPhase::Ended as u8, Ordering::Release);
        }
    }
}

/// All rows, locked. The lock is never held for long.
pub(crate) fn rows() -> MutexGuard<'static, Rows> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The row of this thread, if it has one.
#[inline]
pub(crate) fn current() -> Option<&'static ThreadRow> {
    CURRENT.get()
}

/// Sets how many slots the rings of rows have that are made from now on.
pub(crate) fn set_slots(slots: usize) {
    SLOTS.store(slots, Ordering::Relaxed);
}

/// Gives this thread a row, if it has none, and a name, if one is given.
pub(crate) fn add(name: Option<&str>) -> Result<&'static ThreadRow, Refused> {
    if let Some(row) = current() {
        name.into_iter().for_each(|name| rows().rename(row, name.to_owned()));
        return Ok(row);
    }
    // From now on it is known when the thread ends.
    END.try_with(|_| ()).map_err(|_| Refused::Ending)?;
    let row = rows().take(name)?;
    CURRENT.set(Some(row));
    Ok(row)
}

/// Gives this thread a row, for a record that has no room otherwise.
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
                // The writer frees the rows of threads that have ended.
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
            told: AtomicU64::new(0),
        }));
        self.bytes += bytes;
        self.all.push(NamedRow { row, name: String::new(), is_told: false });
        Ok(row)
    }

    fn rename(&mut self, row: &'static ThreadRow, name: String) {
        let named = self.all.iter_mut().find(|named| std::ptr::eq(named.row, row)).expect("it is among them");
        named.name = name;
        named.is_told = false;
    }

    /// How far each has come, for the writer.
    pub(crate) fn look(&mut self) -> Vec<Seen> {
        let look = |named: &mut NamedRow| {
            let is_told = mem::replace(&mut named.is_told, true);
            let new_name = (!is_told).then(|| named.name.clone());
            // In this order: nothing comes after what is there when a thread has ended.
            let phase = named.row.phase();
            Seen { row: named.row, phase, head: named.row.ring.head(), new_name }
        };
        self.all.iter_mut().map(look).collect()
    }

    /// How many records of threads without a row had no room since this was asked last. For the writer.
    pub(crate) fn newly_refused(&mut self) -> u64 {
        mem::take(&mut self.refused)
    }

    /// Forgets what was recorded and has not been written. Only for the writer, or while no other thread runs.
    pub(crate) fn discard(&mut self) {
        self.refused = 0;
        for named in &mut self.all {
            named.is_told = false;
            let ThreadRow { ring, told, .. } = named.row;
            // In this order, as above.
            let phase = named.row.phase();
            ring.discard();
            told.store(ring.dropped(), Ordering::Relaxed);
            if phase == RowPhase::Ended {
                named.row.free();
            }
        }
    }

    /// Frees all rows, in a process that has been forked and has no other thread than this.
    pub(crate) fn free_all(&mut self) {
        self.discard();
        CURRENT.set(None);
        self.all.iter().for_each(|named| named.row.free());
    }
}

/// What a thread is called that has no name of its own: the system gives it that of who started it.
fn name_of_thread(number: u32) -> String {
    if gettid() == getpid() {
        return "main".into();
    }
    let name = prctl::get_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    if name.is_empty() || name == of_program.trim_end() { format!("thread {number}") } else { name }
}

impl ThreadRow {
    /// Records something of these slots. For the thread that has the row.
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

    /// What becomes of it. If its thread has ended, nothing comes after what is in the ring.
    pub(crate) fn phase(&self) -> RowPhase {
        match self.phase.load(Ordering::Acquire) {
            0 => RowPhase::Free,
            1 => RowPhase::Live,
            _ => RowPhase::Ended,
        }
    }

    /// The thread that it belongs to.
    pub(crate) fn thread(&self) -> ThreadId {
        ThreadId(self.thread.load(Ordering::Relaxed))
    }

    /// Its ring, for the writer.
    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// How many records had no room since this was asked last. For the writer.
    pub(crate) fn newly_dropped(&self) -> u64 {
        let dropped = self.ring.dropped();
        dropped - self.told.swap(dropped, Ordering::Relaxed)
    }

    /// Gives it back, after all is taken from it.
    pub(crate) fn free(&self) {
        self.phase.store(RowPhase::Free as u8, Ordering::Release);
    }
}
