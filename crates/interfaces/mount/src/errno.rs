//! Converts errors to error numbers of the kernel.

use fuser::Errno;
use namespace::TreeRefusal;
use node::ErrorKind;

/// Returns the number of an error. Programs do not expect connection errors from a file, so a disconnected agent looks
/// like a failing disk.
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

/// True if a refusal only says that something exists or is missing, so nothing has to be logged.
pub(crate) fn is_ordinary(refusal: TreeRefusal) -> bool {
    !matches!(refusal, TreeRefusal::Damaged | TreeRefusal::Newer { .. } | TreeRefusal::NoNamespace)
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    #[test]
    fn a_removed_file_is_estale_and_a_disconnected_agent_is_eio() {
        let removed = ErrorKind::Refused(TreeRefusal::Removed);
        assert_eq!(errno_of(removed).code(), libc::ESTALE, "ESTALE makes the kernel look the path up again");
        assert_eq!(errno_of(ErrorKind::Gone).code(), libc::EIO);
        assert_eq!(errno_of(ErrorKind::NoSpace).code(), libc::ENOSPC);
    }

    #[test]
    fn damage_is_no_ordinary_error() {
        assert!(is_ordinary(TreeRefusal::NotFound));
        assert!(!is_ordinary(TreeRefusal::Damaged));
    }
}
