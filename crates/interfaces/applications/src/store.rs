//! Where a program's files are, as far as the programs need to know.
//!
//! [`Files`](crate::Files) opens ordinary and striped files by their names. To run a program on other storage, as a
//! benchmark does on a disk of its own, give it another store.

use std::io::{self, Read, Write};

use crate::failure::Result;
use crate::name::FileName;

/// Opens and makes files, for all threads of a program.
pub trait Storage: Sync {
    /// Opens a file to read it from its beginning to its end.
    fn open(&self, name: &FileName) -> Result<Box<dyn Read + Send + '_>>;

    /// Makes a file to be written from its beginning to its end.
    ///
    /// It stays only if it is [finished](Output::finish). If there is such a file already that is an error unless it is
    /// to be replaced; it stays until then.
    fn create(&self, name: &FileName, replace: bool) -> Result<Box<dyn Output + '_>>;

    /// Makes a file that no other program sees, and that is gone when it is dropped.
    fn temporary(&self) -> Result<Box<dyn Temporary>>;
}

/// A file that is made. Dropped before it is finished, it is removed.
pub trait Output: Write + Send {
    /// All is written: the file is whole, and has its name. Tells of any write that failed.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A temporary file: written from its beginning to its end, then read in the same way.
pub trait Temporary: Read + Write + Send {
    /// Back to the beginning, to be read.
    fn rewind(&mut self) -> io::Result<()>;
}
