//! The `main` of all the programs: their options, the options of PDIOL, and Ctrl-C.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use command_line::{complete, say, try_parse};
use pdiol::options::{self, Asked};

use crate::failure::{Failure, Result};
use crate::files::FilesArgs;

/// A program for files of either kind.
pub trait FileProgram: Parser {
    /// Returns the options for striped files.
    fn files(&mut self) -> &mut FilesArgs;

    /// Runs the program.
    fn run(self) -> Result<ExitCode>;
}

/// Exit code of a failed program: 2, since 1 from grep means that no line was found.
const FAILED: u8 = 2;

/// Runs a program on the command line of this process.
///
/// Options of PDIOL may precede an argument `-`, as in its thesis: `pfs2fs -disk_number 4 -w 0 - a b`. If the program
/// accepts the whole command line, none of it is an option of PDIOL.
pub(crate) fn main<P: FileProgram>() -> ExitCode {
    complete(P::command);
    let mut arguments: Vec<OsString> = env::args_os().collect();
    let parsed = match try_parse::<P>(arguments.clone()) {
        Ok(program) => Some(program),
        Err(error) if error.use_stderr() && options::are_given(&arguments) => None,
        Err(error) => error.exit(),
    };
    if parsed.is_some() {
        arguments.truncate(1);
    }
    let name = P::command().get_name().to_owned();
    run(&name, || {
        let asked = options::find(&mut arguments, |name| env::var_os(name));
        let options = match asked.map_err(|error| Failure::new("invalid option of PDIOL", error))? {
            Asked::Run(options) => options,
            Asked::Help => {
                print!("{}", options::help(&name));
                return Ok(ExitCode::SUCCESS);
            }
        };
        let mut program = parsed.unwrap_or_else(|| try_parse(arguments).unwrap_or_else(|error| error.exit()));
        program.files().pdiol = options;
        program.run()
    })
}

/// Time limit for removing incomplete files after Ctrl-C when an agent does not answer.
const REMOVING_MAX: Duration = Duration::from_secs(5);

/// Runs a program; `main` returns its exit code.
///
/// Removes incomplete files if the program fails or is interrupted (Ctrl-C, SIGTERM, SIGHUP).
fn run(program: &str, main: impl FnOnce() -> Result<ExitCode>) -> ExitCode {
    let name = program.to_owned();
    let out_of_time = move |left: &[String]| {
        say!("{name}: interrupted; there was no time to remove {}", left.join(", "));
    };
    if let Err(error) = interruption::undo_when_interrupted(REMOVING_MAX, out_of_time) {
        say!("{program}: cannot handle Ctrl-C: {error}");
        return ExitCode::from(FAILED);
    }
    match main() {
        Ok(code) => code,
        // The reader of the output has closed the pipe and does not need the rest.
        Err(failure) if failure.broken_pipe => ExitCode::SUCCESS,
        Err(failure) => {
            interruption::wait_if_ending();
            say!("{program}: {failure}");
            ExitCode::from(FAILED)
        }
    }
}
