//! `starfish trace import`: converts traces of other tools.

use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::{Failure, Result};
use trace_formats::Imported;
use transfer::local::{self, STANDARD};

use super::input;

/// Convert a trace of Perfetto, or one in Chrome's JSON format, which many tools write.
///
/// Spans, counters, flows, arguments and the names of processes and threads are converted. Records of the system's own
/// probes are omitted and counted.
#[derive(Args)]
pub(super) struct Arguments {
    /// The trace of another tool; - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Output trace; - for standard output. An existing file is replaced [default: FILE with the ending .tlv, which
    /// must not exist].
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { file, output } = arguments;
    if output.is_none() && file.as_os_str() == STANDARD {
        let failure = Failure::usage("standard input", "a trace from standard input has no default name");
        return Err(failure.remedy("Name the output file: -o OUT."));
    }
    let input = input::open(file)?;
    let collected = trace_formats::collect(input).map_err(|error| input::failed(file, &error))?;
    let output = output.clone().map_or_else(|| unused_name(file), Ok)?;
    let mut imported = Imported::default();
    local::write_or_print(&output, |to| {
        imported = collected.write(to)?;
        Ok(())
    })?;
    input::print_notes_of(&file.display().to_string(), &imported);
    Ok(())
}

/// Returns the default name of the output. Fails if a file with this name exists, because it may be another recording.
fn unused_name(file: &Path) -> Result<PathBuf> {
    let name = file.with_extension("tlv");
    if !name.exists() {
        return Ok(name);
    }
    let failure = Failure::new(name.display().to_string(), "already exists");
    Err(failure.remedy(format!("Name another output file with -o; -o {} replaces this one.", name.display())))
}
