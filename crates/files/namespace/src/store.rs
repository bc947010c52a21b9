//! Reads and writes the records of a namespace within a transaction.

use machine::Transaction;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::inode::{FileNumber, Inode, UnixTime};
use crate::keys::{self, Space};
use crate::refusal::TreeRefusal;

/// Format of the records. Later formats are refused.
pub(crate) const FORMAT: u32 = 4;

/// Format whose inodes have no number of bytes reserved for appends.
const FORMAT_WITHOUT_RESERVED: u32 = 3;

/// Format whose inodes, in addition, have no number of unwritten bytes. This and older formats can still be read. The
/// namespace gets a later format with the first inode that needs it.
const FORMAT_WITHOUT_UNWRITTEN: u32 = 2;

/// Format whose inodes, in addition, have no number of stored stripes.
const FORMAT_WITHOUT_STORED_STRIPES: u32 = 1;

/// The reason why a transaction ends early.
pub(crate) enum TransactionEnd {
    /// The operation is refused.
    Refused(TreeRefusal),
    /// The store failed.
    Failed(Box<machine::Error>),
}

impl From<TreeRefusal> for TransactionEnd {
    fn from(refusal: TreeRefusal) -> Self {
        TransactionEnd::Refused(refusal)
    }
}

impl From<Box<machine::Error>> for TransactionEnd {
    fn from(error: Box<machine::Error>) -> Self {
        TransactionEnd::Failed(error)
    }
}

/// Result of a step of an operation.
pub(crate) type Step<T> = Result<T, TransactionEnd>;

/// Properties of the namespace as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeHeader {
    pub(crate) format: u32,
    pub(crate) origin: u64,
    /// Last number assigned to a file, relative to the origin.
    pub(crate) last: u64,
    pub(crate) inodes: u64,
    pub(crate) disk_lists: u32,
}

/// A namespace, accessed within a transaction.
pub(crate) struct Records<'a> {
    pub(crate) transaction: &'a mut dyn Transaction,
    /// Time of the operation.
    pub(crate) now: UnixTime,
    /// Incarnation of the store.
    pub(crate) run: u64,
    /// Changed directories, as in [`Performed`](crate::Performed).
    pub(crate) directories: Vec<Inode>,
}

