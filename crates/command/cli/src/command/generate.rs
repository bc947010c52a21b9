//! `starfish generate`: writes the generated files of an installation, for `make install`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};

use command_line::failure::{Failure, Result};

/// Write the manual pages and completions of all programs.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory below which the files are written, as in PREFIX/share/man/man1.
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
}

/// For each shell: directory of completions, and prefix and suffix of the name of a program's file.
const PLACES: [(&str, &str, &str, &str); 3] = [
    ("bash", "share/bash-completion/completions", "", ""),
    ("fish", "share/fish/vendor_completions.d", "", ".fish"),
    ("zsh", "share/zsh/site-functions", "_", ""),
];

/// Directory of manual pages.
const MANUAL: &str = "share/man/man1";

/// Writes the files of `starfish` and of all applications.
pub(crate) fn run(starfish: Command, arguments: Arguments) -> Result<()> {
    let programs = std::iter::once(starfish).chain(applications::commands());
    programs.into_iter().try_for_each(|program| write_all(&arguments.prefix, program))
}

fn write_all(prefix: &Path, program: Command) -> Result<()> {
    let name = program.get_name().to_owned();
    for (shell, directory, before, after) in PLACES {
        let text = command_line::registration(shell, &name);
        let text = text.ok_or_else(|| Failure::new(shell, "this shell is not supported"))?;
        write(&prefix.join(directory).join(format!("{before}{name}{after}")), text.as_bytes())?;
    }
    let pages = command_line::manual::pages(program).map_err(|error| Failure::new(name, error))?;
    pages.iter().try_for_each(|(file, page)| write(&prefix.join(MANUAL).join(file), page))
}

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, contents));
    made.map_err(|error: io::Error| Failure::new(path.display().to_string(), error))
}
