//! `starfish mpi-run`: starts MPI programs that use files on Starfish.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use command_line::failure::{Failure, Result};

use crate::mpi_library::{self, MpiKind};

/// Start an MPI program with its launcher, mpirun, so that it can use files on Starfish.
///
/// MPI_File_open then opens files on the agents if their names begin with `starfish:`, or if they are in a directory of
/// `starfish mount`. The program need not be recompiled, and all other files are opened as usual. Everything after the
/// options is passed to the launcher. The processes find the agents like this command: by STARFISH_AGENTS, or by the
/// configuration of their computer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Launcher.
    #[arg(long, value_name = "PROGRAM", default_value = "mpirun", value_hint = clap::ValueHint::ExecutablePath)]
    launcher: String,

    /// Arguments for the launcher: its options, the program, and the program's arguments.
    #[arg(value_name = "ARGUMENTS", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  starfish mpi-run -n 4 ./simulation starfish:results/step1
  starfish mpi-run --launcher mpirun.openmpi -n 8 --hostfile hosts python3 analysis.py
  STARFISH_MPI_REPORT=1 starfish mpi-run -n 4 ./simulation /mnt/starfish/step1";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { launcher, arguments } = arguments;
    let kind = MpiKind::of_launcher(&launcher)?;
    let library = match linked(&arguments) {
        Some(program) => mpi_library::of_program(&program)?,
        None => None,
    };
    let library = library.map_or_else(|| kind.library(), Ok)?;
    let mut command = Command::new(&launcher);
    command.args(launcher_options(kind, &preload(&library))).args(arguments);
    Err(Failure::new(launcher, command.exec()))
}

/// Returns the first argument that is a program linked with an MPI library.
fn linked(arguments: &[OsString]) -> Option<PathBuf> {
    let files = arguments.iter().map(PathBuf::from).filter(|path| path.is_file());
    files.into_iter().find(|path| mpi_library::of_program(path).is_ok_and(|library| library.is_some()))
}

/// Returns the value for LD_PRELOAD: the library, and the user's previous value.
fn preload(library: &Path) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(other) = env::var_os("LD_PRELOAD").filter(|value| !value.is_empty()) {
        all.push(":");
        all.push(other);
    }
    all
}

/// Returns launcher options that pass LD_PRELOAD and Starfish's variables to all processes, on any computer.
fn launcher_options(kind: MpiKind, preload: &OsStr) -> Vec<OsString> {
    let ours = env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STARFISH_"));
    let mut options: Vec<OsString> = Vec::new();
    match kind {
        MpiKind::Mpich => {
            // Processes of MPICH inherit all other variables of the launcher.
            options.extend(["-genv".into(), "LD_PRELOAD".into(), preload.to_owned()]);
        }
        MpiKind::OpenMpi => {
            let mut variable = OsString::from("LD_PRELOAD=");
            variable.push(preload);
            options.extend(["-x".into(), variable]);
            ours.for_each(|(name, _)| options.extend(["-x".into(), name]));
        }
    }
    options
}
