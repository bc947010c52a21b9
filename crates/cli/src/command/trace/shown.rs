//! Texts and times of a trace for people, and rows of results for programs.

use std::io;

use command_line::failure::{Failure, Result};
use command_line::visible;
use serde::Serialize;

use super::Format;
use crate::explain;
use crate::local;
use crate::row_format::{write_csv, write_json};

/// A text as it can be printed on a terminal: what would move its cursor or change its colours is written as Rust
/// writes it. Traces come from anybody.
pub(in crate::command) fn text(text: &str) -> String {
    visible(text).into_owned()
}

/// Nanoseconds with a unit that makes them readable.
pub(super) fn time(nanoseconds: u64) -> String {
    explain::time(nanoseconds as f64 / 1e9)
}

/// Prints rows in the format asked for: `lines` are those of the table for people.
pub(super) fn print<R: Serialize>(
    format: Format,
    rows: &[R],
    lines: impl FnOnce() -> Vec<String>,
) -> Result<()> {
    let output = io::stdout().lock();
    let written = match format {
        Format::Table => return local::print(lines()),
        Format::Csv => write_csv(rows, output),
        Format::Json => write_json(rows, output),
    };
    written.map_err(|error| Failure::writing("standard output", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_trace_moves_the_cursor() {
        assert_eq!(text("a\u{1b}[2Jb\nc\u{7f}\u{9b}чтение <b>"), "a\\u{1b}[2Jb\\nc\\u{7f}\\u{9b}чтение <b>");
    }
}
