//! Names of the objects that store a file's stripes, and of the object that marks the disks of a namespace.

use namespace::FileNumber;

use crate::protocol::FileId;

/// Number of the object that marks a disk as part of a set with a namespace. This is the number of the root directory,
/// which has no stripes.
pub const MARK: FileId = FileId(FileNumber::ROOT.0);

/// Returns the name of the objects that store a file's stripes. No file can have this name.
pub fn object_name(file: FileId) -> String {
    format!("/{:016x}", file.0)
}

/// Returns the file whose stripes are stored in objects of this name, if any.
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
    fn a_file_number_has_one_object_name_and_no_file_has_that_name() {
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
