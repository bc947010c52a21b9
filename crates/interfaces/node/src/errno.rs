//! POSIX error numbers, for interfaces whose programs know no other errors.

use namespace::TreeRefusal;
use nix::libc;

use crate::error::ErrorKind;

impl ErrorKind {
    /// Returns the POSIX error number closest to this kind. Damaged or lost data are EIO, as read(2) and fsync(2)
    /// return for a disk.
    pub fn errno(self) -> i32 {
        match self {
            ErrorKind::NotFound => libc::ENOENT,
            ErrorKind::Exists => libc::EEXIST,
            ErrorKind::Invalid => libc::EINVAL,
            ErrorKind::NameTooLong => libc::ENAMETOOLONG,
            ErrorKind::BadMode | ErrorKind::Closed => libc::EBADF,
            ErrorKind::TooLarge => libc::EFBIG,
            ErrorKind::NoSpace => libc::ENOSPC,
            ErrorKind::Unreachable => libc::ECONNREFUSED,
            ErrorKind::UnknownHost => libc::EHOSTUNREACH,
            ErrorKind::Gone => libc::ECONNRESET,
            ErrorKind::Protocol => libc::EPROTO,
            ErrorKind::NotTrusted => libc::EACCES,
            ErrorKind::Refused(refusal) => errno_of(refusal),
            ErrorKind::Lost | ErrorKind::Damaged | ErrorKind::Io => libc::EIO,
        }
    }
}

fn errno_of(refusal: TreeRefusal) -> i32 {
    match refusal {
        TreeRefusal::NotFound => libc::ENOENT,
        TreeRefusal::Exists | TreeRefusal::HasNamespace => libc::EEXIST,
        TreeRefusal::NotDirectory => libc::ENOTDIR,
        TreeRefusal::IsDirectory => libc::EISDIR,
        TreeRefusal::NotEmpty => libc::ENOTEMPTY,
        TreeRefusal::NameTooLong => libc::ENAMETOOLONG,
        TreeRefusal::Loop => libc::ELOOP,
        TreeRefusal::Invalid => libc::EINVAL,
        TreeRefusal::TooManyLinks => libc::EMLINK,
        TreeRefusal::NotPermitted => libc::EPERM,
        TreeRefusal::NoAttribute => libc::ENODATA,
        TreeRefusal::TooLarge => libc::E2BIG,
        TreeRefusal::FileTooLarge => libc::EFBIG,
        TreeRefusal::Busy => libc::EBUSY,
        TreeRefusal::Removed => libc::ESTALE,
        TreeRefusal::NoNamespace => libc::ENOTCONN,
        TreeRefusal::Newer { .. } => libc::EPROTO,
        TreeRefusal::Damaged => libc::EUCLEAN,
    }
}
