//! Open file of an object. Accesses that do not block are executed directly.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::fs::File;
use compio::io::{AsyncReadAt, AsyncWriteAtExt};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::{Whence, lseek};

use super::at_once::AtOnce;
use super::blocking;
use super::write_back::WriteBack;
use crate::bytes::{ByteRun, next_batch};

/// Operations of an object on its file.
#[expect(async_fn_in_trait, reason = "all tasks of a node run on one thread")]
pub trait ObjectFile {
    /// Appends bytes from `position` on to `memory`, until it has `until` bytes or the file ends.
    async fn fill(&self, memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>>;

    /// Writes all runs, one after the other, from `position` on.
    async fn write(&self, runs: Vec<ByteRun>, position: u64) -> io::Result<()>;

    /// Writes zeros to an existing range of the file. Frees the space of the range if the system supports this.
    async fn clear(&self, range: Range<u64>) -> io::Result<()>;

    /// Truncates the file to `bytes`, or extends it with zeros.
    async fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Returns the first extent of data at or after `position`; `None` if only holes follow.
    async fn data_after(&self, position: u64) -> io::Result<Option<Range<u64>>>;

    /// Waits until all written data are in stable storage.
    async fn sync(&self) -> io::Result<()>;

    /// Starts writing these bytes back soon.
    fn write_back(&self, range: Range<u64>);
}

/// File of the operating system.
pub(crate) struct SystemFile {
    file: File,
    at_once: Rc<AtOnce>,
    write_back: Rc<WriteBack>,
}

impl SystemFile {
    pub(crate) fn new(file: File, at_once: Rc<AtOnce>) -> Self {
        SystemFile { file, at_once, write_back: Rc::default() }
    }

    /// Appends bytes from `position` on, until `memory` has at most `until` bytes. Appends no bytes at the end of the
    /// file.
    async fn append(&self, mut memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>> {
        let begin = memory.len();
        if self.at_once.read(self.file.as_fd(), &mut memory, until - begin, position)?.is_some() {
            return Ok(memory);
        }
        let BufResult(result, slice) = self.file.read_at(memory.slice(begin..until), position).await;
        result?;
        Ok(slice.into_inner())
    }
}

impl ObjectFile for SystemFile {
    async fn fill(&self, mut memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>> {
        let begin = memory.len();
        while memory.len() < until {
            let read = memory.len();
            memory = self.append(memory, until, position.saturating_add((read - begin) as u64)).await?;
            if memory.len() == read {
                break;
            }
        }
        Ok(memory)
    }

    async fn write(&self, mut runs: Vec<ByteRun>, mut position: u64) -> io::Result<()> {
        while let Some(batch) = next_batch(&mut runs) {
            let bytes: usize = batch.iter().map(IoBuf::buf_len).sum();
            let written = self.at_once.write(self.file.as_fd(), &batch, position)?;
            if written < bytes {
                // Write everything again, including the bytes already written at this position.
                let BufResult(result, _batch) = (&self.file).write_vectored_all_at(batch, position).await;
                result?;
            }
            position += bytes as u64;
        }
        Ok(())
    }

    async fn clear(&self, range: Range<u64>) -> io::Result<()> {
        let (file, hole) = (self.file.as_fd().try_clone_to_owned()?, range.clone());
        match blocking(move || punch(file.as_fd(), hole)).await {
            Ok(()) => Ok(()),
            // Not every file system supports holes, so write zeros instead. If the disk has failed, the write fails,
            // too.
            Err(_) => {
                let zeros = vec![0; (range.end - range.start) as usize];
                self.write(vec![ByteRun::Owned(zeros)], range.start).await
            }
        }
    }

    async fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes).await
    }

    async fn data_after(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        let file = self.file.as_fd().try_clone_to_owned()?;
        blocking(move || data_after(file.as_fd(), position)).await
    }

    async fn sync(&self) -> io::Result<()> {
        self.file.sync_data().await
    }

    fn write_back(&self, range: Range<u64>) {
        if !self.at_once.is_everything() {
            self.write_back.begin(self.file.as_fd(), range);
        }
    }
}

/// Punches a hole into a range of a file.
fn punch(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| Errno::EFBIG);
    Ok(fallocate(file, flags, signed(range.start)?, signed(range.end - range.start)?)?)
}

/// Returns the next extent of data, as reported by the system. If the file system does not support holes, all bytes
/// count as data.
fn data_after(file: BorrowedFd<'_>, position: u64) -> io::Result<Option<Range<u64>>> {
    let seek = |from: u64, whence| match lseek(file, i64::try_from(from).unwrap_or(i64::MAX), whence) {
        Ok(found) => Ok(Some(found as u64)),
        Err(Errno::ENXIO) => Ok(None),
        Err(error) => Err(io::Error::from(error)),
    };
    match seek(position, Whence::SeekData) {
        Ok(Some(begin)) => {
            // If the extent has no end, the file was truncated concurrently.
            Ok(seek(begin, Whence::SeekHole)?.filter(|&end| end > begin).map(|end| begin..end))
        }
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => Ok(Some(position..u64::MAX)),
        none_or_failed => none_or_failed.map(|_| None),
    }
}
