//! Errors for C programs: errno, and a text for each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io::ErrorKind;
use std::ptr;

use errno::{Errno, set_errno};
use tlv::{Error, Refused};

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last::Nothing) };
}

/// Last error of a thread. Rejected records can be very frequent, so their text is composed only on request.
enum Last {
    Nothing,
    Refused(Refused),
    Text(CString),
}

/// Returns the text of the last error of this thread, valid until its next error; null while the thread is ending.
pub(crate) fn last() -> *const c_char {
    let text = |last: &RefCell<Last>| {
        let mut last = last.borrow_mut();
        let made = match &*last {
            Last::Nothing => Some(CString::default()),
            Last::Refused(refused) => Some(c_string(&refused.to_string())),
            Last::Text(_) => None,
        };
        if let Some(made) = made {
            *last = Last::Text(made);
        }
        match &*last {
            Last::Text(text) => text.as_ptr(),
            _ => ptr::null(),
        }
    };
    LAST.try_with(text).unwrap_or(ptr::null())
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

fn remember(last: Last) {
    // Ignore a failure: an ending thread needs no text.
    let _ = LAST.try_with(|cell| cell.replace(last));
}

/// Remembers a rejected record, and sets errno.
#[cold]
pub(crate) fn set_refused(refused: Refused) {
    remember(Last::Refused(refused));
    set_errno(Errno(number_of_refused(refused)));
}

/// Remembers an error of this thread, and sets errno.
pub(crate) fn set_error(error: &Error) {
    let number = match error {
        Error::Refused(refused) => return set_refused(*refused),
        Error::AlreadyStarted => libc::EBUSY,
        Error::Invalid { .. } => libc::EINVAL,
        Error::File { source, .. } if source.kind() == ErrorKind::InvalidData => libc::EINVAL,
        Error::File { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
    };
    remember(Last::Text(c_string(&error.to_string())));
    set_errno(Errno(number));
}

fn number_of_refused(refused: Refused) -> c_int {
    match refused {
        Refused::NotStarted | Refused::Forked => libc::EBADF,
        Refused::NotAdded | Refused::Ending => libc::ESRCH,
        Refused::TooManyThreads => libc::ENOMEM,
        Refused::NoRoom => libc::ENOBUFS,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Returns the text for C, and checks that it is the stored one.
    fn text() -> String {
        let given = last();
        LAST.with_borrow(|last| match last {
            Last::Text(text) if text.as_ptr() == given => text.to_str().expect("text").to_owned(),
            _ => panic!("no text"),
        })
    }

    #[test]
    fn each_error_sets_its_errno_and_text() {
        assert_eq!(text(), "");
        let file = io::Error::from_raw_os_error(libc::ENOSPC);
        for (error, number, words) in [
            (Refused::NotStarted.into(), libc::EBADF, "TLV_Initialize"),
            (Refused::Forked.into(), libc::EBADF, "forked"),
            (Refused::NotAdded.into(), libc::ESRCH, "TLV_AddThread"),
            (Refused::Ending.into(), libc::ESRCH, "is ending"),
            (Refused::TooManyThreads.into(), libc::ENOMEM, "TLV_BUFFER"),
            (Refused::NoRoom.into(), libc::ENOBUFS, "TLV_BUFFER"),
            (Error::AlreadyStarted, libc::EBUSY, "already"),
            (Error::Invalid { what: "a\0b".into(), why: "why".into() }, libc::EINVAL, "a?b: why"),
            (Error::File { path: "x.tlv".into(), source: file }, libc::ENOSPC, "x.tlv: No space left"),
            (Error::File { path: "x".into(), source: ErrorKind::InvalidData.into() }, libc::EINVAL, "x: "),
            (Error::File { path: "x".into(), source: io::Error::other("odd") }, libc::EIO, "x: odd"),
        ] {
            set_error(&error);
            assert_eq!(errno::errno(), Errno(number), "{error}");
            assert!(text().contains(words), "{}", text());
        }
    }
}
