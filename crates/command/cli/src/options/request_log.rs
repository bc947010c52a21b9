//! Options for reading a request log, and its reader.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use request_log::{Columns, Format, Limits, LogCollector, Reading, RequestLog};

use command_line::counted;
use command_line::failure::{Failure, Result};
use command_line::say;
use transfer::local::STANDARD;

/// Request log, and the options for reading it.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// The request log, or the logs of all recorded processes; - for standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Format of the log [default: detected from the first line].
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<InputFormat>,

    /// Title of a column of comma-separated values. COLUMN is time, node, file, operation, offset, bytes, took or end.
    /// A unit can follow after a colon: s, ms, us, 100ns or ns for times; sectors or a number of bytes for offset and
    /// bytes.
    #[arg(long, value_name = "COLUMN=TITLE[:UNIT]", value_parser = column)]
    column: Vec<(String, String)>,

    /// Titles of all columns, for comma-separated values whose first line is already a request. Example:
    /// time:100ns,host,file,operation,offset,bytes.
    #[arg(long, value_name = "TITLE,...")]
    titles: Option<String>,

    /// Read only the first N requests, in the order of lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,

    /// Maximum number of requests; a longer log is rejected. Each request needs 40 bytes of memory.
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// Sort the requests of each node by time, instead of rejecting a log whose times decrease.
    #[arg(long)]
    sort: bool,
}

/// Format of a request log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    /// The format of request logs.
    Text,
    /// Comma-separated values.
    Csv,
    /// The output of darshan-dxt-parser.
    Dxt,
    /// The log of a job of fio (write_iolog), version 2 or 3.
    Fio,
    /// The output of blkparse.
    Blkparse,
}

/// Splits a value such as `time=start_us` into its two sides.
fn column(text: &str) -> std::result::Result<(String, String), String> {
    let sides =
        text.split_once('=').map(|(column, title)| (column.trim().to_owned(), title.trim().to_owned()));
    sides.ok_or_else(|| "expected COLUMN=TITLE, such as time=start_us".to_owned())
}

impl InputArgs {
    /// Returns the name of the log for error messages.
    pub(crate) fn name(&self) -> String {
        let first = self.logs.first().map_or(String::new(), |log| log.display().to_string());
        match self.logs.len() {
            0 | 1 => first,
            count => format!("{first} and {} more", count - 1),
        }
    }

    /// Reads all files as one log.
    pub(crate) fn read(&self) -> Result<RequestLog> {
        self.read_as_one(&self.logs)
    }

    /// Reads each file as a separate log, and returns the logs with their names.
    pub(crate) fn read_each(&self) -> Result<Vec<(String, RequestLog)>> {
        let read = |log: &PathBuf| {
            let read = self.read_as_one(std::slice::from_ref(log))?;
            Ok((log.display().to_string(), read))
        };
        self.logs.iter().map(read).collect()
    }

    fn read_as_one(&self, logs: &[PathBuf]) -> Result<RequestLog> {
        let reading = Reading {
            format: self.input_format.map(|format| match format {
                InputFormat::Text => Format::Text,
                InputFormat::Csv => Format::Csv,
                InputFormat::Dxt => Format::Dxt,
                InputFormat::Fio => Format::Fio,
                InputFormat::Blkparse => Format::Blkparse,
            }),
            columns: Columns { titles: self.titles.clone(), named: self.column.iter().cloned().collect() },
            limits: Limits { requests: self.limit, ..Limits::default() },
            first: self.first,
            sort: self.sort,
        };
        let mut collector = LogCollector::new(&reading);
        for log in logs {
            let input: Box<dyn BufRead> = match log.as_os_str() == STANDARD {
                true => Box::new(io::stdin().lock()),
                false => {
                    let opened =
                        File::open(log).map_err(|error| Failure::new(log.display().to_string(), error))?;
                    Box::new(BufReader::new(opened))
                }
            };
            let notes = collector.take(input).map_err(|error| refused(log.display().to_string(), &error))?;
            notes.iter().for_each(|note| say!("starfish: {}: {note}", log.display()));
        }
        let log = collector.finish().map_err(|error| refused(self.name(), &error))?;
        if let Some(calls) = log.calls() {
            self.warn_of_left_out(
                calls.torn,
                "unfinished line",
                ": a process was killed while it wrote the line",
            );
            let why = ", because not all processes of these collective calls were recorded";
            self.warn_of_left_out(calls.left_out, "call", why);
        }
        Ok(log)
    }

    fn warn_of_left_out(&self, count: u64, what: &str, why: &str) {
        if count > 0 {
            let are = if count == 1 { "is" } else { "are" };
            say!("starfish: {}: {} {are} omitted{why}", self.name(), counted(count, what));
        }
    }
}

/// Returns the failure for a rejected log.
fn refused(name: String, error: &request_log::Error) -> Failure {
    let failure = Failure::new(name, error);
    match &*error.remedy {
        "" => failure,
        remedy => failure.remedy(with_options(remedy)),
    }
}

/// Returns the remedy, followed by the options that implement it.
fn with_options(remedy: &str) -> String {
    let option = [
        ("Sort the log by time", "--sort sorts it."),
        ("first requests only", "--first N reads the first ones, --limit N raises the limit."),
        ("name another one with", "Use the options --column and --titles."),
        ("Append the unit", "This works in --column and --titles."),
    ];
    let option = option.iter().find(|(words, _)| remedy.contains(words)).map(|(_, option)| option);
    option.map_or_else(|| remedy.to_owned(), |option| format!("{remedy} {option}"))
}
