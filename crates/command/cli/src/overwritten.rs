//! A file that a command is to read and to replace.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use command_line::failure::{Failure, Result};

/// The options that name a file which is replaced, of all commands.
const OUTPUTS: [&str; 4] = ["html", "output", "trace", "trace_html"];

/// Refuses a command whose output would replace a file that it names elsewhere. Nothing has been done by then.
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
                let failure = Failure::usage(what, "it would be replaced by what is made of it");
                return Err(failure.remedy("Choose another file for the output."));
            }
        }
    }
    Ok(())
}

/// The files that this argument names, if there are any already.
fn files(command: &ArgMatches, id: &str) -> Vec<PathBuf> {
    // Groups of arguments have names, too, and no values.
    let values = command.try_get_raw(id).ok().flatten();
    let paths = values.into_iter().flatten().map(Path::new);
    paths.filter_map(|path| fs::canonicalize(path).ok()).filter(|path| path.is_file()).collect()
}
