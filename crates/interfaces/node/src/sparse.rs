//! Holes: a copy skips holes on both sides, so they stay holes.
//!
//! A hole is a range of a file that was never written; it reads as zeros and takes no disk space. A side that cannot
//! distinguish holes from written zeros is [`Dense`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

/// Zeros that a writer without holes writes, a portion at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Hole that begins at the position of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hole {
    /// Length in bytes; 0 if there are data.
    pub bytes: u64,
    /// True if no data follow the hole.
    pub is_last: bool,
}

/// Reader from beginning to end that can skip holes.
pub trait SparseRead: Read {
    /// Returns the hole that begins at the next byte.
    ///
    /// # Errors
    /// If the next byte may be in a hole or not.
    fn hole(&mut self) -> io::Result<Hole>;

    /// Skips `bytes` bytes, which lie in the hole that begins here.
    ///
    /// # Errors
    /// If the reader cannot seek.
    fn skip_hole(&mut self, bytes: u64) -> io::Result<()>;
}

/// Writer from beginning to end that can leave holes.
pub trait SparseWrite: Write {
    /// Leaves a hole of `bytes` bytes, or writes that number of zeros.
    ///
    /// # Errors
    /// Those of writing.
    fn leave_hole(&mut self, bytes: u64) -> io::Result<()>;
}

/// Reader or writer without holes: a stream, or bytes in memory. All bytes are read or written, including zeros.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dense<T>(pub T);

impl<R: Read> Read for Dense<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl<R: Read> SparseRead for Dense<R> {
    fn hole(&mut self) -> io::Result<Hole> {
        Ok(Hole::default())
    }

    fn skip_hole(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Write for Dense<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> SparseWrite for Dense<W> {
    fn leave_hole(&mut self, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let portion = left.min(ZEROS.len() as u64);
            self.0.write_all(&ZEROS[..portion as usize])?;
            left -= portion;
        }
        Ok(())
    }
}

/// File of this computer, read or written from its current position. Only a regular file has holes.
#[derive(Debug)]
pub struct SparseFile {
    file: File,
    /// True if the file system reports the ranges with data.
    reports_holes: bool,
    /// Range of data found by the last search. No data lie between the start of that search and this range.
    data: Range<u64>,
}

impl SparseFile {
    /// Returns a reader of the file, or a writer of the empty file.
    ///
    /// # Errors
    /// If the file's metadata cannot be read.
    pub fn new(file: File) -> io::Result<SparseFile> {
        let reports_holes = file.metadata()?.is_file();
        Ok(SparseFile { file, reports_holes, data: 0..0 })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the hole that begins at `at` and ends at the next data.
    fn find_data(&mut self, at: u64) -> io::Result<Hole> {
        let seek =
            |offset: u64, whence| lseek(&self.file, offset.cast_signed(), whence).map(i64::cast_unsigned);
        let found = seek(at, Whence::SeekData).and_then(|data| Ok((data, seek(data, Whence::SeekHole)?)));
        let hole = match found {
            Ok((data, end)) => {
                self.data = data..end;
                Hole { bytes: data - at, is_last: false }
            }
            Err(Errno::ENXIO) => {
                let bytes = self.file.metadata()?.len().saturating_sub(at);
                Hole { bytes, is_last: bytes > 0 }
            }
            Err(_) => {
                self.reports_holes = false;
                Hole::default()
            }
        };
        self.file.seek(SeekFrom::Start(at))?;
        Ok(hole)
    }
}

impl Read for SparseFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read(bytes)
    }
}

impl SparseRead for SparseFile {
    fn hole(&mut self) -> io::Result<Hole> {
        if !self.reports_holes {
            return Ok(Hole::default());
        }
        let at = self.file.stream_position()?;
        if self.data.contains(&at) { Ok(Hole::default()) } else { self.find_data(at) }
    }

    fn skip_hole(&mut self, bytes: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Current(bytes.cast_signed())).map(drop)
    }
}

impl Write for SparseFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl SparseWrite for SparseFile {
    fn leave_hole(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.file.seek(SeekFrom::Current(bytes.cast_signed()))?;
        // Extend the file now, because possibly no data follow the hole.
        self.file.set_len(end)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn temporary() -> File {
        tempfile::tempfile().expect("room")
    }

    #[test]
    fn holes_of_a_file_are_reported_at_their_start() {
        let file = temporary();
        file.write_all_at(&[7; 100], 2 * MIB).expect("room");
        file.set_len(5 * MIB).expect("room");
        let mut file = SparseFile::new(file).expect("a file");
        for _ in 0..2 {
            assert_eq!(file.hole().expect("the answer"), Hole { bytes: 2 * MIB, is_last: false });
        }
        file.skip_hole(2 * MIB).expect("it goes on there");
        assert_eq!(file.hole().expect("the answer"), Hole::default());
        let mut read = [0; 100];
        file.read_exact(&mut read).expect("there are data");
        assert_eq!(
            (read, file.hole().expect("the answer").bytes),
            ([7; 100], 0),
            "the rest of a block is data, too"
        );
        file.skip_hole(MIB - 100).expect("it goes on there");
        assert_eq!(file.hole().expect("the answer"), Hole { bytes: 2 * MIB, is_last: true });
        file.skip_hole(2 * MIB).expect("it goes on there");
        assert_eq!(
            (file.hole().expect("the answer"), file.read(&mut read).expect("the end")),
            (Hole::default(), 0)
        );
    }

    #[test]
    fn left_holes_take_no_space_and_count_in_the_length() {
        let mut file = SparseFile::new(temporary()).expect("a file");
        file.leave_hole(3 * MIB).expect("room");
        file.write_all(&[7; 100]).expect("room");
        file.leave_hole(MIB).expect("room");
        let found = file.file().metadata().expect("a file");
        assert_eq!(found.len(), 4 * MIB + 100);
        assert!(found.blocks() * 512 < MIB, "{} blocks", found.blocks());
        let mut read = [0; 102];
        file.file().read_exact_at(&mut read, 3 * MIB - 1).expect("there are as many");
        assert_eq!((read[0], &read[1..101], read[101]), (0, &[7; 100][..], 0));
    }

    #[test]
    fn a_dense_output_has_zeros_for_holes() {
        let mut stream = Dense(Vec::new());
        stream.leave_hole(ZEROS.len() as u64 + 1).expect("room");
        stream.write_all(b"x").expect("room");
        assert_eq!(stream.0, [vec![0; ZEROS.len() + 1], b"x".to_vec()].concat());
        assert_eq!(Dense(&[1_u8][..]).hole().expect("none"), Hole::default());
    }
}
