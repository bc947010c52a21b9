//! `starfish mpi-preload`: prints the library to preload for an MPI program.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::{Failure, Result};
use transfer::local;

use crate::mpi_library;

/// Print the library for LD_PRELOAD that lets an MPI program open files on Starfish.
///
/// With this library, MPI_File_open opens files on the agents if their names begin with `starfish:`, or if they are in
/// a directory of `starfish mount`. All other files are opened as usual. `starfish mpi-run` starts programs with this
/// library.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The program, or another file linked with the same MPI library: a path, or a name to look up in PATH.
    #[arg(value_name = "PROGRAM", value_hint = clap::ValueHint::ExecutablePath)]
    program: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  starfish mpi-preload ./simulation
  srun --export=ALL,LD_PRELOAD=$(starfish mpi-preload ./simulation) ./simulation";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let program = found(arguments.program);
    match mpi_library::of_program(&program)? {
        Some(library) => local::print([library.display().to_string()]),
        None => Err(without_mpi(&program)?),
    }
}

/// Returns the path of the program. A name without slashes that is not a file in this directory is looked up in PATH,
/// as by shells.
fn found(program: PathBuf) -> PathBuf {
    if program.components().count() != 1 || program.exists() {
        return program;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path =
        env::split_paths(&path).map(|directory| directory.join(&program)).find(|file| file.is_file());
    in_path.unwrap_or(program)
}

/// Returns the failure, with a remedy, for a program that is not linked with an MPI library.
fn without_mpi(program: &Path) -> Result<Failure> {
    let shown = program.display().to_string();
    let mut begin = Vec::new();
    let file = File::open(program).and_then(|file| file.take(2).read_to_end(&mut begin));
    file.map_err(|error| Failure::new(&*shown, error))?;
    let why = if begin == b"#!" {
        "it is a script, not linked with an MPI"
    } else {
        "it is not linked with an MPI"
    };
    Ok(Failure::new(shown, why).remedy(
        "Name the linked program or module that it runs, such as $(python3 -c 'from mpi4py import MPI; \
         print(MPI.__file__)'), or start it by `starfish mpi-run`",
    ))
}
