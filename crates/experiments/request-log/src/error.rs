//! Errors in a log: place, reason and remedy.

use std::fmt;

/// Place of an error in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The log as a whole.
    Log,
    /// A line, counted from 1.
    Line(u64),
    /// A line and a column, both counted from 1, the column in bytes.
    Column(u64, usize),
    /// A line, and the title of a table's column.
    Field(u64, String),
}

/// Error that makes a log unreadable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{why}")]
pub struct Error {
    /// Place of the error.
    pub place: Place,
    /// Reason.
    pub why: String,
    /// Remedy, as a sentence; empty if the remedy is obvious.
    pub remedy: String,
}

impl fmt::Display for Place {
    /// Writes the place as the beginning of the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Log => Ok(()),
            Place::Line(line) => write!(f, "line {line}: "),
            Place::Column(line, column) => write!(f, "line {line}, column {column}: "),
            Place::Field(line, name) => write!(f, "line {line}, {name}: "),
        }
    }
}

impl Error {
    pub(crate) fn new(place: Place, why: impl Into<String>) -> Self {
        Error { place, why: why.into(), remedy: String::new() }
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        Error { remedy: remedy.into(), ..self }
    }

    /// Creates the error of an input that cannot be read beyond `line`.
    pub(crate) fn reading(line: u64, error: &std::io::Error) -> Self {
        Error::new(Place::Line(line), format!("it cannot be read: {error}"))
    }
}

/// Returns invalid text, shortened so that it fits on one line of a screen.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
