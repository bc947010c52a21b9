//! Recording: what a thread says that it does.
//!
//! Each call looks at the switch, reads ticks and processor, and puts an entry into the ring of its thread. Where
//! nothing is to be recorded (`TLV=off`) it succeeds and does nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sched::sched_getcpu;
use nix::sys::resource::{UsageWho, getrusage};
use trace::{Amount, CounterId, NameId, StateId};

use crate::entry::{self, EntryKind, Words};
use crate::error::Refused;
use crate::row::{self, ThreadRow};
use crate::{switch, ticks};

/// Whether the kernel's counts of context switches are recorded where states begin and end.
static HAS_SWITCHES: AtomicBool = AtomicBool::new(false);

/// The number of the next flow; 0 if none has been drawn yet.
static NEXT_FLOW: AtomicU64 = AtomicU64::new(0);

/// Sets whether context switches are recorded.
pub(crate) fn set_switches(is_wanted: bool) {
    HAS_SWITCHES.store(is_wanted, Ordering::Relaxed);
}

/// Whether something is recorded now. It need not be asked first: calls look themselves.
#[inline]
pub fn is_recording() -> bool {
    switch::is_on()
}

/// Does `work` with this thread's row, if something is recorded.
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

/// The row of this thread, which gets one if it has none.
#[inline]
fn own() -> Result<&'static ThreadRow, Refused> {
    row::current().map_or_else(row::add_for_record, Ok)
}

/// The row that this thread was given.
#[inline]
fn given() -> Result<&'static ThreadRow, Refused> {
    row::current().ok_or(Refused::NotAdded)
}

/// The processor this thread is on; the highest number if that is not known.
#[inline]
fn processor() -> u16 {
    sched_getcpu().map_or(u16::MAX, |number| u16::try_from(number).unwrap_or(u16::MAX))
}

/// What has the time of now, and a number.
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

/// Asks the kernel outside of the state.
#[cold]
fn push_with_switches(row: &ThreadRow, kind: EntryKind, number: u32) -> Result<(), Refused> {
    let end = (kind == EntryKind::End).then(|| now(kind, 0, number));
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("Linux tells what a thread has used");
    let at = end.unwrap_or_else(|| now(kind, 0, number));
    let switches = entry::first(at[0], EntryKind::Switches, 1, u16::MAX, 0);
    let counts = [usage.voluntary_context_switches(), usage.involuntary_context_switches()];
    row.push(&[switches, counts.map(i64::cast_unsigned), at])
}

/// This thread begins a state, within those it is in. A thread that is not recorded yet is from now on.
#[inline]
pub fn begin(state: StateId) -> Result<(), Refused> {
    with_row(own, |row| push_state(row, EntryKind::Begin, state.0))
}

/// This thread ends a state: the one of this number that it began last.
#[inline]
pub fn end(state: StateId) -> Result<(), Refused> {
    with_row(own, |row| push_state(row, EntryKind::End, state.0))
}

/// This thread is at a numbered event: see [`crate::declare_events`]. A thread that was not added is refused.
#[inline]
pub fn event(number: i32) -> Result<(), Refused> {
    with_row(given, |row| push_state(row, EntryKind::Event, number.cast_unsigned()))
}

/// A counter has this value from now on.
#[inline]
pub fn count(counter: CounterId, value: Amount) -> Result<(), Refused> {
    let (kind, word) = entry::number(value, EntryKind::Integer, EntryKind::Real);
    with_row(own, |row| row.push(&[now(kind, 1, counter.0), [word, 0]]))
}

/// A number belongs to the state that this thread began last.
#[inline]
pub fn argue(name: NameId, value: Amount) -> Result<(), Refused> {
    let (kind, word) = entry::number(value, EntryKind::ArgumentInteger, EntryKind::ArgumentReal);
    with_row(own, |row| row.push(&[entry::first(0, kind, 1, u16::MAX, name.0), [word, 0]]))
}

/// A text belongs to the state that this thread began last: the first [`crate::TEXT_BYTES`] of it. What is not UTF-8 is
/// replaced when it is written.
pub fn argue_text(name: NameId, text: &[u8]) -> Result<(), Refused> {
    with_row(own, |row| {
        let (mut slots, used) = entry::text(text);
        slots[0] = entry::first(0, EntryKind::ArgumentText, used as u8 - 1, u16::MAX, name.0);
        row.push(&slots[..used])
    })
}

/// Something leaves this thread and arrives elsewhere, by the number of a flow: see [`new_flow`].
#[inline]
pub fn flow_out(flow: u64) -> Result<(), Refused> {
    with_row(own, |row| row.push(&[now(EntryKind::FlowOut, 1, 0), [flow, 0]]))
}

/// What left elsewhere arrives at this thread.
#[inline]
pub fn flow_in(flow: u64) -> Result<(), Refused> {
    with_row(own, |row| row.push(&[now(EntryKind::FlowIn, 1, 0), [flow, 0]]))
}

/// The number of a new flow, which no other has, here or in another process.
pub fn new_flow() -> u64 {
    if NEXT_FLOW.load(Ordering::Relaxed) == 0 {
        // Without randomness numbers begin at 1; then flows of several processes may be taken for one another.
        let drawn = getrandom::u64().unwrap_or(0).max(1);
        let _ = NEXT_FLOW.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed);
    }
    NEXT_FLOW.fetch_add(1, Ordering::Relaxed)
}

/// Numbers of flows are drawn anew, in a process that has been forked.
pub(crate) fn forget_flows() {
    NEXT_FLOW.store(0, Ordering::Relaxed);
}

/// Whether this thread has been added to what is recorded.
pub fn is_added() -> bool {
    row::current().is_some()
}

/// This thread is recorded from now on, by its own name.
pub fn add_thread() -> Result<(), Refused> {
    with_row(own, |_| Ok(()))
}

/// This thread is recorded from now on, and has this name.
pub fn name_thread(name: &str) -> Result<(), Refused> {
    with_row(|| row::add(Some(name)), |_| Ok(()))
}
