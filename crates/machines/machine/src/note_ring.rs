//! Ring buffer of the last events in memory.

use std::collections::VecDeque;

use crate::recorder::{NotedEvent, Recorder, RowId};
use crate::{Instant, NodeId};

/// Recorder with room for a fixed number of events. When full it drops the oldest events and counts them.
#[derive(Debug)]
pub struct NoteRing {
    rows: Vec<NoteRow>,
    notes: VecDeque<KeptNote>,
    most: usize,
    dropped: u64,
}

/// Row as announced to its recorder; see [`Recorder::row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    /// Node that the row belongs to.
    pub node: NodeId,
    /// Name of the row.
    pub name: String,
    /// True if the row has counts only.
    pub counts: bool,
}

/// Kept event with its row and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNote {
    /// Row, as an index into [`NoteRing::rows`].
    pub row: RowId,
    /// Time of the event.
    pub time: Instant,
    /// Kind and arguments of the event.
    pub what: KeptEvent,
}

/// Owned copy of a [`NotedEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are those of `NotedEvent`")]
pub enum KeptEvent {
    Begin { name: &'static str, arguments: Box<[(&'static str, u64)]> },
    End,
    Count(u64),
    Sent(u64),
    Received(u64),
}

impl KeptEvent {
    /// Copies an event.
    pub fn of(note: NotedEvent<'_>) -> Self {
        match note {
            NotedEvent::Begin { name, arguments } => KeptEvent::Begin { name, arguments: arguments.into() },
            NotedEvent::End => KeptEvent::End,
            NotedEvent::Count(value) => KeptEvent::Count(value),
            NotedEvent::Sent(number) => KeptEvent::Sent(number),
            NotedEvent::Received(number) => KeptEvent::Received(number),
        }
    }
}

impl KeptEvent {
    /// Returns the kept event as a [`NotedEvent`].
    pub fn event(&self) -> NotedEvent<'_> {
        match self {
            KeptEvent::Begin { name, arguments } => NotedEvent::Begin { name, arguments },
            KeptEvent::End => NotedEvent::End,
            KeptEvent::Count(value) => NotedEvent::Count(*value),
            KeptEvent::Sent(number) => NotedEvent::Sent(*number),
            KeptEvent::Received(number) => NotedEvent::Received(*number),
        }
    }
}

impl NoteRing {
    /// Returns an empty ring with room for `most` events, at least one.
    pub fn new(most: usize) -> Self {
        NoteRing { rows: Vec::new(), notes: VecDeque::new(), most: most.max(1), dropped: 0 }
    }

    /// Returns all rows announced so far.
    pub fn rows(&self) -> &[NoteRow] {
        &self.rows
    }

    /// Returns the kept events, the oldest first. The begin of a span may have been dropped while its end is kept.
    pub fn notes(&self) -> impl ExactSizeIterator<Item = &KeptNote> {
        self.notes.iter()
    }

    /// Passes all kept events to another recorder.
    pub fn drain_into(&self, recorder: &mut dyn Recorder) {
        let row = |row: &NoteRow| recorder.row(row.node, &row.name, row.counts);
        let rows: Vec<RowId> = self.rows.iter().map(row).collect();
        for KeptNote { row, time, what } in &self.notes {
            recorder.note(rows[row.0 as usize], *time, what.event());
        }
    }

    /// Returns the number of dropped events.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Recorder for NoteRing {
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId {
        self.rows.push(NoteRow { node, name: name.to_owned(), counts });
        RowId(self.rows.len() as u32 - 1)
    }

    fn note(&mut self, row: RowId, time: Instant, note: NotedEvent<'_>) {
        if self.notes.len() == self.most {
            self.notes.pop_front();
            self.dropped += 1;
        }
        self.notes.push_back(KeptNote { row, time, what: KeptEvent::of(note) });
    }
}
