//! The journal: one line for every completed trial, so that no trial runs twice.
//!
//! ```text
//!   {"program":"0.1.0+8f...","key":"5c...","wall_ns":52100000,"trial":{"elapsed_ns":666000000,...}}
//! ```
//!
//! Lines are only appended, each with one write. So completed trials survive any end of the program. At worst the last
//! line is torn, and invalid lines are skipped. Lines of another program version are ignored, because its results may
//! differ. Lines may be repeated and in any order. To merge journals, read one after the other, or concatenate their
//! files.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measurement::Measurement;
use crate::planned_trial::TrialKey;

/// Version of the program, and a hash of the sources that determine simulation results.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("SIMULATOR"));

/// Completed trials with their results.
#[derive(Debug, Default)]
pub struct Journal {
    entries: BTreeMap<TrialKey, (Measurement, Duration)>,
    foreign: usize,
    damaged: usize,
    file: Option<(PathBuf, File)>,
}

/// Reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Reading or writing the file failed.
    #[error("{}: {error}", path.display())]
    File {
        /// File of the journal.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file is not a journal. It has not been modified.
    #[error(
        "{}: its first line is not that of a journal of trials; it was not changed. Name the journal of an \
         earlier run, or a new file", .0.display()
    )]
    NotAJournal(PathBuf),
    /// Another process is appending to the file.
    #[error("{}: another run is writing it: wait until that run ends, or choose another directory", .0.display())]
    InUse(PathBuf),
    /// The same program version produced two different results of one trial.
    #[error(
        "{}: it has two different results of trial {key} by the same program: a line was changed, or a \
         computer is faulty. Remove the file to run all trials again", path.display()
    )]
    Contradiction {
        /// File of the journal.
        path: PathBuf,
        /// Key of the trial.
        key: TrialKey,
    },
}

/// Beginning of every line, in all program versions.
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
    /// Creates a journal without a file.
    pub fn in_memory() -> Journal {
        Journal::default()
    }

    /// Opens or creates the journal in the file at `path`. New trials are appended to the file. The file is locked
    /// until this value is dropped, so another `open` of the same file fails with `InUse`.
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
            // Terminate a torn line, so that new lines start at the margin.
            (&file).write_all(b"\n").map_err(failed)?;
        }
        journal.file = Some((path.to_owned(), file));
        Ok(journal)
    }

    /// Adds the trials of the file at `path`, without writing to any file. Merging the same journal again has no
    /// effect.
    pub fn merge(&mut self, path: &Path) -> Result<(), JournalError> {
        let text =
            std::fs::read(path).map_err(|error| JournalError::File { path: path.to_owned(), error })?;
        expect_journal(&text, path)?;
        self.take(&text, path)
    }

    /// Adds the trials of `text`, the text of a journal, without writing to any file. Errors mention `from`.
    pub fn merge_text(&mut self, text: &str, from: &str) -> Result<(), JournalError> {
        self.take(text.as_bytes(), Path::new(from))
    }

    /// Removes all trials, in memory and in the file.
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

    /// Adds a trial and its run time on this computer. Appends the trial to the file, if the journal has one.
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

    /// Iterates over all trials in the order of their keys, with their run times.
    pub fn entries(&self) -> impl Iterator<Item = (TrialKey, &Measurement, Duration)> {
        self.entries.iter().map(|(key, (measurement, wall))| (*key, measurement, *wall))
    }

    /// Returns all trials as the text of a journal, which can be merged into another one.
    pub fn to_text(&self) -> String {
        self.entries().map(|(key, measurement, wall)| line(key, measurement, wall)).collect()
    }

    /// Returns the measurement of a trial, if it has run.
    pub fn get(&self, key: TrialKey) -> Option<&Measurement> {
        self.entries.get(&key).map(|(measurement, _)| measurement)
    }

    /// Returns the run time of a trial on the computer that ran it.
    pub fn wall(&self, key: TrialKey) -> Option<Duration> {
        self.entries.get(&key).map(|(_, wall)| *wall)
    }

    /// Returns the number of trials.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if the journal has no trials.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of ignored lines of other program versions.
    pub fn foreign(&self) -> usize {
        self.foreign
    }

    /// Returns the number of ignored invalid lines.
    pub fn damaged(&self) -> usize {
        self.damaged
    }
}

/// Rejects the text of a file that is not a journal. Accepts an empty file, and a file that begins with a torn journal
/// line.
fn expect_journal(text: &[u8], path: &Path) -> Result<(), JournalError> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let first = lines.find(|line| line.len() >= LINE_START.len() || !LINE_START.starts_with(line));
    match first {
        Some(line) if !line.starts_with(LINE_START) => Err(JournalError::NotAJournal(path.to_owned())),
        _ => Ok(()),
    }
}

/// Formats the line of a trial, with its newline.
fn line(key: TrialKey, measurement: &Measurement, wall: Duration) -> String {
    let wall_ns = wall.as_nanos() as u64;
    let line = Line { program: PROGRAM.to_owned(), key, wall_ns, trial: measurement.clone() };
    serde_json::to_string(&line).expect("numbers and texts can be written") + "\n"
}
