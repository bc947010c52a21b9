//! The file of an object, open: its bytes, read and written at once where nothing has to be waited for.

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

/// What an object asks of its file.
pub(crate) trait ObjectFile {
    /// Reads from `position` on until `memory` has `until` bytes, or the file has ended.
    async fn fill(&self, memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>>;

    /// Writes all of the runs, one after the other, from `position` on.
    async fn write(&self, runs: Vec<ByteRun>, position: u64) -> io::Result<()>;

    /// Writes zeros to a range that the file has. They take no room any more if the system can do that.
    async fn clear(&self, range: Range<u64>) -> io::Result<()>;

    /// Cuts the file to `bytes`, or extends it to them with zeros.
    async fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// The first stretch from `position` on that is no hole; none if there is nothing but holes.
    async fn data_after(&self, position: u64) -> io::Result<Option<Range<u64>>>;

    /// Waits until all that was written is on the medium.
    async fn sync(&self) -> io::Result<()>;

    /// Has these bytes of it written back soon.
    fn write_back(&self, range: Range<u64>);
}

/// A file of the system.
pub(crate) struct SystemFile {
    file: File,
    at_once: Rc<AtOnce>,
    write_back: Rc<WriteBack>,
}

impl SystemFile {
    pub(crate) fn new(file: File, at_once: Rc<AtOnce>) -> Self {
        SystemFile { file, at_once, write_back: Rc::default() }
    }

    /// Appends bytes from `position` on, until `memory` has `until` of them or sooner; none at the end.
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
                // All of it once more: the same bytes at the same place.
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
            // Not every file system has holes; if it is the disk that fails, it fails once more.
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

/// Makes a range of a file a hole.
fn punch(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| Errno::EFBIG);
    Ok(fallocate(file, flags, signed(range.start)?, signed(range.end - range.start)?)?)
}

/// What the system knows of the holes of a file. Where it knows nothing, all that there is is data.
fn data_after(file: BorrowedFd<'_>, position: u64) -> io::Result<Option<Range<u64>>> {
    let seek = |from: u64, whence| match lseek(file, i64::try_from(from).unwrap_or(i64::MAX), whence) {
        Ok(found) => Ok(Some(found as u64)),
        Err(Errno::ENXIO) => Ok(None),
        Err(error) => Err(io::Error::from(error)),
    };
    match seek(position, Whence::SeekData) {
        Ok(Some(begin)) => {
            // If there is no end, the file was cut meanwhile.
            Ok(seek(begin, Whence::SeekHole)?.filter(|&end| end > begin).map(|end| begin..end))
        }
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => Ok(Some(position..u64::MAX)),
        none_or_failed => none_or_failed.map(|_| None),
    }
}
