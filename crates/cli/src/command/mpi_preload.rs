//! `starfish mpi-preload`: which library is put in front of a program's MPI.

use std::path::PathBuf;

use clap::Args;
use command_line::failure::{Failure, Result};

use crate::local;
use crate::mpi_library;

/// Print the library that gives a program of MPI files on Starfish, to be named in LD_PRELOAD.
///
/// With it, MPI_File_open opens files on the agents if their names begin with `starfish:`, or if they lie in a
/// directory where `starfish mount` shows them; all other files are opened as without it. `starfish mpi-run` starts
/// programs so.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The program, which is linked with an MPI.
    #[arg(value_name = "PROGRAM", value_hint = clap::ValueHint::ExecutablePath)]
    program: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  starfish mpi-preload ./simulation
  srun --export=ALL,LD_PRELOAD=$(starfish mpi-preload ./simulation) ./simulation";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let program = arguments.program;
    match mpi_library::of_program(&program)? {
        Some(library) => local::print([library.display().to_string()]),
        None => Err(Failure::new(program.display().to_string(), "it is linked with no MPI")
            .remedy("If it loads one later, as Python does, start it by `starfish mpi-run`")),
    }
}
