//! What a reader has to say of a file: what is missing of it, and what was odd in it.
//!
//! There is one note for each kind and file, with a count, so that a file full of faults does not fill the memory.

use std::collections::BTreeMap;
use std::fmt;

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// The file ends within a chunk or a section's head; counted are the bytes of it that are there.
    Cut,
    /// Bytes that are no chunk, or of one that was changed, up to the next section.
    Damaged,
    /// A section of another version than [`crate::VERSION`], which is passed over.
    OtherVersion,
    /// A chunk of a kind that is not known, which is passed over.
    UnknownChunk,
    /// A chunk whose content does not decode, or not up to its end.
    Undecodable,
    /// A record whose thread was never declared: it has a thread without a name.
    UndeclaredThread,
    /// A thread or clock offset whose process was never declared.
    UndeclaredProcess,
    /// A record whose state was never declared: it has a state without a name.
    UndeclaredState,
    /// A record whose counter, or argument whose name, was never declared.
    UndeclaredName,
    /// A time that is before that of the record before it.
    Backwards,
    /// An end of a state that has not begun: a span marked so, without duration.
    EndWithoutBegin,
    /// A state that began and did not end: a span marked so.
    Unfinished,
    /// An end before its begin: a span without duration.
    EndBeforeBegin,
    /// An argument where no span is open, which is left out.
    ArgumentWithoutSpan,
    /// A record that the recorder had no room for.
    Dropped,
    /// A record beyond the limit of records, which is left out.
    RecordsLeftOut,
    /// A declaration, or text, beyond the limit of those, which is left out.
    DeclarationsLeftOut,
    /// A process whose time has no place on the wall clock among others that have: it begins with the first of them.
    ClockUnknown,
    /// A process whose times are certain only so far; counted are the nanoseconds, of the worst.
    ClockUncertain,
    /// A time that is beyond 2^64 - 1 ns on the clock of all, and is put there.
    TimeClamped,
    /// A flow that arrives and never left, or leaves and never arrives.
    FlowUnmatched,
}

impl NoteKind {
    /// Whether it is in any recording of what goes on, which has one end alone of what is under way when it begins or
    /// ends.
    pub fn is_usual(self) -> bool {
        matches!(self, NoteKind::EndWithoutBegin | NoteKind::Unfinished | NoteKind::FlowUnmatched)
    }
}

/// Something to know of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name of the file.
    pub file: String,
    /// What it is about.
    pub kind: NoteKind,
    /// How many there are of it.
    pub count: u64,
    /// The offset in the file of the chunk where it was first seen, in bytes; none if that has no sense.
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

/// The notes so far, by file and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(BTreeMap<(u32, NoteKind), (u64, Option<u64>)>);

impl Notes {
    /// Counts `count` more notes of a kind.
    pub(crate) fn add(&mut self, file: u32, kind: NoteKind, count: u64, offset: Option<u64>) {
        if count > 0 {
            let (counted, _) = self.0.entry((file, kind)).or_insert((0, offset));
            *counted = counted.saturating_add(count);
        }
    }

    /// Notes the greatest of the counts given.
    pub(crate) fn greatest(&mut self, file: u32, kind: NoteKind, count: u64) {
        if count > 0 {
            let (counted, _) = self.0.entry((file, kind)).or_insert((0, None));
            *counted = count.max(*counted);
        }
    }

    /// All of them, file by file.
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
