//! Errors, by the error classes of MPI.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use layout::SelectionError;
use namespace::TreeRefusal;
use node::ErrorKind;

/// Writes a line to standard error, unless this process has written it before.
pub(crate) fn say_once(line: String) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        say(line);
    }
}

/// Writes lines to standard error and ignores write errors. A single write keeps the lines together if several
/// processes share standard error.
pub(crate) fn say(mut lines: String) {
    lines.push('\n');
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// Error classes of MPI-IO, numbered as in the header. If members fail differently, the greatest class wins. Only the
/// shim uses `Count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub(crate) enum ErrorClass {
    Argument = 1,
    Type,
    Mode,
    Unsupported,
    NotSame,
    BadFile,
    NoSuchFile,
    Exists,
    InUse,
    ReadOnly,
    Access,
    NoSpace,
    Io,
    Count,
    NoMemory,
}

impl ErrorClass {
    const ALL: [ErrorClass; 15] = [
        ErrorClass::Argument,
        ErrorClass::Type,
        ErrorClass::Mode,
        ErrorClass::Unsupported,
        ErrorClass::NotSame,
        ErrorClass::BadFile,
        ErrorClass::NoSuchFile,
        ErrorClass::Exists,
        ErrorClass::InUse,
        ErrorClass::ReadOnly,
        ErrorClass::Access,
        ErrorClass::NoSpace,
        ErrorClass::Io,
        ErrorClass::Count,
        ErrorClass::NoMemory,
    ];

    /// Returns true if the text of an error of this class must be printed: programs do not expect the class, and the
    /// class alone does not explain the error.
    fn wants_words(self) -> bool {
        matches!(self, ErrorClass::Argument | ErrorClass::BadFile | ErrorClass::NoSpace | ErrorClass::Io)
    }

    /// Returns the class of this number, or `Io` if no class has it.
    pub(crate) fn numbered(number: u64) -> ErrorClass {
        let of_number = |class: &ErrorClass| *class as u64 == number;
        ErrorClass::ALL.into_iter().find(of_number).unwrap_or(ErrorClass::Io)
    }

    fn of(kind: ErrorKind) -> ErrorClass {
        match kind {
            ErrorKind::NotFound | ErrorKind::Refused(TreeRefusal::NotFound) => ErrorClass::NoSuchFile,
            ErrorKind::Exists | ErrorKind::Refused(TreeRefusal::Exists) => ErrorClass::Exists,
            ErrorKind::NoSpace => ErrorClass::NoSpace,
            ErrorKind::Invalid => ErrorClass::Argument,
            ErrorKind::NotTrusted | ErrorKind::Refused(TreeRefusal::NotPermitted) => ErrorClass::Access,
            ErrorKind::Refused(TreeRefusal::Busy) => ErrorClass::InUse,
            ErrorKind::NameTooLong
            | ErrorKind::Refused(
                TreeRefusal::IsDirectory
                | TreeRefusal::NotDirectory
                | TreeRefusal::NameTooLong
                | TreeRefusal::Loop
                | TreeRefusal::Invalid,
            ) => ErrorClass::BadFile,
            _ => ErrorClass::Io,
        }
    }
}

/// An error: its class and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MpiError {
    pub(crate) class: ErrorClass,
    pub(crate) text: String,
    printing: Printing,
}

/// State of the report of an error on standard error by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printing {
    /// To be printed: the class does not explain the error, and no other process prints it.
    Wanted,
    /// To be printed only if the user requested all errors.
    IfAsked,
    /// Already printed.
    Done,
}

/// Result of a call.
pub(crate) type Outcome<T> = Result<T, MpiError>;

impl MpiError {
    pub(crate) fn new(class: ErrorClass, text: impl Into<String>) -> Self {
        let printing = if class.wants_words() { Printing::Wanted } else { Printing::IfAsked };
        MpiError { class, text: text.into(), printing }
    }

    /// Returns this error marked to be printed, whatever its class.
    #[must_use]
    pub(crate) fn logged(self) -> Self {
        MpiError { printing: Printing::Wanted, ..self }
    }

    /// Returns this error marked as one that another process prints.
    #[must_use]
    pub(crate) fn logged_elsewhere(self) -> Self {
        MpiError { printing: Printing::IfAsked, ..self }
    }

