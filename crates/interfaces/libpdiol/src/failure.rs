//! Errors for C programs: errno, and a text for each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::ptr;

use errno::{Errno, set_errno};
use pdiol::Error;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the text of this thread's last error, valid until the next error; null while the thread ends.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(ptr::null())
}

fn remember(text: CString) {
    // Ignore the error: a thread that is ending does not read the text any more.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Records an error of this thread and sets errno.
pub(crate) fn set_error(error: &Error) {
    let number = error.kind().errno();
    // A file's name cannot contain a null character, but messages of other nodes might.
    let text = error.to_string().replace('\0', "?");
    remember(CString::new(text).unwrap_or_default());
    set_errno(Errno(number));
}

#[cfg(test)]
mod tests {
    use pdiol::ErrorKind;

    use super::*;

    #[test]
    fn each_error_kind_sets_its_errno_and_text() {
        for (kind, number) in [
            (ErrorKind::NotFound, libc::ENOENT),
            (ErrorKind::Exists, libc::EEXIST),
            (ErrorKind::NameTooLong, libc::ENAMETOOLONG),
            (ErrorKind::Invalid, libc::EINVAL),
            (ErrorKind::BadMode, libc::EBADF),
            (ErrorKind::TooLarge, libc::EFBIG),
            (ErrorKind::NoSpace, libc::ENOSPC),
            (ErrorKind::Unreachable, libc::ECONNREFUSED),
            (ErrorKind::UnknownHost, libc::EHOSTUNREACH),
            (ErrorKind::Gone, libc::ECONNRESET),
            (ErrorKind::Lost, libc::EIO),
            (ErrorKind::Protocol, libc::EPROTO),
            (ErrorKind::NotTrusted, libc::EACCES),
            (ErrorKind::Damaged, libc::EIO),
            (ErrorKind::Closed, libc::EBADF),
            (ErrorKind::Io, libc::EIO),
        ] {
            set_error(&Error::new(kind, "a file", "why\0not").with_remedy("Do this"));
            assert_eq!(errno::errno(), Errno(number), "{kind:?}");
            let text = LAST.with_borrow(Clone::clone);
            assert_eq!(text.to_str(), Ok("a file: why?not. Do this"));
        }
    }
}
