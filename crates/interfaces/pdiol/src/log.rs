//! Log of the events of a process, appended to a file line by line.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use node::{Error, ErrorKind, Reporter, Result};

/// File of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Path of the file.
    pub path: OsString,
    /// True if a failure to write the log is an error. False for the variable `LOG=1`, which may be for another
    /// program.
    pub is_required: bool,
}

/// Log, which may have no file. Clones share the file.
#[derive(Clone)]
pub struct Log(Option<Arc<Open>>);

struct Open {
    file: Mutex<File>,
    start: Instant,
}

impl Log {
    /// Opens a log for appending. Without a file, returns a log that drops its lines.
    pub fn begin(wanted: Option<&LogFile>) -> Result<Log> {
        let Some(LogFile { path, is_required }) = wanted else { return Ok(Log(None)) };
        match File::options().append(true).create(true).open(path) {
            Ok(file) => Ok(Log(Some(Arc::new(Open { file: Mutex::new(file), start: Instant::now() })))),
            Err(_) if !is_required => Ok(Log(None)),
            Err(error) => {
                let what = format!("the log {}", Path::new(path).display());
                let error = Error::new(ErrorKind::Invalid, what, error);
                Err(error.with_remedy("Name another file with -log FILE"))
            }
        }
    }

    /// Writes a line, with the seconds since the beginning.
    pub fn line(&self, text: &str) {
        let Some(open) = &self.0 else { return };
        let seconds = open.start.elapsed().as_secs_f64();
        let mut file = open.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Write the line in one piece, since other processes may append to the same file. Ignore errors: a log on a
        // full disk is no reason to fail a program.
        let _ = file.write_all(format!("{seconds:12.6} {text}\n").as_bytes());
    }

    /// Returns a reporter that writes the session's reports into the log, or to standard error without a log.
    pub fn reporter(&self) -> Reporter {
        let log = self.clone();
        if log.0.is_none() {
            return Reporter::default();
        }
        Reporter::new(move |report| log.line(&report.to_string()))
    }
}
