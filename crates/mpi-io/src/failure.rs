//! What went wrong, by the classes of MPI.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int};
use std::fmt;

use layout::SelectionError;
use namespace::TreeRefusal;
use node::ErrorKind;

/// The classes of errors that MPI-IO knows, numbered as the header has them. Greater ones come first when members
/// fail differently.
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
}

impl ErrorClass {
    const ALL: [ErrorClass; 13] = [
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
    ];

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
}

/// The outcome of a call.
pub(crate) type Outcome<T> = Result<T, MpiError>;

impl MpiError {
    pub(crate) fn new(class: ErrorClass, text: impl Into<String>) -> Self {
        MpiError { class, text: text.into() }
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
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// The number of an outcome for C: 0 if it is good. What there is to say is kept for [`last`].
pub(crate) fn number(outcome: Outcome<()>) -> c_int {
    let Err(error) = outcome else { return 0 };
    let text = CString::new(error.text.replace('\0', "?")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = text);
    error.class as c_int
}

/// Hands the text of this thread's last error to `read`.
pub(crate) fn last<T>(read: impl FnOnce(&CStr) -> T) -> T {
    LAST.with_borrow(|last| read(last))
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

    #[test]
    fn the_text_of_an_error_is_kept() {
        assert_eq!(number(Ok(())), 0);
        let error = MpiError::new(ErrorClass::Exists, "x: there is one");
        assert_eq!(number(Err(error)), ErrorClass::Exists as c_int);
        assert_eq!(last(|text| text.to_str().map(str::to_owned)), Ok("x: there is one".to_owned()));
    }
}
