//! Keys of the records of a namespace in the store.
//!
//! ```text
//!  h                            header: format, origin, counters
//!  d <list>                     a list of disks
//!  i <number>                   an inode
//!  e <directory> <name>         an entry: the number of its inode
//!  x <number> <name>            an extended attribute
//!  o <number>                   an orphan: an inode without names
//! ```
//!
//! Numbers have 8 bytes, the most significant first, so that keys sort by number; numbers of lists have 4 bytes.

use crate::inode::FileNumber;

pub(crate) const HEADER: &[u8] = b"h";

/// The first byte of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Space {
    Disks = b'd',
    Entry = b'e',
    Inode = b'i',
    Orphan = b'o',
    Extended = b'x',
}

pub(crate) fn disks(list: u32) -> Vec<u8> {
    [&[Space::Disks as u8][..], &list.to_be_bytes()].concat()
}

pub(crate) fn inode(number: FileNumber) -> Vec<u8> {
    key(Space::Inode, number, b"")
}

pub(crate) fn orphan(number: FileNumber) -> Vec<u8> {
    key(Space::Orphan, number, b"")
}

pub(crate) fn entry(directory: FileNumber, name: &[u8]) -> Vec<u8> {
    key(Space::Entry, directory, name)
}

pub(crate) fn extended(number: FileNumber, name: &[u8]) -> Vec<u8> {
    key(Space::Extended, number, name)
}

/// Returns a key of a number and the bytes after it.
pub(crate) fn key(space: Space, number: FileNumber, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + rest.len());
    key.push(space as u8);
    key.extend(number.0.to_be_bytes());
    key.extend(rest);
    key
}

/// Returns the end of the range of keys that have this number in this space.
pub(crate) fn end_of(space: Space, number: FileNumber) -> Vec<u8> {
    match number.0.checked_add(1) {
        Some(next) => key(space, FileNumber(next), b""),
        None => end_of_space(space),
    }
}

/// Returns the end of the range of keys of a space.
pub(crate) fn end_of_space(space: Space) -> Vec<u8> {
    vec![space as u8 + 1]
}

/// Returns the first possible key after this one.
pub(crate) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Returns the number in a key, and the bytes after it.
pub(crate) fn parts(key: &[u8]) -> Option<(FileNumber, &[u8])> {
    let (number, rest) = key.get(1..)?.split_first_chunk::<8>()?;
    Some((FileNumber(u64::from_be_bytes(*number)), rest))
}
