//! Reading and writing the records of a namespace within a transaction.

use machine::Transaction;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::inode::{FileNumber, Inode, UnixTime};
use crate::keys::{self, Space};
use crate::refusal::TreeRefusal;

/// The format of the records. A later one is refused.
pub(crate) const FORMAT: u32 = 4;

/// The format of records whose inodes do not say what is reserved for appends.
const FORMAT_WITHOUT_RESERVED: u32 = 3;

/// The format of records whose inodes do not say what nobody has written. They are read still, and so are older ones;
/// the namespace gets a later format with the first inode that needs it.
const FORMAT_WITHOUT_UNWRITTEN: u32 = 2;

/// The format of records whose inodes do not say which stripes are stored either.
const FORMAT_WITHOUT_STORED_STRIPES: u32 = 1;

/// Why a transaction ends early.
pub(crate) enum Stop {
    /// It is refused.
    Refused(TreeRefusal),
    /// The store has failed.
    Failed(Box<machine::Error>),
}

impl From<TreeRefusal> for Stop {
    fn from(refusal: TreeRefusal) -> Self {
        Stop::Refused(refusal)
    }
}

impl From<Box<machine::Error>> for Stop {
    fn from(error: Box<machine::Error>) -> Self {
        Stop::Failed(error)
    }
}

/// What a step of an operation comes to.
pub(crate) type Step<T> = Result<T, Stop>;

/// What holds for the namespace as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeHeader {
    pub(crate) format: u32,
    pub(crate) origin: u64,
    /// The last number given to a file, relative to the origin.
    pub(crate) last: u64,
    pub(crate) inodes: u64,
    pub(crate) disk_lists: u32,
}

/// A namespace within a transaction.
pub(crate) struct Records<'a> {
    pub(crate) transaction: &'a mut dyn Transaction,
    /// The time of the operation.
    pub(crate) now: UnixTime,
    /// The run of the store.
    pub(crate) run: u64,
    /// The directories that it has changed, as in [`Performed`](crate::Performed).
    pub(crate) directories: Vec<Inode>,
}

impl Records<'_> {
    pub(crate) fn header(&mut self) -> Step<TreeHeader> {
        let bytes = self.transaction.get(keys::HEADER)?.ok_or(TreeRefusal::NoNamespace)?;
        // The format comes first in all of them.
        let (format, _) = postcard::take_from_bytes::<u32>(&bytes).map_err(|_| TreeRefusal::Damaged)?;
        if !(FORMAT_WITHOUT_STORED_STRIPES..=FORMAT).contains(&format) {
            return Err(TreeRefusal::Newer { found: format, known: FORMAT }.into());
        }
        decoded(&bytes)
    }

    pub(crate) fn put_header(&mut self, header: TreeHeader) -> Step<()> {
        Ok(self.transaction.put(keys::HEADER, &encoded(&header))?)
    }

    /// An inode that has to be there, since an entry leads to it.
    pub(crate) fn known(&mut self, number: FileNumber) -> Step<Inode> {
        self.find(number)?.ok_or(Stop::Refused(TreeRefusal::Damaged))
    }

    /// An inode that somebody has had the number of.
    pub(crate) fn inode(&mut self, number: FileNumber) -> Step<Inode> {
        self.find(number)?.ok_or(Stop::Refused(TreeRefusal::Removed))
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

    /// Notes how an inode is now, if it is a directory.
    pub(crate) fn note_directory(&mut self, inode: &Inode) {
        if inode.is_directory() {
            self.directories.retain(|directory| directory.number != inode.number);
            self.directories.push(inode.clone());
        }
    }

    /// Sees to it that programs which do not know of all that this inode says refuse the namespace. Before it was
    /// changed it needed a format `from`, which the namespace has.
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

    /// What the entry of this name leads to.
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

    /// Notes that entries of a directory have come, gone or changed.
    pub(crate) fn touch_directory(&mut self, directory: &mut Inode, entries: i64) -> Step<()> {
        directory.size = directory.size.saturating_add_signed(entries);
        directory.modified = self.now;
        directory.changed = self.now;
        directory.raise_version(self.run);
        self.put_inode(directory)
    }
}

/// The number in an entry.
pub(crate) fn number_of(bytes: &[u8]) -> Step<FileNumber> {
    let bytes = bytes.try_into().map_err(|_| TreeRefusal::Damaged)?;
    Ok(FileNumber(u64::from_be_bytes(bytes)))
}

pub(crate) fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("a vector takes any encoding")
}

/// The earliest format in which all can be said that an inode says.
pub(crate) fn format_of(inode: &Inode) -> u32 {
    match (inode.reserved, inode.unwritten, inode.stored_stripes) {
        (0, 0, 0) => FORMAT_WITHOUT_STORED_STRIPES,
        (0, 0, _) => FORMAT_WITHOUT_UNWRITTEN,
        (0, _, _) => FORMAT_WITHOUT_RESERVED,
        _ => FORMAT,
    }
}

/// The encoding of an inode: without its last fields, if these are 0, as they are in earlier formats.
pub(crate) fn encoded_inode(inode: &Inode) -> Vec<u8> {
    let mut bytes = encoded(inode);
    let last = [inode.reserved, inode.unwritten, inode.stored_stripes.into()];
    let left_out = last.into_iter().take_while(|&field| field == 0);
    bytes.truncate(bytes.len() - left_out.count());
    bytes
}

pub(crate) fn decoded_inode(bytes: &[u8]) -> Step<Inode> {
    let with = |left_out: &[u8]| decoded(&[bytes, left_out].concat());
    // Most files have no holes.
    with(&[0, 0]).or_else(|_| with(&[0])).or_else(|_| decoded(bytes)).or_else(|_| with(&[0, 0, 0]))
}

pub(crate) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Step<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(TreeRefusal::Damaged.into()),
    }
}
