//! Exit codes and error messages of the programs.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use command_line::say;

/// Why a program failed.
#[derive(Debug)]
pub struct Failure {
    what: String,
    why: String,
    broken_pipe: bool,
}

/// The result of a step of a program.
pub type Result<T> = std::result::Result<T, Failure>;

/// The exit code of a program that failed: 2, since for grep 1 means that nothing was found.
const FAILED: u8 = 2;

impl Failure {
    /// A failure of `what`, and `why`.
    pub fn new(what: impl fmt::Display, why: impl fmt::Display) -> Failure {
        Failure { what: what.to_string(), why: why.to_string(), broken_pipe: false }
    }

    /// A failure of reading or writing `what`.
    pub fn io(what: impl fmt::Display, error: &io::Error) -> Failure {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Failure { broken_pipe, ..Failure::new(what, error) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { what, why, .. } = self;
        // Errors of striped files name the file themselves.
        let bare = what.strip_prefix("pfs:").unwrap_or(what);
        if why.starts_with(&format!("{bare}: ")) { f.write_str(why) } else { write!(f, "{what}: {why}") }
    }
}

/// Time limit for removing incomplete files after Ctrl-C when an agent does not answer.
const REMOVING_MAX: Duration = Duration::from_secs(5);

/// Runs a program: `main` gives its exit code.
///
/// Incomplete files are removed if it fails or is interrupted (Ctrl-C, SIGTERM, SIGHUP).
pub fn run(program: &str, main: impl FnOnce() -> Result<ExitCode>) -> ExitCode {
    let name = program.to_owned();
    let out_of_time = move |left: &[String]| {
        say!("{name}: interrupted; there was no time to remove {}", left.join(", "));
    };
    if let Err(error) = interruption::undo_when_interrupted(REMOVING_MAX, out_of_time) {
        say!("{program}: preparing for Ctrl-C: {error}");
        return ExitCode::from(FAILED);
    }
    match main() {
        Ok(code) => code,
        // The reader of the output has closed it, and does not want the rest.
        Err(failure) if failure.broken_pipe => ExitCode::SUCCESS,
        Err(failure) => {
            interruption::wait_if_ending();
            say!("{program}: {failure}");
            ExitCode::from(FAILED)
        }
    }
}
