//! Striped files as a store for programs, through a session whose prefetch window the benchmark chooses.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use applications::{Failure, FileName, Output, Result, Storage, Temporary};
use pdiol::{Advice, OpenOptions, Session};

/// Treatment of temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporaryFiles {
    /// Temporary files are kept in the page cache as far as they fit, like those of the real programs.
    Cached,
    /// Temporary files are written to the disks and read from them, like those on the modelled disk used locally.
    OnDisks,
}

/// Store of striped files.
pub struct Striped {
    session: Session,
    temporary_files: TemporaryFiles,
    made: AtomicU64,
}

impl Striped {
    /// Returns the store of a session.
    pub fn new(session: Session, temporary_files: TemporaryFiles) -> Striped {
        Striped { session, temporary_files, made: AtomicU64::new(0) }
    }

    /// Removes a file.
    pub fn remove(&self, name: &FileName) -> Result<()> {
        self.session.unlink(&name.to_string()).map_err(|error| Failure::new(name, error))
    }

    fn open_as(&self, name: &str, options: OpenOptions) -> Result<pdiol::File> {
        self.session.open(name, options).map_err(|error| Failure::new(name, error))
    }
}

impl Storage for Striped {
    fn open(&self, name: &FileName) -> Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(self.open_as(&name.to_string(), OpenOptions::new().read(true))?))
    }

    fn create(&self, name: &FileName, _replace: bool) -> Result<Box<dyn Output + '_>> {
        let options = OpenOptions::new().write(true).create(true).truncate(true);
        Ok(Box::new(Made(self.open_as(&name.to_string(), options)?)))
    }

    fn temporary(&self) -> Result<Box<dyn Temporary>> {
        let name = format!("temporary-{}", self.made.fetch_add(1, Ordering::Relaxed));
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(true);
        let mut file = self.open_as(&name, options)?;
        if self.temporary_files == TemporaryFiles::Cached {
            file.hint(Advice::Temporary).map_err(|error| Failure::new(&name, error))?;
        }
        let (session, temporary_files) = (self.session.clone(), self.temporary_files);
        Ok(Box::new(TemporaryFile { session, temporary_files, name, file }))
    }
}

struct Made(pdiol::File);

impl Write for Made {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.write(from)
    }

    /// Does nothing, because [`finish`](Output::finish) flushes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Made {
    /// Flushes the file to stable storage, as the predictions assume.
    fn finish(mut self: Box<Self>) -> Result<()> {
        let name = self.0.name().to_owned();
        let synced = self.0.sync();
        synced.and_then(|()| self.0.close()).map_err(|error| Failure::new(name, error))
    }
}

struct TemporaryFile {
    session: Session,
    temporary_files: TemporaryFiles,
    name: String,
    file: pdiol::File,
}

impl Temporary for TemporaryFile {
    fn rewind(&mut self) -> io::Result<()> {
        if self.temporary_files == TemporaryFiles::OnDisks {
            self.file.sync()?;
            self.file.hint(Advice::DontNeed { offset: 0, bytes: u64::MAX })?;
        }
        self.file.hint(Advice::Sequential)?;
        self.file.seek(SeekFrom::Start(0)).map(drop)
    }
}

impl Read for TemporaryFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.file.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // If the file cannot be removed now, it is removed with the agents' directories.
        let _ = self.session.unlink(&self.name);
    }
}
