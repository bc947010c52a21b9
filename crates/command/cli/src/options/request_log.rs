//! The options that say how a request log is read, and reading it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use request_log::{Columns, Format, Limits, LogCollector, Reading, RequestLog};

use command_line::counted;
use command_line::failure::{Failure, Result};
use command_line::say;
use transfer::local::STANDARD;

/// The log, and how it is read.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// The request log, or the logs of all processes that were recorded; - for standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Format of the log. Without this its first line tells.
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<InputFormat>,

    /// Title of a column of comma-separated values: of time, node, file, operation, offset, bytes, took or end. A unit
    /// may follow a colon: s, ms, us, 100ns or ns for times, sectors or a number of bytes for offset and bytes.
    #[arg(long, value_name = "COLUMN=TITLE[:UNIT]", value_parser = column)]
    column: Vec<(String, String)>,

    /// Titles of all columns of comma-separated values whose first line is a request, for example
    /// time:100ns,host,file,operation,offset,bytes.
    #[arg(long, value_name = "TITLE,...")]
    titles: Option<String>,

    /// Take in the first N requests only, in the order of lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,

    /// Maximum number of requests; a log with more is refused. Each takes 40 bytes of memory.
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// Put the requests of each node in the order of their times, instead of refusing times that run backwards.
    #[arg(long)]
    sort: bool,
}

/// A format of request logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    /// That of request logs.
    Text,
    /// Comma-separated values.
    Csv,
    /// What darshan-dxt-parser prints.
    Dxt,
    /// The log of a job of fio (write_iolog), version 2 or 3.
    Fio,
    /// What blkparse prints.
    Blkparse,
}

/// The two sides of `time=start_us`.
fn column(text: &str) -> std::result::Result<(String, String), String> {
    let sides =
        text.split_once('=').map(|(column, title)| (column.trim().to_owned(), title.trim().to_owned()));
    sides.ok_or_else(|| "expected COLUMN=TITLE, for example time=start_us".to_owned())
}

impl InputArgs {
    /// What the log is called.
    pub(crate) fn name(&self) -> String {
        let first = self.logs.first().map_or(String::new(), |log| log.display().to_string());
        match self.logs.len() {
            0 | 1 => first,
            count => format!("{first} and {} more", count - 1),
        }
    }

    /// Reads all of them as one log.
    pub(crate) fn read(&self) -> Result<RequestLog> {
        self.read_as_one(&self.logs)
    }

    /// Reads each of them as a log of its own, with its name.
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
            self.tell_of_left_out(calls.torn, "unfinished line", ": a process was stopped while it wrote it");
            let why = " that not all who make them together have recorded";
            self.tell_of_left_out(calls.left_out, "call", why);
        }
        Ok(log)
    }

    fn tell_of_left_out(&self, count: u64, what: &str, why: &str) {
        if count > 0 {
            let are = if count == 1 { "is" } else { "are" };
            say!("starfish: {}: {} {are} left out{why}", self.name(), counted(count, what));
        }
    }
}

/// Why a log is refused.
fn refused(name: String, error: &request_log::Error) -> Failure {
    let failure = Failure::new(name, error);
    match &*error.remedy {
        "" => failure,
        remedy => failure.remedy(with_options(remedy)),
    }
}

/// Advice, with the options that follow it.
fn with_options(remedy: &str) -> String {
    let option = [
        ("have it sorted", "--sort does that."),
        ("first ones only", "--first N takes the first ones, --limit N allows more."),
        ("is named with", "These are the options --column and --titles."),
        ("unit follows", "The options --column and --titles take it."),
    ];
    let option = option.iter().find(|(words, _)| remedy.contains(words)).map(|(_, option)| option);
    option.map_or_else(|| remedy.to_owned(), |option| format!("{remedy} {option}"))
}
