//! The last notes, kept in memory until they are asked for.

use std::collections::VecDeque;

use crate::recorder::{NotedEvent, Recorder, RowId};
use crate::{Instant, NodeId};

/// A recorder with room for a fixed number of notes. When it is full, the oldest give way, and are counted.
#[derive(Debug)]
pub struct NoteRing {
    rows: Vec<NoteRow>,
    notes: VecDeque<KeptNote>,
    most: usize,
    dropped: u64,
}

/// A row as its recorder has heard of it; see [`Recorder::row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    /// The node that it belongs to.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Whether it has counts and nothing else.
    pub counts: bool,
}

/// A note that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNote {
    /// The row, by its place among [`NoteRing::rows`].
    pub row: RowId,
    /// When it happened.
    pub time: Instant,
    /// What happened.
    pub what: KeptEvent,
}

/// A [`NotedEvent`] with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of `NotedEvent`")]
pub enum KeptEvent {
    Begin { name: &'static str, arguments: Box<[(&'static str, u64)]> },
    End,
    Count(u64),
    Sent(u64),
    Received(u64),
}

impl KeptEvent {
    /// Keeps a note.
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
    /// The event that is kept.
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
    /// Room for `most` notes.
    pub fn new(most: usize) -> Self {
        NoteRing { rows: Vec::new(), notes: VecDeque::new(), most: most.max(1), dropped: 0 }
    }

    /// All rows that there have been.
    pub fn rows(&self) -> &[NoteRow] {
        &self.rows
    }

    /// The notes that are kept, the oldest first. There may be ends without a beginning, which was dropped.
    pub fn notes(&self) -> impl ExactSizeIterator<Item = &KeptNote> {
        self.notes.iter()
    }

    /// Tells another recorder all that is kept.
    pub fn tell(&self, recorder: &mut dyn Recorder) {
        let row = |row: &NoteRow| recorder.row(row.node, &row.name, row.counts);
        let rows: Vec<RowId> = self.rows.iter().map(row).collect();
        for KeptNote { row, time, what } in &self.notes {
            recorder.note(rows[row.0 as usize], *time, what.event());
        }
    }

    /// How many gave way to others.
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
