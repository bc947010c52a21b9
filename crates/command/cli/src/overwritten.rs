//! Rejects commands that would overwrite a file that they read.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use command_line::failure::{Failure, Result};

/// Options of all commands that name an output file.
const OUTPUTS: [&str; 4] = ["html", "output", "trace", "trace_html"];

/// Rejects a command whose output would replace a file named elsewhere on its command line. Runs before any work
/// starts.
pub(crate) fn refuse(matches: &ArgMatches) -> Result<()> {
    let mut command = matches;
    while let Some((_, matches)) = command.subcommand() {
        command = matches;
    }
    for output in OUTPUTS {
        for replaced in files(command, output) {
            let named = command.ids().map(|id| id.as_str()).filter(|id| *id != output);
            if named.flat_map(|id| files(command, id)).any(|named| named == replaced) {
                let what = replaced.display().to_string();
                let failure = Failure::usage(what, "it is both input and output");
                return Err(failure.remedy("Choose another file for the output."));
            }
        }
    }
    Ok(())
}

/// Returns the existing files named by this argument.
fn files(command: &ArgMatches, id: &str) -> Vec<PathBuf> {
    // Groups of arguments also have identifiers, but no values.
    let values = command.try_get_raw(id).ok().flatten();
    let paths = values.into_iter().flatten().map(Path::new);
    paths.filter_map(|path| fs::canonicalize(path).ok()).filter(|path| path.is_file()).collect()
}
