//! `starfish trace export`: writes traces for other tools.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use trace_formats::{TraceTable, write_csv, write_parquet, write_perfetto};
use transfer::local;

use super::input::TracesArgs;

/// Convert traces for another tool. Several traces are put on one clock.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    traces: TracesArgs,

    /// Output format.
    #[arg(long, value_enum)]
    to: Target,

    /// Kind of the rows of a table.
    #[arg(long, value_enum, default_value_t = TableName::Spans)]
    table: TableName,

    /// Output file; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

/// Output format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A trace for Perfetto's UI and its trace processor: spans, counters and flows.
    Perfetto,
    /// A table as comma-separated values.
    Csv,
    /// A table as a Parquet file.
    Parquet,
}

/// Kind of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// A row for each span. A point in time is a span without duration.
    Spans,
    /// A row for each value of a counter, including the processors and context switches of threads.
    Counts,
    /// A row for each flow from one thread to another.
    Flows,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let table = match arguments.table {
        TableName::Spans => TraceTable::Spans,
        _ if arguments.to == Target::Perfetto => {
            return Err(Failure::usage(
                "--table",
                "a trace for Perfetto always contains spans, counters and flows",
            ));
        }
        TableName::Counts => TraceTable::Counts,
        TableName::Flows => TraceTable::Flows,
    };
    let timeline = arguments.traces.read()?;
    local::write_or_print(&arguments.output, |output| match arguments.to {
        Target::Perfetto => write_perfetto(&timeline, output),
        Target::Csv => write_csv(&timeline, table, output),
        Target::Parquet => write_parquet(&timeline, table, output),
    })
}
