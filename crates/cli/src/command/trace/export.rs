//! `starfish trace export`: traces for other tools.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use command_line::failure::Result;
use trace_formats::{write_csv, write_parquet, write_perfetto};

use super::input::TracesArgs;
use crate::local;

/// Write traces for another tool, several on one clock.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    traces: TracesArgs,

    /// What is written.
    #[arg(long, value_enum)]
    to: Target,

    /// The file to write; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

/// What traces can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A trace for Perfetto's UI and its trace processor: spans, counters and flows.
    Perfetto,
    /// Comma-separated values, a row for each span.
    Csv,
    /// A Parquet file, a row for each span.
    Parquet,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let timeline = arguments.traces.read()?;
    local::write_or_print(&arguments.output, |output| match arguments.to {
        Target::Perfetto => write_perfetto(&timeline, output),
        Target::Csv => write_csv(&timeline, output),
        Target::Parquet => write_parquet(&timeline, output),
    })
}
