//! Traces: activities of threads of processes over time, in a file and in memory.
//!
//! A recorder (a program of a user, an agent or the simulator) writes a file with a [`FileWriter`]. A [`TraceReader`]
//! reads one or more files into a [`Timeline`], on one clock.
//!
//! # The file, version 1
//!
//! A file is a sequence of *sections*, one for each recording written to it: appending adds a section at the end. A
//! section begins with a header of 16 bytes:
//!
//! ```text
//!   89 54 4c 56 0d 0a 1a 0a    "TLV" with bytes that a transfer in text mode would change
//!   01 00                      the version; all numbers are little-endian
//!   00 00                      unused
//!   xx xx xx xx                the lower half of the XXH3 hash (64 bits) of the 12 bytes before
//! ```
//!
//! Chunks follow until the end of the file or the next section:
//!
//! ```text
//!   1 byte     kind
//!   4 bytes    the length of the content in bytes, at most 2^17
//!   content
//!   4 bytes    the lower half of the XXH3 hash of the kind, length and content
//! ```
//!
//! The content is in postcard's wire format (<https://postcard.jamesmunns.com/wire-format>): integers are varints,
//! signed integers zigzag varints, and a text follows its length. An enumeration is the index of its variant, followed
//! by the fields of the variant.
//!
//! | kind | | content |
//! |---|---|---|
//! | 1 | process | [`ProcessId`], [`ProcessInfo`] |
//! | 2 | thread | [`ThreadId`], [`ThreadInfo`] |
//! | 3 | state | [`StateId`], [`StateInfo`] |
//! | 4 | counter | [`CounterId`], [`CounterInfo`] |
//! | 5 | name | [`NameId`], text |
//! | 6 | records | [`ThreadId`], then records up to the end: ns since the previous record, `i64`, [`RecordedEvent`] |
//! | 7 | dropped | [`ThreadId`], number of dropped records of the thread, `u64` |
//! | 8 | clock offset | [`ProcessId`], [`ClockOffset`] |
//!
//! The time of the first record of a chunk is relative to time 0. Times are added modulo 2^64.
//!
//! The writer chooses the numbers of processes, threads, states, counters and names; they are valid within a section.
//! Chunks are independent of each other, except that they use numbers that other chunks declare. A number may be
//! declared after its use. A reader skips chunks of unknown kinds; an incompatible change of the format gets a new
//! version. After a truncated or damaged chunk, a reader continues at the next section.
//!
//! # Map of the code
//!
//! - `model.rs`: types of recorded events, shared by writers and readers
//! - `chunk.rs`: sections and chunks as bytes
//! - `writer.rs`: [`FileWriter`], and the [`RecordRun`]s of threads that it writes
//! - `reader.rs`: [`TraceReader`]: decodes bytes into declarations and records, within [`Limits`], also while a file
//!   grows
//! - `gather.rs`: collects records in columns and matches begins with ends
//! - `timeline.rs`: the [`Timeline`]; `assemble.rs`: builds it on one clock from the collected records
//! - `totals.rs`, `overlap.rs`, `difference.rs`: analyses of a timeline
//! - `note.rs`: a reader's notes on a file
//!
//! This crate reads no clock: the recorder passes all times.

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
