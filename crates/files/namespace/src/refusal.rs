//! Reasons for refusing an operation.

use serde::{Deserialize, Serialize};

/// The reason why an operation is refused. A refused operation changes nothing. Each reason has a POSIX error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum TreeRefusal {
    /// ENOENT.
    #[error("no such file or directory")]
    NotFound,
    /// EEXIST.
    #[error("already exists")]
    Exists,
    /// ENOTDIR.
    #[error("not a directory")]
    NotDirectory,
    /// EISDIR.
    #[error("it is a directory")]
    IsDirectory,
    /// ENOTEMPTY.
    #[error("the directory is not empty")]
    NotEmpty,
    /// ENAMETOOLONG.
    #[error("it is too long: a name has at most 255 bytes, and a path 4095")]
    NameTooLong,
    /// ELOOP.
    #[error("too many symbolic links in the path")]
    Loop,
    /// EINVAL.
    #[error("the operation or its argument is invalid")]
    Invalid,
    /// EMLINK.
    #[error("it has too many hard links")]
    TooManyLinks,
    /// EPERM.
    #[error("the operation is not permitted on it")]
    NotPermitted,
    /// ENODATA.
    #[error("it has no such attribute")]
    NoAttribute,
    /// E2BIG.
    #[error("the attribute is too large")]
    TooLarge,
    /// EFBIG.
    #[error("the file would be too large")]
    FileTooLarge,
    /// EBUSY.
    #[error("it is in use")]
    Busy,
    /// ESTALE: the number does not exist, or no longer.
    #[error("it has been removed")]
    Removed,
    /// ENOTCONN: no namespace has been created.
    #[error("there is no namespace")]
    NoNamespace,
    /// EEXIST: a namespace has been created.
    #[error("a namespace already exists")]
    HasNamespace,
    /// EPROTO: the namespace is of a newer version of the program.
    #[error(
        "the namespace has format {found}, and this release supports format {known}: install a newer one"
    )]
    Newer {
        /// The format in the store.
        found: u32,
        /// Newest known format.
        known: u32,
    },
    /// EUCLEAN: a record of the store cannot be read, or contradicts another.
    #[error("the namespace is damaged; see `starfish fsck`")]
    Damaged,
}
