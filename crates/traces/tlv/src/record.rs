//! Recording of a thread's activities.
//!
//! Each call checks the switch, reads the ticks and the processor number, and puts an entry into the ring of its
//! thread. With recording off (`TLV=off`) each call succeeds without effect.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sched::sched_getcpu;
use nix::sys::resource::{UsageWho, getrusage};
use trace::{Amount, CounterId, NameId, StateId};

use crate::entry::{self, EntryKind, Words};
use crate::error::Refused;
use crate::row::{self, ThreadRow};
use crate::{switch, ticks};

/// True if each begin and end of a state also records the kernel's counts of context switches.
static HAS_SWITCHES: AtomicBool = AtomicBool::new(false);

/// Number of the next flow; 0 until the first flow draws a random number.
static NEXT_FLOW: AtomicU64 = AtomicU64::new(0);

/// Enables or disables the recording of context switches.
pub(crate) fn set_switches(is_wanted: bool) {
    HAS_SWITCHES.store(is_wanted, Ordering::Relaxed);
}

/// Returns true if recording is on. Callers need not check this first: all calls do.
#[inline]
pub fn is_recording() -> bool {
    switch::is_on()
}

/// Runs `work` with this thread's row, if recording is on.
#[inline]
fn with_row(
    row: impl FnOnce() -> Result<&'static ThreadRow, Refused>,
    work: impl FnOnce(&ThreadRow) -> Result<(), Refused>,
) -> Result<(), Refused> {
    if !switch::is_on() {
        return switch::not_on();
    }
    work(row()?)
}

/// Returns the row of this thread, adding one if it has none.
#[inline]
fn own() -> Result<&'static ThreadRow, Refused> {
    row::current().map_or_else(row::add_for_record, Ok)
}

/// Returns the row of this thread; fails if it has none.
#[inline]
fn given() -> Result<&'static ThreadRow, Refused> {
    row::current().ok_or(Refused::NotAdded)
}

/// Returns the processor of this thread, or `u16::MAX` if unknown.
#[inline]
fn processor() -> u16 {
    sched_getcpu().map_or(u16::MAX, |number| u16::try_from(number).unwrap_or(u16::MAX))
}

/// Returns the first slot of an entry with the current time and a number.
#[inline]
fn now(kind: EntryKind, following: u8, number: u32) -> Words {
    entry::first(ticks::now(), kind, following, processor(), number)
}

#[inline]
fn push_state(row: &ThreadRow, kind: EntryKind, number: u32) -> Result<(), Refused> {
    if HAS_SWITCHES.load(Ordering::Relaxed) {
        return push_with_switches(row, kind, number);
    }
    row.push(&[now(kind, 0, number)])
}

/// Queries the kernel before the begin or after the end of the state, so that the duration of the state excludes the
/// query.
#[cold]
fn push_with_switches(row: &ThreadRow, kind: EntryKind, number: u32) -> Result<(), Refused> {
    let end = (kind == EntryKind::End).then(|| now(kind, 0, number));
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("Linux reports the resource usage of a thread");
    let at = end.unwrap_or_else(|| now(kind, 0, number));
    let switches = entry::first(at[0], EntryKind::Switches, 1, u16::MAX, 0);
    let counts = [usage.voluntary_context_switches(), usage.involuntary_context_switches()];
    row.push(&[switches, counts.map(i64::cast_unsigned), at])
}

/// Begins a state of this thread, nested in its open states. Adds the thread to the recording if necessary.
#[inline]
pub fn begin(state: StateId) -> Result<(), Refused> {
    with_row(own, |row| push_state(row, EntryKind::Begin, state.0))
}

/// Ends a state of this thread: the latest open one with this number.
#[inline]
pub fn end(state: StateId) -> Result<(), Refused> {
    with_row(own, |row| push_state(row, EntryKind::End, state.0))
}

/// Records a numbered event of this thread: see [`crate::declare_events`]. Rejects a thread that was not added.
#[inline]
pub fn event(number: i32) -> Result<(), Refused> {
    with_row(given, |row| push_state(row, EntryKind::Event, number.cast_unsigned()))
}

/// Records a new value of a counter.
#[inline]
pub fn count(counter: CounterId, value: Amount) -> Result<(), Refused> {
    let (kind, word) = entry::number(value, EntryKind::Integer, EntryKind::Real);
    with_row(own, |row| row.push(&[now(kind, 1, counter.0), [word, 0]]))
}

/// Adds a number to the state that this thread began last.
#[inline]
pub fn argue(name: NameId, value: Amount) -> Result<(), Refused> {
    let (kind, word) = entry::number(value, EntryKind::ArgumentInteger, EntryKind::ArgumentReal);
    with_row(own, |row| row.push(&[entry::first(0, kind, 1, u16::MAX, name.0), [word, 0]]))
}

/// Adds a text, truncated to [`crate::TEXT_BYTES`] bytes, to the state that this thread began last. The writer replaces
/// invalid UTF-8.
pub fn argue_text(name: NameId, text: &[u8]) -> Result<(), Refused> {
    with_row(own, |row| {
        let (mut slots, used) = entry::text(text);
        slots[0] = entry::first(0, EntryKind::ArgumentText, used as u8 - 1, u16::MAX, name.0);
        row.push(&slots[..used])
    })
}

/// Records the departure of a flow from this thread: see [`new_flow`].
#[inline]
pub fn flow_out(flow: u64) -> Result<(), Refused> {
    with_row(own, |row| row.push(&[now(EntryKind::FlowOut, 1, 0), [flow, 0]]))
}

/// Records the arrival of a flow at this thread.
#[inline]
pub fn flow_in(flow: u64) -> Result<(), Refused> {
    with_row(own, |row| row.push(&[now(EntryKind::FlowIn, 1, 0), [flow, 0]]))
}

/// Returns the number of a new flow, unique across processes.
pub fn new_flow() -> u64 {
    if NEXT_FLOW.load(Ordering::Relaxed) == 0 {
        // Without a random number, numbers begin at 1, and flows of several processes can have equal numbers.
        let drawn = getrandom::u64().unwrap_or(0).max(1);
        let _ = NEXT_FLOW.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed);
    }
    NEXT_FLOW.fetch_add(1, Ordering::Relaxed)
}

/// Makes the next flow draw a new random number, in a forked process.
pub(crate) fn forget_flows() {
    NEXT_FLOW.store(0, Ordering::Relaxed);
}

/// Returns true if this thread has been added to the recording.
pub fn is_added() -> bool {
    row::current().is_some()
}

/// Adds this thread to the recording, under its system name.
pub fn add_thread() -> Result<(), Refused> {
    with_row(own, |_| Ok(()))
}

/// Adds this thread to the recording, under this name.
pub fn name_thread(name: &str) -> Result<(), Refused> {
    with_row(|| row::add(Some(name)), |_| Ok(()))
}
