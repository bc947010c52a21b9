//! Rows as the user wants them: on standard output, and those of benchmarks on a page.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::progress::Show;
use serde::Serialize;

use crate::local;

/// The options that say how a benchmark tells its rows.
#[derive(Args)]
pub(crate) struct RowOutput {
    /// Output format.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Write a page with charts to this file, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Whether to show progress.
    #[arg(long, value_enum, default_value_t = Show::Auto, value_name = "WHEN")]
    pub(crate) progress: Show,
}

impl RowOutput {
    /// Fails if the page could not be written: before anything is measured.
    pub(crate) fn check(&self) -> Result<()> {
        self.html.as_deref().map_or(Ok(()), local::check_writable)
    }

    /// Prints the rows, by `lines` as a table or by `csv`; makes a page of them, which says by which command.
    pub(crate) fn print<R: Serialize>(
        &self,
        rows: &[R],
        lines: fn(&[R]) -> Vec<String>,
        csv: fn(&[R]) -> Vec<String>,
        page: fn(&[R], &str) -> String,
    ) -> Result<()> {
        self.format.print(rows, lines, csv)?;
        if let Some(path) = &self.html {
            let command = std::env::args().collect::<Vec<_>>().join(" ");
            local::write(path, |file| file.write_all(page(rows, &command).as_bytes()))?;
        }
        Ok(())
    }
}

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
    /// Prints what serde knows: `lines` are those of the table.
    pub(crate) fn print_known<R: Serialize>(
        self,
        rows: &[R],
        lines: impl FnOnce(&[R]) -> Vec<String>,
    ) -> Result<()> {
        let output = io::stdout().lock();
        let written = match self {
            RowFormat::Table => return local::print(lines(rows)),
            RowFormat::Csv => write_csv(rows, output),
            RowFormat::Json => write_json(rows, output),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| Failure::writing("standard output", &error)),
        }
    }

    /// Prints them, by `lines` as a table or by `csv`.
    fn print<R: Serialize>(
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

/// Rows as lines of values with commas between them, below their names.
pub(crate) fn write_csv<R: Serialize>(rows: &[R], output: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    rows.iter().try_for_each(|row| writer.serialize(row)).map_err(io::Error::other)?;
    writer.flush()
}

/// Rows as an array of objects.
pub(crate) fn write_json<R: Serialize>(rows: &[R], mut output: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut output, rows).map_err(io::Error::from)?;
    writeln!(output)
}
