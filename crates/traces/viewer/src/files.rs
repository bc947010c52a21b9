//! The files that are shown: named once, and read again when they have grown.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trace::{Alignment, Limits, TraceReader};
use trace_formats::{FormatError, Imported, read_any};

use crate::columns::columns;

/// After files have been read they are left alone for this many times as long as reading took.
const REST: u32 = 3;

/// A file that is not shown.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub struct FileError {
    /// The path of the file.
    pub path: String,
    /// Why not.
    #[source]
    pub cause: FormatError,
}

/// What the page shows of files.
#[derive(Clone, Debug, Default)]
pub struct FileColumns {
    /// The columns.
    pub columns: Vec<u8>,
    /// What is missing of the files, and what was odd in them, as the page says it, each with the name of its file.
    pub notes: Vec<String>,
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

/// The columns of files as they were at the last request.
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

    /// Remarks on the files, from when they were read last.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
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
        let read = self.files.columns();
        self.next = Instant::now() + (start.elapsed() * REST).max(Duration::from_millis(200));
        let FileColumns { columns, notes } = read?;
        (self.columns, self.notes) = (Arc::new(columns), notes);
        self.version = version;
        Ok(())
    }
}
