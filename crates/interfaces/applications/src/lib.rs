//! Common programs for ordinary and striped files: cat, grep, sort, bzip2, and copying between both kinds.
//!
//! In all programs a name with the prefix `pfs:` denotes a striped file, `-` standard input or output, and any other
//! name an ordinary file. So a local and a striped run are comparable: they differ only in the storage of their files.
//!
//! Map of the code, in reading order:
//!
//! - `name.rs`, `store.rs`, `files.rs`: names, and opening the files they denote
//! - `read_ahead.rs`, `write_behind.rs`: threads that read and write during computation
//! - `copy.rs`, `grep.rs`, `sort/`, `bzip2.rs`: the programs; `placed_sort.rs`: disks of a sort's runs and output
//! - `program.rs`: the `main` of all programs; `usage.rs`: the time that a program takes; `failure.rs`: error messages
//!
//! Not here, on purpose: prefetching and caching of striped files, which are in `pdiol`.

pub mod bzip2;
pub mod copy;
mod failure;
mod files;
pub mod grep;
mod name;
mod placed_sort;
mod program;
mod read_ahead;
pub mod sort;
mod store;
mod usage;
mod write_behind;

pub use failure::{Failure, Result};
pub use files::{Files, FilesArgs};
pub use name::FileName;
pub use program::FileProgram;
pub use store::{Output, Storage, Temporary};
pub use usage::{Stopwatch, Usage};

use std::env;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};

use program::main;

/// A program: its name, its command line and its `main`.
type Program = (&'static str, fn() -> Command, fn() -> ExitCode);

const PROGRAMS: [Program; 6] = [
    ("mycat", copy::Cat::command, main::<copy::Cat>),
    ("fs2pfs", copy::ToStriped::command, main::<copy::ToStriped>),
    ("pfs2fs", copy::FromStriped::command, main::<copy::FromStriped>),
    ("pfsgrep", grep::Arguments::command, main::<grep::Arguments>),
    ("pfssort", sort::Arguments::command, main::<sort::Arguments>),
    ("pfsbzip2", bzip2::Arguments::command, main::<bzip2::Arguments>),
];

/// Returns the command lines of all the programs.
pub fn commands() -> [Command; 6] {
    PROGRAMS.map(|(_, command, _)| command())
}

/// Returns the `main` of the program by whose name this process was called; `None` if it is not one of these.
pub fn called() -> Option<fn() -> ExitCode> {
    let path = env::args_os().next()?;
    let name = Path::new(&path).file_name()?;
    PROGRAMS.iter().find(|program| name == program.0).map(|program| program.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_called_by_the_names_in_their_help() {
        assert_eq!(PROGRAMS.map(|program| program.0), commands().each_ref().map(Command::get_name));
    }
}
