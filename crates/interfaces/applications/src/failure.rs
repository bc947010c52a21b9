//! Exit codes and error messages of the programs.

use std::fmt;
use std::io;

/// The reason why a program failed.
#[derive(Debug)]
pub struct Failure {
    what: String,
    why: String,
    pub(crate) broken_pipe: bool,
}

/// The result of a step of a program.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Returns a failure of an action, a file or a value, for a reason.
    pub fn new(what: impl fmt::Display, why: impl fmt::Display) -> Failure {
        Failure { what: what.to_string(), why: why.to_string(), broken_pipe: false }
    }

    /// Returns a failure of reading or writing a file.
    pub fn io(what: impl fmt::Display, error: &io::Error) -> Failure {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Failure { broken_pipe, ..Failure::new(what, error) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { what, why, .. } = self;
        // Errors of striped files already begin with the file name.
        let bare = what.strip_prefix("pfs:").unwrap_or(what);
        if why.starts_with(&format!("{bare}: ")) { f.write_str(why) } else { write!(f, "{what}: {why}") }
    }
}
