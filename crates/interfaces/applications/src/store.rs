//! Storage of a program's files, as seen by the program.
//!
//! [`Files`](crate::Files) opens ordinary and striped files by their names. To run a program on other storage, such as
//! a benchmark's own disk, pass another implementation.

use std::io::{self, Read, Write};

use crate::failure::Result;
use crate::name::FileName;

/// Opens and creates files, for all threads of a program.
pub trait Storage: Sync {
    /// Opens a file for sequential reading.
    fn open(&self, name: &FileName) -> Result<Box<dyn Read + Send + '_>>;

    /// Creates a file for sequential writing.
    ///
    /// The file is kept only if it is [finished](Output::finish). Fails if the name exists, unless `replace` is true. A
    /// replaced file stays until the new file is finished.
    fn create(&self, name: &FileName, replace: bool) -> Result<Box<dyn Output + '_>>;

    /// Creates a file that is invisible to other programs and is removed when dropped.
    fn temporary(&self) -> Result<Box<dyn Temporary>>;
}

/// An output file. It is removed if dropped before it is finished.
pub trait Output: Write + Send {
    /// Completes the file under its name. Fails if any write failed.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A temporary file: written sequentially, then read sequentially.
pub trait Temporary: Read + Write + Send {
    /// Returns to the beginning, for reading.
    fn rewind(&mut self) -> io::Result<()>;
}
