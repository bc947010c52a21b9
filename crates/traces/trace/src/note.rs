//! A reader's notes on a file: missing and inconsistent records.
//!
//! There is one note for each kind and file, with a count, so that the memory for notes is bounded even for a file full
//! of faults.

use std::collections::BTreeMap;
use std::fmt;

/// Kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// The file ends within a chunk or the header of a section; the count is the number of bytes of this part.
    Cut,
    /// Bytes, up to the next section, that are not a chunk or belong to a corrupted chunk.
    Damaged,
    /// A section of a version other than [`crate::VERSION`]. The reader skips it.
    OtherVersion,
    /// A chunk of unknown kind. The reader skips it.
    UnknownChunk,
    /// A chunk with content that does not decode, or has excess bytes.
    Undecodable,
    /// A record of an undeclared thread. The timeline has a thread without a declared name for it.
    UndeclaredThread,
    /// A thread or clock offset of an undeclared process.
    UndeclaredProcess,
    /// A record of an undeclared state. The timeline has a state without a declared name for it.
    UndeclaredState,
    /// A record with an undeclared counter or name of an argument.
    UndeclaredName,
    /// A record with an earlier time than the preceding record of its thread.
    Backwards,
    /// An end of a state without a begin. It becomes a marked span without duration.
    EndWithoutBegin,
    /// A state that began and did not end. It becomes a marked span.
    Unfinished,
    /// An end with an earlier time than its begin. It becomes a span without duration.
    EndBeforeBegin,
    /// An argument outside of any open span. It is omitted.
    ArgumentWithoutSpan,
    /// A record dropped by the recorder because its buffer was full.
    Dropped,
    /// A record beyond the limit of records. It is omitted.
    RecordsLeftOut,
    /// A declaration or text beyond its limit. It is omitted.
    DeclarationsLeftOut,
    /// A process without a known wall-clock time, while others have one. Its time 0 is that of the earliest of the
    /// others.
    ClockUnknown,
    /// A process with uncertain times; the count is the largest uncertainty in nanoseconds.
    ClockUncertain,
    /// A time below 0 or beyond 2^64 - 1 ns on the common clock. It is clamped.
    TimeClamped,
    /// A flow with an arrival but no departure, or a departure but no arrival.
    FlowUnmatched,
}

impl NoteKind {
    /// Returns true if the note is normal in a recording: spans and flows in progress at the begin or end of the
    /// recording lack one end.
    pub fn is_usual(self) -> bool {
        matches!(self, NoteKind::EndWithoutBegin | NoteKind::Unfinished | NoteKind::FlowUnmatched)
    }
}

/// Note on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the file.
    pub file: String,
    /// Kind of the note.
    pub kind: NoteKind,
    /// Number of occurrences.
    pub count: u64,
    /// Offset in bytes of the chunk of the first occurrence; `None` if the note has no place in the file.
    pub offset: Option<u64>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count;
        let of = |one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {several}"),
        };
        write!(f, "{}: ", self.file)?;
        match self.kind {
            NoteKind::Cut => write!(f, "it ends in the middle of a chunk, after {count} bytes of the chunk"),
            NoteKind::Damaged => write!(f, "{} damaged and skipped", of("byte is", "bytes are")),
            NoteKind::OtherVersion => {
                write!(f, "{} of another version and skipped", of("section is", "sections are"))
            }
            NoteKind::UnknownChunk => {
                write!(f, "{} of an unknown kind and skipped", of("chunk is", "chunks are"))
            }
            NoteKind::Undecodable => write!(f, "{} invalid content", of("chunk has", "chunks have")),
            NoteKind::UndeclaredThread => write!(f, "{} not declared", of("thread was", "threads were")),
            NoteKind::UndeclaredProcess => write!(f, "{} not declared", of("process was", "processes were")),
            NoteKind::UndeclaredState => write!(f, "{} not declared", of("state was", "states were")),
            NoteKind::UndeclaredName => {
                write!(f, "{} not declared", of("counter or argument was", "counters or arguments were"))
            }
            NoteKind::Backwards => write!(f, "time runs backwards {}", of("time", "times")),
            NoteKind::EndWithoutBegin => write!(f, "{} no begin", of("end has", "ends have")),
            NoteKind::Unfinished => write!(f, "{} not ended", of("span has", "spans have")),
            NoteKind::EndBeforeBegin => write!(f, "{} before the begin", of("end is", "ends are")),
            NoteKind::ArgumentWithoutSpan => {
                write!(f, "{} to no span and omitted", of("argument belongs", "arguments belong"))
            }
            NoteKind::Dropped => {
                write!(f, "{} dropped, because the buffer was full", of("record was", "records were"))
            }
            NoteKind::RecordsLeftOut => {
                write!(f, "{} beyond the limit and omitted", of("record is", "records are"))
            }
            NoteKind::DeclarationsLeftOut => {
                write!(f, "{} beyond the limit and omitted", of("declaration is", "declarations are"))
            }
            NoteKind::ClockUnknown => {
                let begin = if count == 1 { "begins" } else { "begin" };
                let have = of("process has", "processes have");
                write!(f, "{have} no wall-clock time and {begin} with the earliest process that has one")
            }
            NoteKind::ClockUncertain => write!(f, "its times are uncertain by up to {count} ns"),
            NoteKind::TimeClamped => {
                write!(f, "{} outside of the range of times and clamped", of("time is", "times are"))
            }
            NoteKind::FlowUnmatched => write!(f, "{} only one end", of("flow has", "flows have")),
        }?;
        match self.offset {
            Some(offset) => write!(f, ", first at byte {offset}"),
            None => Ok(()),
        }
    }
}

/// Notes so far, by file and kind, each with its count and the offset of its first occurrence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(BTreeMap<(u32, NoteKind), (u64, Option<u64>)>);

impl Notes {
    /// Adds `count` to the note of a kind.
    pub(crate) fn add(&mut self, file: u32, kind: NoteKind, count: u64, offset: Option<u64>) {
        if count > 0 {
            let (counted, _) = self.0.entry((file, kind)).or_insert((0, offset));
            *counted = counted.saturating_add(count);
        }
    }

    /// Raises the count of the note of a kind to `count`.
    pub(crate) fn greatest(&mut self, file: u32, kind: NoteKind, count: u64) {
        if count > 0 {
            let (counted, _) = self.0.entry((file, kind)).or_insert((0, None));
            *counted = count.max(*counted);
        }
    }

    /// Returns all notes, file by file.
    pub(crate) fn into_notes(self, files: &[String]) -> Vec<Note> {
        let note = |((file, kind), (count, offset)): ((u32, NoteKind), _)| Note {
            file: files[file as usize].clone(),
            kind,
            count,
            offset,
        };
        self.0.into_iter().map(note).collect()
    }
}
