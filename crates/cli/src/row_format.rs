//! Rows of a benchmark on standard output, as the user wants them.

use clap::ValueEnum;
use command_line::failure::{Failure, Result};
use serde::Serialize;

use crate::local;

/// Output format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// For people.
    Table,
    /// A line for each row.
    Csv,
    /// An array of rows.
    Json,
}

impl RowFormat {
    /// Prints them, by `lines` as a table or by `csv`.
    pub(crate) fn print<R: Serialize>(
        self,
        rows: &[R],
        lines: fn(&[R]) -> Vec<String>,
        csv: fn(&[R]) -> Vec<String>,
    ) -> Result<()> {
        match self {
            RowFormat::Table => local::print(lines(rows)),
            RowFormat::Csv => local::print(csv(rows)),
            RowFormat::Json => {
                let json = serde_json::to_string_pretty(rows);
                local::print([json.map_err(|error| Failure::new("printing JSON", error))?])
            }
        }
    }
}
