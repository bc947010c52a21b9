//! Object in the format of a real disk, on any medium. Tests use it to run the format on a simulated disk.

use std::ops::Range;
use std::os::unix::fs::FileExt;

use machine::{Buf, Payload, Result};

use super::contents::{FoundContents, first_bytes, read_object};
use super::failures::io_error;
use super::file::ObjectFile;
use super::open_object::{Fault, OpenObject};
use super::sync_failure::SyncFailure;

/// Object in the file `F`.
pub struct ObjectOnMedium<F> {
    object: OpenObject<F>,
    what: String,
}

impl<F: ObjectFile + FileExt> ObjectOnMedium<F> {
    /// Returns the first bytes of the file of an empty object. The caller must write them before it opens the object.
    ///
    /// # Errors
    /// Fails if name and label are too long.
    pub fn first_bytes(name: &str, label: &[u8]) -> Result<Vec<u8>> {
        first_bytes(name, label).map(|(bytes, _)| bytes)
    }

    /// Returns the empty object `name` in a file that has only its first bytes.
    ///
    /// # Errors
    /// Fails if name and label are too long.
    pub fn of_empty(file: F, name: &str, label: &[u8]) -> Result<Self> {
        let (_, seal) = first_bytes(name, label)?;
        Ok(Self::new(file, name, FoundContents::of_empty(seal)))
    }

    /// Opens the object `name` in a file of `bytes` bytes, and returns it with its label.
    ///
    /// # Errors
    /// Fails with [`Damaged`](machine::Error::Damaged) if the file is not whole.
    pub fn open(file: F, bytes: u64, name: &str) -> Result<(Self, Vec<u8>)> {
        let read = read_object(&file, bytes, name).map_err(|error| io_error(&described(name), error))?;
        let (header, contents) = read.map_err(|refusal| refusal.of(described(name)))?;
        Ok((Self::new(file, name, contents), header.label))
    }

    fn new(file: F, name: &str, contents: FoundContents) -> Self {
        let object = OpenObject::new(file, contents, SyncFailure::default());
        ObjectOnMedium { object, what: described(name) }
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        self.object.bytes()
    }

    /// Reads as [`Disk::read`](machine::Disk::read) does.
    pub async fn read(&self, offset: u64, into: Buf) -> Result<Buf> {
        self.object.read(offset, into).await.map_err(|fault| self.failure(fault))
    }

    /// Writes as [`Disk::write`](machine::Disk::write) does.
    pub async fn write(&self, offset: u64, from: &Payload) -> Result<()> {
        self.object.write(offset, from).await.map_err(|fault| self.failure(fault))
    }

    /// Changes the length as [`Disk::resize`](machine::Disk::resize) does.
    pub async fn resize(&self, bytes: u64) -> Result<()> {
        self.object.resize(bytes).await.map_err(|fault| self.failure(fault))
    }

    /// Finds data as [`Disk::data_after`](machine::Disk::data_after) does.
    pub async fn data_after(&self, offset: u64) -> Result<Option<Range<u64>>> {
        self.object.data_after(offset).await.map_err(|fault| self.failure(fault))
    }

    /// Flushes the contents.
    pub async fn flush(&self) -> Result<()> {
        self.object.flush().await.map_err(|fault| self.failure(fault))
    }

    fn failure(&self, fault: Fault) -> Box<machine::Error> {
        fault.of(self.what.clone())
    }
}

fn described(name: &str) -> String {
    format!("object `{name}`")
}
