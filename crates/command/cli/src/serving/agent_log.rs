//! Log of an agent on standard error: one line for each important event.
//!
//! ```text
//! 2026-11-22T12:04:05Z info   started: starfish 0.1.0 at 127.0.0.1:7117, 1 disk: /disk1
//! 2026-11-22T12:09:41Z error  no space left on object `big.dat` (/disk1/big.dat.stripe)
//! ```
//!
//! Under systemd, the journal adds the time and reads a number in angle brackets as the priority (sd-daemon(3)). The
//! agents of a set write standard error to a file, see `detached.rs`.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use command_line::visible;
use doctor::KEEPS_APART;
use log::{Level, LevelFilter};
use node::key;
use real::{Report, Reporter};

/// Environment variable with the least severe level that is logged.
const VARIABLE: &str = "STARFISH_LOG";

/// Starts the log of this process, including its panics.
pub(crate) fn begin() -> Result<()> {
    let level = level(env::var(VARIABLE).ok().as_deref())?;
    let journal = is_journal();
    let mut builder = env_logger::Builder::new();
    builder.filter_module("starfish", level);
    builder.format(move |line, record| {
        let text = record.args().to_string().replace('\n', " ");
        let text = visible(&text);
        if journal {
            return writeln!(line, "<{}>{text}", priority(record.level()));
        }
        let time = line.timestamp();
        writeln!(line, "{time} {:6} {text}", record.level().as_str().to_ascii_lowercase())
    });
    builder.init();
    std::panic::set_hook(Box::new(|panic| log::error!("a defect of starfish: {panic}")));
    Ok(())
}

fn level(text: Option<&str>) -> Result<LevelFilter> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(LevelFilter::Info) };
    text.parse()
        .map_err(|_| Failure::usage(format!("{VARIABLE}={text}"), "expected off, error, warn, info or debug"))
}

/// Returns true if standard error goes to the journal. systemd passes the device and inode of the journal's stream in a
/// variable.
fn is_journal() -> bool {
    let Ok(stream) = env::var("JOURNAL_STREAM") else { return false };
    let file = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let metadata = file.and_then(|file| file.metadata());
    metadata.is_ok_and(|metadata| stream == format!("{}:{}", metadata.dev(), metadata.ino()))
}

/// Returns the journal's number for a level, from sd-daemon(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// Returns a function that logs the events of a node with this key file. It limits the rate of repeated disk errors.
pub(crate) fn reporter(key_file: Option<PathBuf>) -> Reporter {
    let failures = Mutex::new(RepeatedLines::default());
    Reporter::new(move |report| match report {
        Report::PeerCame { peer, .. } => log::debug!("{peer} connected"),
        Report::PeerGone { peer, why, .. } => log::debug!("{peer} disconnected: {why}"),
        Report::Altered { peer, .. } => {
            log::warn!(
                "a message of {peer} was altered, lost or repeated in transit; its connection is closed"
            );
        }
        Report::Refused { from, why, mismatch: Some(mismatch), .. } => {
            let file = key::path(key_file.as_deref()).ok();
            log::warn!(
                "refused {from}: {why}. {}",
                key::remedy(*mismatch, file.as_deref(), &from.ip().to_string())
            );
        }
        Report::Refused { from, why, .. } => log::warn!("refused {from}: {why}"),
        Report::RefusedMore { count, within, .. } => {
            log::warn!("refused {count} more within {} s", within.as_secs());
        }
        Report::CannotAccept { why, .. } => log::warn!("cannot accept a connection: {why}"),
        Report::TaskFailed { task, error, .. } => log::error!("{task}: {error}"),
        Report::MetadataChanged { text, .. } => log::error!("{text}"),
        Report::Defect { error, .. } => log::error!("a defect, which cost one request: {error}"),
        Report::DiskFailed { error, .. } => {
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            match failures.note(error.to_string(), Instant::now()) {
                Some(0) => log::error!("{error}"),
                Some(more) => log::error!("{error} (repeated {more} times since)"),
                None => {}
            }
        }
        Report::ReadsHeldUp { disk, by, writes, .. } => log::warn!(
            "reads from {disk} are delayed by a client's writes ({by}, {writes} queued): {KEEPS_APART}"
        ),
        other => log::warn!("{other}"),
    })
}

/// Returns a function that logs the complete errors, because programs receive only error numbers. It limits the rate of
/// repeated errors.
pub(crate) fn error_logger() -> impl Fn(&node::Error) + Send {
    let failures = Mutex::new(RepeatedLines::default());
    move |error| {
        let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.note(error.to_string(), Instant::now()) {
            Some(0) => log::error!("{error}"),
            Some(more) => log::error!("{error} (repeated {more} times since)"),
            None => {}
        }
    }
}

/// Shortest time between two lines with the same text.
const REPEATED_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of texts remembered. At this number, texts whose last line is older than [`REPEATED_EVERY`] are
/// forgotten.
const TEXTS_MAX: usize = 1000;

/// Texts that have been logged, each with the time of its last line and the number of repetitions suppressed since.
#[derive(Default)]
struct RepeatedLines(BTreeMap<String, (Instant, u64)>);

impl RepeatedLines {
    /// Returns the number of repetitions that were suppressed before this line, or `None` if this line is to be
    /// suppressed, too.
    fn note(&mut self, text: String, now: Instant) -> Option<u64> {
        let is_old = |written: Instant| now.duration_since(written) >= REPEATED_EVERY;
        if self.0.len() >= TEXTS_MAX {
            self.0.retain(|_, (written, _)| !is_old(*written));
        }
        if self.0.len() >= TEXTS_MAX && !self.0.contains_key(&text) {
            return None;
        }
        match self.0.get_mut(&text) {
            Some((written, left_out)) if !is_old(*written) => {
                *left_out += 1;
                None
            }
            _ => Some(self.0.insert(text, (now, 0)).map_or(0, |(_, left_out)| left_out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_message_is_logged_once_a_minute_with_its_count() {
        let (mut repeated, start) = (RepeatedLines::default(), Instant::now());
        assert_eq!(repeated.note("full".into(), start), Some(0));
        for seconds in [1, 2, 59] {
            assert_eq!(repeated.note("full".into(), start + Duration::from_secs(seconds)), None);
        }
        assert_eq!(repeated.note("damaged".into(), start), Some(0), "something else");
        assert_eq!(repeated.note("full".into(), start + REPEATED_EVERY), Some(3));
        assert_eq!(repeated.note("full".into(), start + 2 * REPEATED_EVERY), Some(0));
        for text in 0..2 * TEXTS_MAX {
            repeated.note(text.to_string(), start + 2 * REPEATED_EVERY);
        }
        assert_eq!(repeated.0.len(), TEXTS_MAX, "bounded");
    }

    #[test]
    fn log_levels_have_names_and_priorities() {
        assert_eq!(level(None).ok(), Some(LevelFilter::Info));
        assert_eq!(level(Some("debug")).ok(), Some(LevelFilter::Debug));
        let wrong = level(Some("loud")).expect_err("no level").to_string();
        assert!(wrong.contains("STARFISH_LOG=loud") && wrong.contains("debug"), "{wrong}");
        assert_eq!([Level::Error, Level::Warn, Level::Info, Level::Debug].map(priority), [3, 4, 6, 7]);
    }
}
