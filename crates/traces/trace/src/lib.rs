//! Traces: what the threads of processes did when, in a file and in memory.
//!
//! A recorder (a user's program, an agent or the simulator) writes with a [`FileWriter`]; a reader reads one file or
//! several into a [`Timeline`], on one clock.
//!
//! # The file, version 1
//!
//! A file is a sequence of *sections*, one for each run that was written to it: to append is to write a section at the
//! end. A section begins with 16 bytes, which cannot be taken for anything else:
//!
//! ```text
//!   89 54 4c 56 0d 0a 1a 0a    "TLV" among bytes that a transfer as text would change
//!   01 00                      the version, the least byte first, as everywhere
//!   00 00                      not used
//!   xx xx xx xx                the lower half of XXH3 (64 bits) of the 12 bytes before
//! ```
//!
//! Then come chunks, until the file ends or another section begins:
//!
//! ```text
//!   1 byte     kind
//!   4 bytes    the length of the content in bytes, at most 2^17
//!   content
//!   4 bytes    the lower half of XXH3 of all that before
//! ```
//!
//! The content is in postcard's wire format (<https://postcard.jamesmunns.com/wire-format>): whole numbers as varints,
//! those with a sign zigzag, texts with their length, an enumeration as the index of its variant and the fields of it.
//!
//! | kind | | content |
//! |---|---|---|
//! | 1 | process | [`ProcessId`], [`ProcessInfo`] |
//! | 2 | thread | [`ThreadId`], [`ThreadInfo`] |
//! | 3 | state | [`StateId`], [`StateInfo`] |
//! | 4 | counter | [`CounterId`], [`CounterInfo`] |
//! | 5 | name | [`NameId`], text |
//! | 6 | records | [`ThreadId`], then up to the end records: ns since the one before, `i64`, [`RecordedEvent`] |
//! | 7 | dropped | [`ThreadId`], how many records of it had no room, `u64` |
//! | 8 | clock offset | [`ProcessId`], [`ClockOffset`] |
//!
//! The time of a chunk's first record is since 0. Times are added modulo 2^64.
//!
//! Numbers of processes, threads, states, counters and names are the writer's, and hold within a section. Each chunk
//! stands for itself, so that nothing needs another but for its name, and a name may come later than its use. A reader
//! passes over kinds that it does not know; what changes the sense of others gets another version. Where a chunk is
//! cut or damaged, a reader goes on at the next section.
//!
//! # What lives where
//!
//! - `model.rs`: what is recorded; the types that a writer and a reader share
//! - `chunk.rs`: sections and chunks as bytes
//! - `writer.rs`: [`FileWriter`], and the [`RecordRun`]s of threads that it is given
//! - `reader.rs`: [`TraceReader`]: bytes into declarations and records, within [`Limits`], for as long as a file grows
//! - `gather.rs`: records into columns: which begin belongs to which end
//! - `timeline.rs`: the [`Timeline`]; `assemble.rs`: how it is made of what was gathered, on one clock
//! - `totals.rs`, `overlap.rs`, `difference.rs`: what follows from a timeline
//! - `note.rs`: what a reader has to say of a file
//!
//! Here is no clock: times are the recorder's.

mod assemble;
mod chunk;
mod difference;
mod gather;
mod model;
mod note;
mod overlap;
mod reader;
mod timeline;
mod totals;
mod writer;

pub use assemble::Alignment;
pub use chunk::VERSION;
pub use difference::StateChange;
pub use model::{
    Amount, ClockOffset, Colour, CounterId, CounterInfo, NameId, ProcessId, ProcessInfo, ProcessNumber,
    Record, RecordedEvent, RecordedValue, StateId, StateInfo, TEXT_BYTES_MAX, ThreadId, ThreadInfo,
};
pub use note::{Note, NoteKind};
pub use overlap::{CHOSEN_MAX, SpanChoice};
pub use reader::{Limits, ReadError, TraceReader, is_trace, read};
pub use timeline::{
    Argument, ArgumentValue, Count, Counter, Flow, Mark, OnProcessor, Span, Spans, State, SwitchCount,
    Timeline, TracedProcess, TracedThread,
};
pub use totals::{Grouping, StateTotals};
pub use writer::{FileWriter, RecordRun};
