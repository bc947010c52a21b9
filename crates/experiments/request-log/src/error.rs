//! What is wrong with a log: where, why, and what to do about it.

use std::fmt;

/// Where in a log something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the whole of it.
    Log,
    /// In this line, counted from 1.
    Line(u64),
    /// In this line from this column on, both counted from 1, the column in bytes.
    Column(u64, usize),
    /// In this line, in the field below this name of a table's head.
    Field(u64, String),
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{why}")]
pub struct Error {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub why: String,
    /// What to do about it, a sentence; empty if that is plain.
    pub remedy: String,
}

impl fmt::Display for Place {
    /// What stands before the reason.
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

    /// The log could not be read any further.
    pub(crate) fn reading(line: u64, error: &std::io::Error) -> Self {
        Error::new(Place::Line(line), format!("it cannot be read: {error}"))
    }
}

/// Text that is not as it should be, so that a line of it fits on a screen.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
