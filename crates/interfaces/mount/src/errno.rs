//! Errors as the kernel has them.

use fuser::Errno;
use namespace::TreeRefusal;
use node::ErrorKind;

/// The number of an error. No program expects of a file that it is refused a connection: an agent that is gone is to it
/// a disk that fails.
pub(crate) fn errno_of(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::Unreachable
        | ErrorKind::UnknownHost
        | ErrorKind::Gone
        | ErrorKind::Protocol
        | ErrorKind::Closed => Errno::EIO,
        kind => Errno::from_i32(kind.errno()),
    }
}

/// Whether a refusal says what is there or not, and not that something is wrong: nobody has to look into the log.
pub(crate) fn is_ordinary(refusal: TreeRefusal) -> bool {
    !matches!(refusal, TreeRefusal::Damaged | TreeRefusal::Newer { .. } | TreeRefusal::NoNamespace)
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    #[test]
    fn what_is_gone_is_looked_for_anew_and_who_is_gone_is_a_failing_disk() {
        let removed = ErrorKind::Refused(TreeRefusal::Removed);
        assert_eq!(errno_of(removed).code(), libc::ESTALE, "the kernel looks the path up anew then");
        assert_eq!(errno_of(ErrorKind::Gone).code(), libc::EIO);
        assert_eq!(errno_of(ErrorKind::NoSpace).code(), libc::ENOSPC);
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(is_ordinary(TreeRefusal::NotFound));
        assert!(!is_ordinary(TreeRefusal::Damaged));
    }
}
