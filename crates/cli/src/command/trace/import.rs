//! `starfish trace import`: traces of other tools.

use std::path::PathBuf;

use clap::Args;
use command_line::failure::{Failure, Result};
use trace_formats::Imported;

use super::input;
use crate::local::{self, STANDARD};

/// Convert a trace of Perfetto, or in Chrome's JSON, which many tools write.
///
/// Spans, counters, flows, arguments and the names of processes and threads are taken in; what the system's own probes
/// recorded is left out, and counted.
#[derive(Args)]
pub(super) struct Arguments {
    /// The trace of another tool; - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The trace to write; - for standard output. Without this: FILE with the ending .tlv.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { file, output } = arguments;
    if output.is_none() && file.as_os_str() == STANDARD {
        let failure = Failure::usage("standard input", "it has no name, so the trace would have none");
        return Err(failure.remedy("Say where to write it: -o OUT."));
    }
    let output = output.clone().unwrap_or_else(|| file.with_extension("tlv"));
    let input = input::open(file)?;
    let collected = trace_formats::collect(input).map_err(|error| input::failed(file, &error))?;
    let mut imported = Imported::default();
    local::write_or_print(&output, |to| {
        imported = collected.write(to)?;
        Ok(())
    })?;
    input::tell(&file.display().to_string(), &imported);
    Ok(())
}
