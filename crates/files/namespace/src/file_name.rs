//! Names and paths: bytes, as in POSIX.

use crate::refusal::TreeRefusal;

/// Maximum length of the name of a directory entry, in bytes.
pub const FILE_NAME_BYTES_MAX: usize = 255;

/// Maximum length of a path, and of the target of a symbolic link, in bytes.
pub const PATH_BYTES_MAX: usize = 4095;

/// Maximum number of symbolic links in the resolution of a path.
pub const LINK_DEPTH_MAX: u32 = 40;

/// Checks that `name` is valid for a directory entry.
pub fn check_name(name: &[u8]) -> Result<(), TreeRefusal> {
    match name {
        b"" => Err(TreeRefusal::NotFound),
        b"." | b".." => Err(TreeRefusal::Invalid),
        _ if name.len() > FILE_NAME_BYTES_MAX => Err(TreeRefusal::NameTooLong),
        _ if name.iter().any(|&byte| byte == b'/' || byte == 0) => Err(TreeRefusal::Invalid),
        _ => Ok(()),
    }
}

/// Checks the length of a path.
pub(crate) fn check_path(path: &[u8]) -> Result<(), TreeRefusal> {
    if path.len() > PATH_BYTES_MAX {
        Err(TreeRefusal::NameTooLong)
    } else if path.contains(&0) {
        Err(TreeRefusal::Invalid)
    } else {
        Ok(())
    }
}
