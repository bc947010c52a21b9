//! The log: what happens in a process, line by line in a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pdiol::{Error, ErrorKind, Reporter, Result};

/// A log, if there is to be one. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Log(Option<Arc<Open>>);

struct Open {
    file: Mutex<File>,
    start: Instant,
}

impl Log {
    /// Begins a log in a new file of this path; without a path, one that nobody writes.
    pub(crate) fn begin(path: Option<&OsStr>) -> Result<Log> {
        let Some(path) = path else { return Ok(Log(None)) };
        let file = File::create(path).map_err(|error| {
            let what = format!("the log {}", Path::new(path).display());
            Error::new(ErrorKind::Invalid, what, error)
                .with_remedy("Another file can be given with -log FILE")
        })?;
        Ok(Log(Some(Arc::new(Open { file: Mutex::new(file), start: Instant::now() }))))
    }

    /// Writes a line, with the seconds since the beginning.
    pub(crate) fn line(&self, text: &str) {
        let Some(open) = &self.0 else { return };
        let seconds = open.start.elapsed().as_secs_f64();
        let mut file = open.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk is no reason to end a program that reads files of others.
        let _ = writeln!(file, "{seconds:12.6} {text}");
    }

    /// Where reports of the session go: into the log, or to standard error if there is none.
    pub(crate) fn reporter(&self) -> Reporter {
        let log = self.clone();
        if log.0.is_none() {
            return Reporter::default();
        }
        Reporter::new(move |report| log.line(&report.to_string()))
    }
}
