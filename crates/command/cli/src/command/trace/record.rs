//! `starfish trace record`: records a program together with its agents.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use account::explained::{Kept, recorded_with};
use clap::Args;
use command_line::failure::{Failure, Result};
use node::TRACE_VARIABLE;
use transfer::{interrupt, local};

use crate::options::agents::AgentsArgs;

/// Run a program, record it and the agents, and report the bottleneck on standard error.
///
/// Any program that uses agents can be recorded: with striped files, with libpdiol, in Python or with MPI. All its
/// nodes on this computer are recorded; the command sets the variable STARFISH_TRACE for this. The program finds the
/// agents by STARFISH_AGENTS, or by the configuration of this computer. Ctrl-C interrupts the program; this command
/// waits until the program ends, and exits with its exit code.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,

    /// Also write the recording to this trace, replacing an existing file. (--trace appends to a file.)
    #[arg(short, long, value_name = "FILE.tlv")]
    output: Option<PathBuf>,

    /// The program, and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  starfish trace record pfssort pfs:big.txt -o pfs:sorted.txt
  starfish trace record -o run.tlv python3 analysis.py";

/// Number that shells add to the number of the signal that has ended a program.
const SIGNALLED: i32 = 128;

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let cluster = arguments.agents.cluster()?;
    let output = arguments.output.as_deref();
    // Check this first. Otherwise the recording could be lost at the end.
    output.map_or(Ok(()), local::check_writable)?;
    let kept = output.map(Kept::As).or(cluster.trace.as_deref().map(Kept::AddedTo));
    interrupt::leave_to_program()?;
    let status = recorded_with(&cluster, kept, |trace| run_program(&arguments.program, trace))?;
    match status.code().or(status.signal().map(|signal| SIGNALLED + signal)) {
        Some(0) | None => Ok(()),
        Some(code) => std::process::exit(code),
    }
}

fn run_program(program: &[OsString], trace: &Path) -> Result<ExitStatus> {
    let (name, arguments) = program.split_first().expect("it is required");
    let started = Command::new(name).args(arguments).env(TRACE_VARIABLE, trace).status();
    started.map_err(|error| Failure::new(name.to_string_lossy(), error))
}
