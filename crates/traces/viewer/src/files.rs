//! Displayed files: their paths are given once, and the files are read again after they have grown.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trace::{Alignment, Limits, TraceReader};
use trace_formats::{FormatError, Imported, read_any};

use crate::columns::columns;

/// Minimum pause between two reads of the files, as a multiple of the duration of a read.
const REST: u32 = 3;

/// Failure to show a file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub struct FileError {
    /// Path of the file.
    pub path: String,
    /// Reason for the failure.
    #[source]
    pub cause: FormatError,
}

/// Columns and notes of files for the page.
#[derive(Clone, Debug, Default)]
pub struct FileColumns {
    /// The columns.
    pub columns: Vec<u8>,
    /// Notes on the files as the page shows them, each with the name of its file.
    pub notes: Vec<String>,
}

/// Set of trace files.
pub struct TraceFiles {
    paths: Vec<PathBuf>,
}

impl TraceFiles {
    /// Returns the set of files with these paths.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        TraceFiles { paths }
    }

    /// Reads the files, in any supported format, into columns on one clock.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is not a trace.
    pub fn columns(&self) -> Result<FileColumns, FileError> {
        let mut reader = TraceReader::new(Limits::default());
        let mut imported = Vec::new();
        for path in &self.paths {
            let name = path.display().to_string();
            let read = File::open(path).map_err(FormatError::from);
            let read = read.and_then(|file| read_any(&mut reader, &name, file));
            imported.push(read.map_err(|cause| FileError { path: name, cause })?);
        }
        let timeline = reader.finish(Alignment::WallClock);
        let of_file = |(path, imported): (&PathBuf, &Imported)| -> Vec<String> {
            imported.notes().map(|note| format!("{}: {note}", path.display())).collect()
        };
        let mut notes: Vec<String> = self.paths.iter().zip(&imported).flat_map(of_file).collect();
        notes.extend(timeline.notes.iter().map(ToString::to_string));
        Ok(FileColumns { columns: columns(&timeline, &imported), notes })
    }

    /// Returns a version text that changes with the files: it consists of their lengths and modification times.
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

/// Files, with their columns from the last read.
pub(crate) struct Followed {
    files: TraceFiles,
    version: String,
    columns: Arc<Vec<u8>>,
    notes: Vec<String>,
    next: Instant,
}

impl Followed {
    pub(crate) fn new(files: TraceFiles) -> Result<Self, FileError> {
        let mut followed = Followed {
            files,
            version: String::new(),
            columns: Arc::default(),
            notes: Vec::new(),
            next: Instant::now(),
        };
        followed.refresh()?;
        Ok(followed)
    }

    /// Returns the notes on the files from their last read.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the current columns and their version, or `None` if the version is `known`. If a file is missing or no
    /// longer a trace, the previous columns stay.
    pub(crate) fn news(&mut self, known: Option<&str>) -> Option<(Arc<Vec<u8>>, String)> {
        if Instant::now() >= self.next {
            // Ignore a failure: another program may be replacing the files. The next request retries.
            let _ = self.refresh();
        }
        (known != Some(&self.version)).then(|| (Arc::clone(&self.columns), self.version.clone()))
    }

    fn refresh(&mut self) -> Result<(), FileError> {
        // Take the version before the read, so that the next refresh detects changes made during the read.
        let version = self.files.version().unwrap_or_default();
        if version == self.version && !version.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let read = self.files.columns();
        self.next = Instant::now() + (start.elapsed() * REST).max(Duration::from_millis(200));
        let FileColumns { columns, notes } = read?;
        (self.columns, self.notes) = (Arc::new(columns), notes);
        self.version = version;
        Ok(())
    }
}
