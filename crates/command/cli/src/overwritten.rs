//! Rejects commands that would overwrite one of their input files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use command_line::failure::{Failure, Result};

/// Identifiers of all arguments that name an output file.
const OUTPUTS: [&str; 4] = ["html", "output", "trace", "trace_html"];

/// Rejects a command if its output would replace a file that another argument of its command line names. Runs before
/// the command does any work.
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
    // A group of arguments has an identifier, too, but no values.
    let values = command.try_get_raw(id).ok().flatten();
    let paths = values.into_iter().flatten().map(Path::new);
    paths.filter_map(|path| fs::canonicalize(path).ok()).filter(|path| path.is_file()).collect()
}
