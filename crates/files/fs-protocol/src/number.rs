//! The names on their disks of the stripes of a file, and the mark of the disks of a
//! namespace.

use namespace::FileNumber;

use crate::protocol::FileId;

/// The number of the object that marks a disk as one of a set that has a namespace: that of the root directory, which
/// has no stripes of its own.
pub const MARK: FileId = FileId(FileNumber::ROOT.0);

/// What the stripes of a file are called on their disks. No file has that name.
pub fn object_name(file: FileId) -> String {
    format!("/{:016x}", file.0)
}

/// The file whose stripes are called so.
pub fn number_of(name: &str) -> Option<FileId> {
    let digits = name.strip_prefix('/').filter(|digits| digits.len() == 16)?;
    let file = FileId(u64::from_str_radix(digits, 16).ok()?);
    (object_name(file) == name).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{NameError, check};

    #[test]
    fn a_number_has_one_name_which_no_file_has() {
        for number in [0, 1, 0xABC, u64::MAX] {
            let name = object_name(FileId(number));
            assert_eq!((number_of(&name), check(&name)), (Some(FileId(number)), Err(NameError::Absolute)));
        }
        for other in
            ["/1", "/+123456789abcdef", "/0123456789ABCDEF", "0123456789abcdef", "/0123456789abcdef0"]
        {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
