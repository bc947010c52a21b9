//! The journal: every trial that was run, on a line of its own, so that none is run twice.
//!
//! ```text
//!   {"program":"0.1.0+8f...","key":"5c...","wall_ns":52100000,"trial":{"elapsed_ns":666000000,...}}
//! ```
//!
//! Lines are only ever appended, each at once. So however the program ends, the trials before are kept; at worst the
//! last line is torn, and lines that make no sense are skipped. Lines of another program do not count, since another
//! program may come to other results. Lines may repeat and stand in any order: journals are merged by reading one after
//! the other, or by concatenating their files.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measurement::Measurement;
use crate::planned_trial::TrialKey;

/// The version of the program, and a hash of the sources that decide what a simulation comes to.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("SIMULATOR"));

/// The trials that were run.
#[derive(Debug, Default)]
pub struct Journal {
    entries: BTreeMap<TrialKey, (Measurement, Duration)>,
    foreign: usize,
    damaged: usize,
    file: Option<(PathBuf, File)>,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The journal's file.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// It is some other file, given by mistake. Nothing was written to it.
    #[error(
        "{}: this is no journal of trials, by its first line: nothing was written to it; name another file, one that \
         a run made or that is not there yet", .0.display()
    )]
    NotAJournal(PathBuf),
    /// Another process appends to it.
    #[error("{}: another run is writing it: wait for that, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The same program came to two results of one trial.
    #[error(
        "{}: two different results of trial {key}, of the same program: one of the lines was changed, or a \
         computer is at fault; remove the file to have all trials run again", path.display()
    )]
    Contradiction {
        /// The journal's file.
        path: PathBuf,
        /// The trial.
        key: TrialKey,
    },
}

/// How every line begins, in all versions of the program.
const LINE_START: &[u8] = b"{\"program\":\"";

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    program: String,
    key: TrialKey,
    wall_ns: u64,
    trial: Measurement,
}

impl Journal {
    /// A journal without a file: it lasts as long as the value.
    pub fn in_memory() -> Journal {
        Journal::default()
    }

    /// The journal in the file at `path`, which is made if there is none. What is recorded is appended to it. As long
    /// as this value lives, it cannot be opened like this again.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let failed = |error| JournalError::File { path: path.to_owned(), error };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut journal = Journal::default();
        let mut text = Vec::new();
        (&file).read_to_end(&mut text).map_err(failed)?;
        expect_journal(&text, path)?;
        journal.take(&text, path)?;
        if text.last().is_some_and(|&byte| byte != b'\n') {
            // After a torn line; what follows gets a line of its own.
            (&file).write_all(b"\n").map_err(failed)?;
        }
        journal.file = Some((path.to_owned(), file));
        Ok(journal)
    }

    /// Adds what the file at `path` has; nothing is written. Reading a journal twice is reading it once.
    pub fn merge(&mut self, path: &Path) -> Result<(), JournalError> {
        let text =
            std::fs::read(path).map_err(|error| JournalError::File { path: path.to_owned(), error })?;
        expect_journal(&text, path)?;
        self.take(&text, path)
    }

    /// Adds what `text` has, which is the text of a journal; nothing is written. Complaints name `from`.
    pub fn merge_text(&mut self, text: &str, from: &str) -> Result<(), JournalError> {
        self.take(text.as_bytes(), Path::new(from))
    }

    /// Forgets all trials, those in the file too.
    pub fn clear(&mut self) -> Result<(), JournalError> {
        if let Some((path, file)) = &self.file {
            file.set_len(0).map_err(|error| JournalError::File { path: path.clone(), error })?;
        }
        *self = Journal { file: self.file.take(), ..Journal::default() };
        Ok(())
    }

    fn take(&mut self, text: &[u8], path: &Path) -> Result<(), JournalError> {
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(Line { program, key, wall_ns, trial }) = serde_json::from_slice(line) else {
                self.damaged += 1;
                continue;
            };
            if program != PROGRAM {
                self.foreign += 1;
                continue;
            }
            let (known, _) =
                self.entries.entry(key).or_insert_with(|| (trial.clone(), Duration::from_nanos(wall_ns)));
            if *known != trial {
                return Err(JournalError::Contradiction { path: path.to_owned(), key });
            }
        }
        Ok(())
    }

    /// Adds a trial and how long it took on this computer, and writes it to the file if there is one.
    pub fn record(
        &mut self,
        key: TrialKey,
        measurement: Measurement,
        wall: Duration,
    ) -> Result<(), JournalError> {
        if let Some((path, file)) = &mut self.file {
            let written =
                file.write_all(line(key, &measurement, wall).as_bytes()).and_then(|()| file.sync_data());
            written.map_err(|error| JournalError::File { path: path.clone(), error })?;
        }
        self.entries.insert(key, (measurement, wall));
        Ok(())
    }

    /// All that it has, in the order of the keys.
    pub fn entries(&self) -> impl Iterator<Item = (TrialKey, &Measurement, Duration)> {
        self.entries.iter().map(|(key, (measurement, wall))| (*key, measurement, *wall))
    }

    /// All that it has as the text of a journal, to be merged elsewhere.
    pub fn to_text(&self) -> String {
        self.entries().map(|(key, measurement, wall)| line(key, measurement, wall)).collect()
    }

    /// What the trial came to, if it was run.
    pub fn get(&self, key: TrialKey) -> Option<&Measurement> {
        self.entries.get(&key).map(|(measurement, _)| measurement)
    }

    /// How long the trial took on the computer that ran it.
    pub fn wall(&self, key: TrialKey) -> Option<Duration> {
        self.entries.get(&key).map(|(_, wall)| *wall)
    }

    /// How many trials it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many lines were of another program, and do not count.
    pub fn foreign(&self) -> usize {
        self.foreign
    }

    /// How many lines made no sense, and do not count.
    pub fn damaged(&self) -> usize {
        self.damaged
    }
}

/// Refuses the text of a file that is no journal. An empty one is a journal; so is one of which nothing but a torn
/// piece of a line was written before others.
fn expect_journal(text: &[u8], path: &Path) -> Result<(), JournalError> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let first = lines.find(|line| line.len() >= LINE_START.len() || !LINE_START.starts_with(line));
    match first {
        Some(line) if !line.starts_with(LINE_START) => Err(JournalError::NotAJournal(path.to_owned())),
        _ => Ok(()),
    }
}

/// The line of a trial, with its end.
fn line(key: TrialKey, measurement: &Measurement, wall: Duration) -> String {
    let wall_ns = wall.as_nanos() as u64;
    let line = Line { program: PROGRAM.to_owned(), key, wall_ns, trial: measurement.clone() };
    serde_json::to_string(&line).expect("numbers and texts can be written") + "\n"
}
