//! Identity of a disk: a random number, in a file of the disk's directory.
//!
//! The file is created when the identity is first requested, and moves with the directory. Its creation is atomic, as
//! for objects: written under another name, synced, and linked.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use machine::{Error, Result};

use super::failures::{describe, io_error};

/// Name of the file with the identity in hexadecimal digits.
const FILE: &str = ".starfish.disk";

const DIGITS: usize = 16;

/// Returns the identity of the disk in the directory `path`, if it has one.
pub(super) fn read(path: &Path) -> Result<Option<u64>> {
    let mut text = String::new();
    // Reads one byte more than expected, to detect a longer file.
    let read =
        File::open(path.join(FILE)).and_then(|file| file.take(DIGITS as u64 + 2).read_to_string(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => {}
        Err(error) => return Err(io_error(&described(path), error)),
    }
    decode(&text).map(Some).ok_or_else(|| {
        let why =
            "it must have 16 hexadecimal digits and a line end. Restore it: files find their disk by it";
        Error::Damaged { what: described(path), why: why.to_owned() }.into()
    })
}

/// Returns the error of a disk with stripes that are located by the disk's identity, but without the identity.
pub(super) fn lost(path: &Path) -> Box<Error> {
    let why = "it is missing, and the disk has stripes of files, which find their disk by it. Restore it: 16 \
               hexadecimal digits and a line end. `starfish fsck`, and errors of clients that read such a \
               file, show the missing identity";
    Error::Damaged { what: described(path), why: why.to_owned() }.into()
}

/// Writes an identity to `file`, which has a temporary name, and links the final name unless it exists.
pub(super) fn write(path: &Path, identity: u64, mut file: File, unborn: &Path) -> Result<()> {
    let made = file
        .write_all(encode(identity).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(unborn, path.join(FILE)));
    let removed = fs::remove_file(unborn);
    let made = match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    made.and(removed).map_err(|error: io::Error| io_error(&described(path), error))
}

fn described(path: &Path) -> String {
    format!("the identity of {} ({FILE} in it)", describe(path))
}

fn encode(identity: u64) -> String {
    format!("{identity:016x}\n")
}

fn decode(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('\n').filter(|digits| digits.len() == DIGITS)?;
    let identity = u64::from_str_radix(digits, 16).ok()?;
    // Accepts only the exact text that `write` produces, without a sign.
    (encode(identity) == text).then_some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_encoded_identities_are_decoded(identity: u64, text in ".{0,20}\\n?") {
            prop_assert_eq!(decode(&encode(identity)), Some(identity));
            if let Some(found) = decode(&text) {
                prop_assert_eq!(encode(found), text);
            }
        }
    }
}
