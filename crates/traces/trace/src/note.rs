//! A reader's notes on a file: missing and inconsistent records.
//!
//! There is one note for each kind and file, with a count, so that the memory for notes is bounded even for a file full
//! of faults.

use std::collections::BTreeMap;
use std::fmt;

/// Kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// The file ends within a chunk or a section's header; the count is the number of its present bytes.
    Cut,
    /// Bytes that are not a chunk, or of a corrupted one, up to the next section.
    Damaged,
    /// A section of another version than [`crate::VERSION`], which is skipped.
    OtherVersion,
    /// A chunk of unknown kind, which is skipped.
    UnknownChunk,
    /// A chunk whose content does not decode, or not completely.
    Undecodable,
    /// A record whose thread was never declared: it gets a thread without a name.
    UndeclaredThread,
    /// A thread or clock offset whose process was never declared.
    UndeclaredProcess,
    /// A record whose state was never declared: it gets a state without a name.
    UndeclaredState,
    /// A record whose counter, or argument whose name, was never declared.
    UndeclaredName,
    /// A time before that of the preceding record.
    Backwards,
    /// An end of a state that has not begun: a marked span without duration.
    EndWithoutBegin,
    /// A state that began and did not end: a marked span.
    Unfinished,
    /// An end before its begin: a span without duration.
    EndBeforeBegin,
    /// An argument outside of any open span, which is left out.
    ArgumentWithoutSpan,
    /// A record dropped by the recorder because its buffer was full.
    Dropped,
    /// A record beyond the limit of records, which is left out.
    RecordsLeftOut,
    /// A declaration or text beyond its limit, which is left out.
    DeclarationsLeftOut,
    /// A process without a known wall clock, while others have one: it begins with the first of them.
    ClockUnknown,
    /// A process with uncertain times; the count is the largest uncertainty in nanoseconds.
    ClockUncertain,
    /// A time beyond 2^64 - 1 ns on the common clock, which is clamped.
    TimeClamped,
    /// A flow that arrives and never departed, or departs and never arrives.
    FlowUnmatched,
}

impl NoteKind {
    /// Returns true if the note is normal for any recording of running activity: spans and flows in progress at its
    /// begin or end have one end only.
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
    /// Offset in bytes of the chunk of the first occurrence; `None` if meaningless.
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
            NoteKind::Cut => write!(f, "it ends in the middle of a chunk ({count} bytes of it are there)"),
            NoteKind::Damaged => write!(f, "{} damaged and passed over", of("byte is", "bytes are")),
            NoteKind::OtherVersion => write!(f, "{} of another version", of("part is", "parts are")),
            NoteKind::UnknownChunk => {
                write!(f, "{} of a newer kind and passed over", of("chunk is", "chunks are"))
            }
            NoteKind::Undecodable => write!(f, "{} not as it should be", of("chunk is", "chunks are")),
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
                write!(f, "{} to no span and left out", of("argument belongs", "arguments belong"))
            }
            NoteKind::Dropped => {
                write!(f, "{} not recorded, for want of room", of("record was", "records were"))
            }
            NoteKind::RecordsLeftOut => {
                write!(f, "{} beyond the limit and left out", of("record is", "records are"))
            }
            NoteKind::DeclarationsLeftOut => {
                write!(f, "{} beyond the limit and left out", of("declaration is", "declarations are"))
            }
            NoteKind::ClockUnknown => {
                let begin = if count == 1 { "begins" } else { "begin" };
                let have = of("process has", "processes have");
                write!(f, "{have} no wall clock and {begin} with the others")
            }
            NoteKind::ClockUncertain => write!(f, "its times are certain to within {count} ns only"),
            NoteKind::TimeClamped => write!(f, "{} beyond what can be told", of("time is", "times are")),
            NoteKind::FlowUnmatched => write!(f, "{} only one end", of("flow has", "flows have")),
        }?;
        match self.offset {
            Some(offset) => write!(f, ", first at byte {offset}"),
            None => Ok(()),
        }
    }
}

/// Notes so far, by file and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(BTreeMap<(u32, NoteKind), (u64, Option<u64>)>);

impl Notes {
    /// Adds `count` notes of a kind.
    pub(crate) fn add(&mut self, file: u32, kind: NoteKind, count: u64, offset: Option<u64>) {
        if count > 0 {
            let (counted, _) = self.0.entry((file, kind)).or_insert((0, offset));
            *counted = counted.saturating_add(count);
        }
    }

    /// Keeps the maximum of the counts.
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
