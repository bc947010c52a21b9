//! What went wrong, by the classes of MPI.

use std::cell::RefCell;
use std::ffi::c_int;
use std::fmt;

use layout::SelectionError;
use namespace::TreeRefusal;
use node::ErrorKind;

/// The classes of errors that MPI-IO knows, numbered as the header has them. Greater ones come first when members
/// fail differently. The last but one is the shim's, which finds out by itself.
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

    /// Whether a class says so little that programs are not expected to meet with it, and people want to know more.
    fn wants_words(self) -> bool {
        matches!(self, ErrorClass::BadFile | ErrorClass::NoSpace | ErrorClass::Io)
    }

    /// The class of this number; that of all else if there is none.
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
            ErrorKind::Unfinished | ErrorKind::BeingWritten | ErrorKind::Refused(TreeRefusal::Busy) => {
                ErrorClass::InUse
            }
            ErrorKind::BadName
            | ErrorKind::NameTooLong
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

/// An error: its class, and what there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MpiError {
    pub(crate) class: ErrorClass,
    pub(crate) text: String,
    /// Whether this process says it on standard error: the class does not, and no other process does.
    is_logged: bool,
}

/// The outcome of a call.
pub(crate) type Outcome<T> = Result<T, MpiError>;

impl MpiError {
    pub(crate) fn new(class: ErrorClass, text: impl Into<String>) -> Self {
        MpiError { class, text: text.into(), is_logged: class.wants_words() }
    }

    /// The same, of which people want to know whatever the class.
    #[must_use]
    pub(crate) fn logged(self) -> Self {
        MpiError { is_logged: true, ..self }
    }

    /// The same, which another process tells if anybody does.
    #[must_use]
    pub(crate) fn logged_elsewhere(self) -> Self {
        MpiError { is_logged: false, ..self }
    }

    /// The same without these words.
    #[must_use]
    pub(crate) fn without(self, words: &str) -> Self {
        MpiError { text: self.text.replace(words, ""), ..self }
    }

    /// The same of a file, whose path comes first.
    #[must_use]
    pub(crate) fn about(self, path: &str) -> Self {
        let text = match self.text.strip_prefix(path) {
            Some(rest) if rest.starts_with(':') => self.text,
            _ => format!("{path}: {}", self.text),
        };
        MpiError { text, ..self }
    }

    /// The same of what this process has been told of agents and keys: no argument of a call is wrong.
    #[must_use]
    pub(crate) fn of_setup(self) -> Self {
        let class = if self.class == ErrorClass::Argument { ErrorClass::Io } else { self.class };
        MpiError { class, is_logged: true, ..self }
    }
}

impl MpiError {
    /// The same of data that are to be moved: no argument of the call is wrong, it is more than can be done at once.
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

/// The number of an outcome for C: 0 if it is good. What there is to say is kept for [`last_words`].
pub(crate) fn number(outcome: Outcome<()>) -> c_int {
    let Err(error) = outcome else { return 0 };
    let class = error.class as c_int;
    LAST.set(Some(error));
    class
}

/// What this process says of its thread's last error: nothing if the class says it, or another process, unless all is
/// asked for.
pub(crate) fn last_words(all: bool) -> Option<String> {
    let last = LAST.take()?;
    (last.is_logged || all).then_some(last.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_known_by_its_number() {
        for class in ErrorClass::ALL {
            assert_eq!(ErrorClass::numbered(class as u64), class);
        }
        assert_eq!(ErrorClass::numbered(99), ErrorClass::Io);
    }

    fn words(error: MpiError, all: bool) -> Option<String> {
        number(Err(error));
        last_words(all)
    }

    #[test]
    fn what_a_class_does_not_say_is_told_once() {
        assert_eq!(number(Ok(())), 0);
        let there = MpiError::new(ErrorClass::Exists, "there is one");
        assert_eq!(number(Err(there.clone())), ErrorClass::Exists as c_int);
        assert_eq!(last_words(false), None);
        assert_eq!(words(there.clone(), true).as_deref(), Some("there is one"));
        assert_eq!(words(there.clone().logged(), false).as_deref(), Some("there is one"));
        let wrong = MpiError::new(ErrorClass::Io, "it is gone");
        assert_eq!(words(wrong.clone(), false).as_deref(), Some("it is gone"));
        assert_eq!(last_words(true), None);
        assert_eq!(words(wrong.logged_elsewhere(), false), None);
    }

    #[test]
    fn an_error_names_its_file_once() {
        let error = MpiError::new(ErrorClass::Io, "agent a is gone").about("dir/x");
        assert_eq!(error.text, "dir/x: agent a is gone");
        assert_eq!(error.clone().about("dir/x"), error);
    }

    #[test]
    fn a_setup_that_is_wrong_is_no_wrong_argument() {
        let error = MpiError::new(ErrorClass::Argument, "no agent is named").of_setup();
        assert_eq!((error.class, words(error.clone(), false)), (ErrorClass::Io, Some(error.text)));
        assert_eq!(MpiError::new(ErrorClass::Access, "another key").of_setup().class, ErrorClass::Access);
    }
}
