//! Output of rows and reports in the requested format: on standard output, and for benchmarks also as a page.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::say;
use serde::Serialize;
use transfer::local::{self, STANDARD};

use crate::options::experiment::ProgressArgs;

/// Output options of a benchmark.
#[derive(Args)]
pub(crate) struct RowOutput {
    /// Output format.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Also write a page with charts to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

impl RowOutput {
    /// Checks that the page can be written, so that a command fails before it measures.
    pub(crate) fn check(&self) -> Result<()> {
        self.html.as_deref().map_or(Ok(()), local::check_writable)
    }

    /// Prints the rows, for which `lines` formats the table, and writes the page with the command line that made it.
    pub(crate) fn print<R: Serialize>(
        &self,
        rows: &[R],
        lines: fn(&[R]) -> Vec<String>,
        page: fn(&[R], &str) -> String,
    ) -> Result<()> {
        self.format.print(rows, lines)?;
        write_page(self.html.as_deref(), |command| page(rows, command))
    }
}

/// Writes a page to the file `path`, if there is one. `page` receives the command line, to show it on the page.
pub(crate) fn write_page(path: Option<&Path>, page: impl FnOnce(&str) -> String) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    local::write(path, |file| file.write_all(page(&command).as_bytes()))
}

/// Output format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// A table as text.
    Table,
    /// Comma-separated values: a line with the names of the columns, then one line for each row.
    Csv,
    /// JSON: an array of the rows, unless stated otherwise.
    Json,
}

impl RowFormat {
    /// Prints the rows. `lines` formats the table; CSV uses the names of the fields as column names.
    pub(crate) fn print<R: Serialize>(
        self,
        rows: &[R],
        lines: impl FnOnce(&[R]) -> Vec<String>,
    ) -> Result<()> {
        match self {
            RowFormat::Table => local::print(lines(rows)),
            RowFormat::Csv => {
                let text = csv(rows).map_err(|error| Failure::new("cannot format CSV", error))?;
                local::write_or_print(Path::new(STANDARD), |output| output.write_all(&text))
            }
            RowFormat::Json => print_json(rows),
        }
    }

    /// Prints a report: as text; as CSV rows, with the remarks on standard error; or as one JSON object.
    pub(crate) fn print_report<R: Serialize + ?Sized>(
        self,
        report: &R,
        lines: impl FnOnce(&R) -> Vec<String>,
        csv: impl FnOnce(&R) -> Vec<String>,
        remarks: impl FnOnce(&R) -> Vec<String>,
    ) -> Result<()> {
        match self {
            RowFormat::Table => local::print(lines(report)),
            RowFormat::Csv => {
                remarks(report).iter().for_each(|line| say!("{line}"));
                local::print(csv(report))
            }
            RowFormat::Json => print_json(report),
        }
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<()> {
    local::print([json(value)?])
}

/// Formats a value as indented JSON.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::new("cannot format JSON", error))
}

/// Formats rows as CSV, after a line with the names of the columns.
fn csv<R: Serialize>(rows: &[R]) -> std::result::Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    writer.into_inner().map_err(|error| error.into_error().into())
}
