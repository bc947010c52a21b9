//! The files that are shown: named once, and read again when they have grown.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trace::{Alignment, Limits, TraceReader};
use trace_formats::{FormatError, read_any};

use crate::columns::columns;

/// After files have been read they are left alone for so many times as long as that took.
const REST: u32 = 3;

/// A file that is not shown.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub struct FileError {
    /// Which.
    pub path: String,
    /// Why not.
    #[source]
    pub cause: FormatError,
}

/// Files of traces.
pub struct TraceFiles {
    paths: Vec<PathBuf>,
}

impl TraceFiles {
    /// The files of these names.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        TraceFiles { paths }
    }

    /// The columns of what is in them, on one clock. They may be of any format that can be imported.
    ///
    /// # Errors
    ///
    /// If one cannot be read, or is no trace.
    pub fn columns(&self) -> Result<Vec<u8>, FileError> {
        let mut reader = TraceReader::new(Limits::default());
        let mut imported = Vec::new();
        for path in &self.paths {
            let name = path.display().to_string();
            let read = File::open(path).map_err(FormatError::from);
            let read = read.and_then(|file| read_any(&mut reader, &name, file));
            imported.push(read.map_err(|cause| FileError { path: name, cause })?);
        }
        Ok(columns(&reader.finish(Alignment::WallClock), &imported))
    }

    /// What tells whether they have changed: how long they are, and since when.
    fn version(&self) -> io::Result<String> {
        let of = |path: &Path| {
            let metadata = fs::metadata(path)?;
            let changed = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(format!("{}-{}", metadata.len(), changed.as_nanos()))
        };
        let versions: io::Result<Vec<_>> = self.paths.iter().map(|path| of(path)).collect();
        Ok(versions?.join("."))
    }
}

/// The columns of files as they were when somebody asked last.
pub(crate) struct Followed {
    files: TraceFiles,
    version: String,
    columns: Arc<Vec<u8>>,
    next: Instant,
}

impl Followed {
    pub(crate) fn new(files: TraceFiles) -> Result<Self, FileError> {
        let mut followed =
            Followed { files, version: String::new(), columns: Arc::default(), next: Instant::now() };
        followed.refresh()?;
        Ok(followed)
    }

    /// The columns as they are now, and their version, unless that is `known`. Files that are no longer there, or no
    /// longer traces, are shown as they were.
    pub(crate) fn news(&mut self, known: Option<&str>) -> Option<(Arc<Vec<u8>>, String)> {
        if Instant::now() >= self.next {
            // They may be in the middle of being replaced: another time.
            let _ = self.refresh();
        }
        (known != Some(&self.version)).then(|| (Arc::clone(&self.columns), self.version.clone()))
    }

    fn refresh(&mut self) -> Result<(), FileError> {
        // Looked at first: what comes while they are read is news the next time.
        let version = self.files.version().unwrap_or_default();
        if version == self.version && !version.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let columns = self.files.columns();
        self.next = Instant::now() + (start.elapsed() * REST).max(Duration::from_millis(200));
        self.columns = Arc::new(columns?);
        self.version = version;
        Ok(())
    }
}