    /// Prints the error on standard error if this process must print it or the user requested all errors. Returns it
    /// marked as printed.
    #[must_use]
    pub(crate) fn printed(self, all: bool) -> Self {
        if let Some(words) = self.words(all) {
            say(format!("starfish: {words}"));
        }
        MpiError { printing: Printing::Done, ..self }
    }

    /// Returns the text to print. `None` if the class or another process reports the error, unless `all` is true.
    pub(crate) fn words(&self, all: bool) -> Option<&str> {
        let is_wanted = self.printing == Printing::Wanted || (all && self.printing == Printing::IfAsked);
        is_wanted.then_some(&self.text)
    }

    /// Returns this error without these words in its message.
    #[must_use]
    pub(crate) fn without(self, words: &str) -> Self {
        MpiError { text: self.text.replace(words, ""), ..self }
    }

    /// Returns this error with the path of its file first in the message.
    #[must_use]
    pub(crate) fn about(self, path: &str) -> Self {
        let text = match self.text.strip_prefix(path) {
            Some(rest) if rest.starts_with(':') => self.text,
            _ => format!("{path}: {}", self.text),
        };
        MpiError { text, ..self }
    }

    /// Returns this error as a configuration error (agents, keys): its class becomes `Io` instead of `Argument`, since
    /// no argument of the call is wrong.
    #[must_use]
    pub(crate) fn of_setup(self) -> Self {
        let class = if self.class == ErrorClass::Argument { ErrorClass::Io } else { self.class };
        MpiError { class, printing: Printing::Wanted, ..self }
    }
}

impl MpiError {
    /// Returns this error as one about the data to move: too much for one call, so the class becomes `Unsupported`
    /// instead of `Argument`.
    #[must_use]
    pub(crate) fn of_data(self) -> Self {
        match self.class {
            ErrorClass::Argument => MpiError { class: ErrorClass::Unsupported, ..self }.logged(),
            _ => self,
        }
    }
}

impl From<node::Error> for MpiError {
    fn from(error: node::Error) -> Self {
        MpiError::new(ErrorClass::of(error.kind()), error.to_string())
    }
}

impl From<SelectionError> for MpiError {
    fn from(error: SelectionError) -> Self {
        MpiError::new(ErrorClass::Type, format!("a type of the file: {error}"))
    }
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

thread_local! {
    static LAST: RefCell<Option<MpiError>> = const { RefCell::new(None) };
}

/// Returns the number of an outcome for C: 0 for success. Keeps the error, so that it can be printed later.
pub(crate) fn number(outcome: Outcome<()>) -> c_int {
    let Err(error) = outcome else { return 0 };
    let class = error.class as c_int;
    LAST.set(Some(error));
    class
}

/// Prints the last error of this thread, once.
pub(crate) fn print_last(all: bool) {
    let _ = LAST.take().map(|error| error.printed(all));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_classes_are_found_by_number() {
        for class in ErrorClass::ALL {
            assert_eq!(ErrorClass::numbered(class as u64), class);
        }
        assert_eq!(ErrorClass::numbered(99), ErrorClass::Io);
    }

    #[test]
    fn details_beyond_the_error_class_are_printed_once() {
        assert_eq!(number(Ok(())), 0);
        let there = MpiError::new(ErrorClass::Exists, "there is one");
        assert_eq!(number(Err(there.clone())), ErrorClass::Exists as c_int);
        assert_eq!((there.words(false), there.words(true)), (None, Some("there is one")));
        assert_eq!(there.clone().logged().words(false), Some("there is one"));
        assert_eq!(there.logged().printed(false).words(true), None);
        let wrong = MpiError::new(ErrorClass::Io, "it is gone");
        assert_eq!(wrong.words(false), Some("it is gone"));
        assert_eq!(wrong.logged_elsewhere().words(false), None);
    }

    #[test]
    fn an_error_names_its_file_once() {
        let error = MpiError::new(ErrorClass::Io, "agent a is gone").about("dir/x");
        assert_eq!(error.text, "dir/x: agent a is gone");
        assert_eq!(error.clone().about("dir/x"), error);
    }

    #[test]
    fn a_wrong_setup_is_no_argument_error() {
        let error = MpiError::new(ErrorClass::Argument, "no agent is named").of_setup();
        assert_eq!((error.class, error.words(false)), (ErrorClass::Io, Some(&*error.text)));
        assert_eq!(MpiError::new(ErrorClass::Access, "another key").of_setup().class, ErrorClass::Access);
    }
}