impl Records<'_> {
    pub(crate) fn header(&mut self) -> Step<TreeHeader> {
        let bytes = self.transaction.get(keys::HEADER)?.ok_or(TreeRefusal::NoNamespace)?;
        // The format is the first field in all formats.
        let (format, _) = postcard::take_from_bytes::<u32>(&bytes).map_err(|_| TreeRefusal::Damaged)?;
        if !(FORMAT_WITHOUT_STORED_STRIPES..=FORMAT).contains(&format) {
            return Err(TreeRefusal::Newer { found: format, known: FORMAT }.into());
        }
        decoded(&bytes)
    }

    pub(crate) fn put_header(&mut self, header: TreeHeader) -> Step<()> {
        Ok(self.transaction.put(keys::HEADER, &encoded(&header))?)
    }

    /// Returns the inode of an entry. Fails with `Damaged` if the inode is missing.
    pub(crate) fn known(&mut self, number: FileNumber) -> Step<Inode> {
        self.find(number)?.ok_or(TransactionEnd::Refused(TreeRefusal::Damaged))
    }

    /// Returns the inode with a number from a client. Fails with `Removed` if the inode is missing.
    pub(crate) fn inode(&mut self, number: FileNumber) -> Step<Inode> {
        self.find(number)?.ok_or(TransactionEnd::Refused(TreeRefusal::Removed))
    }

    fn find(&mut self, number: FileNumber) -> Step<Option<Inode>> {
        match self.transaction.get(&keys::inode(number))? {
            Some(bytes) => decoded_inode(&bytes).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn directory(&mut self, number: FileNumber) -> Step<Inode> {
        let inode = self.inode(number)?;
        if inode.is_directory() { Ok(inode) } else { Err(TreeRefusal::NotDirectory.into()) }
    }

    pub(crate) fn put_inode(&mut self, inode: &Inode) -> Step<()> {
        self.note_directory(inode);
        Ok(self.transaction.put(&keys::inode(inode.number), &encoded_inode(inode))?)
    }

    /// Adds the new state of an inode to the changed directories if it is a directory.
    pub(crate) fn note_directory(&mut self, inode: &Inode) {
        if inode.is_directory() {
            self.directories.retain(|directory| directory.number != inode.number);
            self.directories.push(inode.clone());
        }
    }

    /// Raises the format of the namespace if this inode needs it, so that older programs refuse the namespace. `from`
    /// is the format that the inode needed before the change; the namespace has at least this format.
    pub(crate) fn raise_format(&mut self, from: u32, inode: &Inode) -> Step<()> {
        let format = format_of(inode);
        if format <= from {
            return Ok(());
        }
        let header = self.header()?;
        match header.format < format {
            true => self.put_header(TreeHeader { format, ..header }),
            false => Ok(()),
        }
    }

    /// Returns the number of the inode with this name in a directory.
    pub(crate) fn entry(&mut self, directory: FileNumber, name: &[u8]) -> Step<Option<FileNumber>> {
        match self.transaction.get(&keys::entry(directory, name))? {
            Some(bytes) => number_of(&bytes).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn put_entry(&mut self, directory: FileNumber, name: &[u8], number: FileNumber) -> Step<()> {
        Ok(self.transaction.put(&keys::entry(directory, name), &number.0.to_be_bytes())?)
    }

    pub(crate) fn remove_entry(&mut self, directory: FileNumber, name: &[u8]) -> Step<()> {
        Ok(self.transaction.remove(&keys::entry(directory, name))?)
    }

    pub(crate) fn is_empty(&mut self, directory: FileNumber) -> Step<bool> {
        let (from, to) = (keys::entry(directory, b""), keys::end_of(Space::Entry, directory));
        Ok(self.transaction.range(&from, &to, 1)?.is_empty())
    }

    /// Records that entries of a directory were added, removed or changed. `entries` is the change of the number of
    /// entries.
    pub(crate) fn touch_directory(&mut self, directory: &mut Inode, entries: i64) -> Step<()> {
        directory.size = directory.size.saturating_add_signed(entries);
        directory.modified = self.now;
        directory.changed = self.now;
        directory.raise_version(self.run);
        self.put_inode(directory)
    }
}

/// Parses the number in an entry.
pub(crate) fn number_of(bytes: &[u8]) -> Step<FileNumber> {
    let bytes = bytes.try_into().map_err(|_| TreeRefusal::Damaged)?;
    Ok(FileNumber(u64::from_be_bytes(bytes)))
}

pub(crate) fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("a vector takes any encoding")
}

/// Returns the earliest format that can express this inode.
pub(crate) fn format_of(inode: &Inode) -> u32 {
    match (inode.reserved, inode.unwritten, inode.stored_stripes) {
        (0, 0, 0) => FORMAT_WITHOUT_STORED_STRIPES,
        (0, 0, _) => FORMAT_WITHOUT_UNWRITTEN,
        (0, _, _) => FORMAT_WITHOUT_RESERVED,
        _ => FORMAT,
    }
}

/// Encodes an inode. As in earlier formats, omits the last fields if they are 0.
pub(crate) fn encoded_inode(inode: &Inode) -> Vec<u8> {
    let mut bytes = encoded(inode);
    let last = [inode.reserved, inode.unwritten, inode.stored_stripes.into()];
    let left_out = last.into_iter().take_while(|&field| field == 0);
    bytes.truncate(bytes.len() - left_out.count());
    bytes
}

pub(crate) fn decoded_inode(bytes: &[u8]) -> Step<Inode> {
    let with = |left_out: &[u8]| decoded(&[bytes, left_out].concat());
    // Try the encoding of files without holes first: most files have none.
    with(&[0, 0]).or_else(|_| with(&[0])).or_else(|_| decoded(bytes)).or_else(|_| with(&[0, 0, 0]))
}

pub(crate) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Step<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(TreeRefusal::Damaged.into()),
    }
}
