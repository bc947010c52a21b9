//! `starfish trace summary`: number of visits of threads to each state, and time in it.

use account::explain;
use clap::{Args, ValueEnum};
use command_line::TextTable;
use command_line::failure::Result;
use serde::Serialize;
use trace::{Grouping, NoteKind, StateTotals, Timeline};

use super::input::{self, RangeArgs, TracesArgs};
use super::shown;
use crate::output::row_format::RowFormat;

/// Print the number of spans of each state, and their time.
///
/// The time of a nested state counts both for this state and for the outer state. A span without an end counts up to
/// its last known time; a span without a begin does not count. The numbers of such spans are printed on standard error.
/// The share is relative to the time of the row's threads, each from the first to the last event of its trace.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    traces: TracesArgs,

    #[command(flatten)]
    range: RangeArgs,

    /// Rows of the table.
    #[arg(long, value_enum, default_value_t = RowGrouping::Thread)]
    by: RowGrouping,

    /// Output format. As CSV and JSON, times are in nanoseconds.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,
}

/// Rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RowGrouping {
    /// A row for each state of each thread.
    Thread,
    /// A row for each state of each process, over all threads of the process.
    Process,
    /// A row for each state, over all threads.
    State,
}

/// Row of the output. The names of the fields are the names of the columns.
#[derive(Serialize)]
struct Row<'a> {
    process: String,
    thread: &'a str,
    state: &'a str,
    count: u64,
    total_ns: u64,
    mean_ns: u64,
    median_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    share: f64,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let timeline = arguments.traces.read()?;
    let grouping = match arguments.by {
        RowGrouping::Thread => Grouping::Thread,
        RowGrouping::Process => Grouping::Process,
        RowGrouping::State => Grouping::State,
    };
    let totals = timeline.totals(grouping, arguments.range.of(&timeline)?);
    let rows: Vec<Row> = totals.iter().map(|totals| row(&timeline, totals)).collect();
    arguments.format.print(&rows, |rows| lines(rows, arguments.by))?;
    input::print_notes(&timeline, NoteKind::is_usual);
    Ok(())
}

fn row<'a>(timeline: &'a Timeline, totals: &StateTotals) -> Row<'a> {
    let process = totals.process.map(|process| timeline.processes[process as usize].info.title());
    Row {
        process: process.unwrap_or_default(),
        thread: totals.thread.map_or("", |thread| &timeline.threads[thread as usize].name),
        state: &timeline.states[totals.state as usize].name,
        count: totals.count,
        total_ns: totals.total_ns,
        mean_ns: totals.mean_ns,
        median_ns: totals.median_ns,
        p99_ns: totals.p99_ns,
        max_ns: totals.max_ns,
        share: totals.share,
    }
}

fn lines(rows: &[Row<'_>], by: RowGrouping) -> Vec<String> {
    let names = match by {
        RowGrouping::Thread => &["process", "thread", "state"][..],
        RowGrouping::Process => &["process", "state"],
        RowGrouping::State => &["state"],
    };
    let mut table = TextTable::new(names.len());
    let numbers = ["count", "total", "mean", "median", "99 %", "longest", "share"];
    table.row(names.iter().copied().chain(numbers));
    for row in rows {
        let (process, thread, state) =
            (shown::text(&row.process), shown::text(row.thread), shown::text(row.state));
        let names = match by {
            RowGrouping::Thread => vec![process, thread, state],
            RowGrouping::Process => vec![process, state],
            RowGrouping::State => vec![state],
        };
        let times = [row.total_ns, row.mean_ns, row.median_ns, row.p99_ns, row.max_ns].map(shown::time);
        let share = explain::percent(row.share);
        table.row(names.into_iter().chain([row.count.to_string()]).chain(times).chain([share]));
    }
    table.lines().collect()
}
