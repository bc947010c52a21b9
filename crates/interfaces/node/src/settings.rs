//! Options of a session and of an open file.

use std::env;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use fs::{OpenFor, Prefetch};
use real::{Driver, Limits, Reporter, SocketBuffers};

use crate::agents::Agent;
use crate::error::{Error, ErrorKind, Result};
use crate::size::Size;

/// The environment variable that chooses how nodes talk to the operating system.
const DRIVER: &str = "STARFISH_DRIVER";

/// The environment variable with the seconds to wait for an agent that does not answer.
const SILENCE: &str = "STARFISH_SILENCE";

/// The environment variable that names a trace file, for all nodes of programs.
pub const TRACE_VARIABLE: &str = "STARFISH_TRACE";

/// The environment variables of a write cache.
const WRITE_CACHE: &str = "STARFISH_WRITE_CACHE";
const FLUSH_SECONDS: &str = "STARFISH_FLUSH_SECONDS";
const JOB: &str = "STARFISH_JOB";

/// What [`flush_seconds`] takes.
const FLUSH_SECONDS_EXPECTED: &str = "seconds, from 0.001 on, or 0 for no limit";

/// Default size of the blocks of new files, in all commands: see `docs/adr/0030-one-middle.md`.
pub const BLOCK: &str = "256KiB";

/// Settings of a session. [`new`](Self::new) gives the usual ones; the fields may be changed after that.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The agents that make up the file system; at least one.
    pub agents: Vec<Agent>,
    /// Memory for pages of all open files, in bytes.
    pub cache_bytes: u64,
    /// Which pages are prefetched.
    pub prefetch: Prefetch,
    /// Whether a write returns when the page cache has it. Otherwise it returns when the agents have it.
    pub write_behind: bool,
    /// The write cache through which files are written, if there is one; the page cache is for reading then.
    pub write_cache: Option<CacheWrites>,
    /// Block size of new files in bytes, which is also that of their pages.
    pub block_bytes: u64,
    /// Number of disks to stripe new files over; `None` for all.
    pub disks: Option<NonZeroU32>,
    /// How the node thread talks to the operating system.
    pub driver: Driver,
    /// The file of the cluster key, if it is not the one that [`key::find`](crate::key::find) finds by itself.
    pub key: Option<PathBuf>,
    /// How long an agent is waited for: while it is connected to, while it says nothing though it is asked, and while
    /// it is gone, until it is there again.
    pub silence: Duration,
    /// The buffers of the sockets on this side.
    pub sockets: SocketBuffers,
    /// The trace file to which what the node thread does is added when it ends, if there is to be one.
    pub trace: Option<PathBuf>,
    /// Takes the reports of which no caller is told.
    pub reporter: Reporter,
}

impl Settings {
    /// The blocks and pages of the thesis, for files that programs make through this session.
    pub const BLOCK_BYTES: u64 = 64 << 10;

    /// The cache of the thesis.
    pub const CACHE_BYTES: u64 = 256 << 20;

    /// The usual settings: 256 MiB of cache, an adaptive window, writing behind, blocks of 64 KiB, all disks.
    pub fn new(agents: Vec<Agent>) -> Self {
        Settings {
            agents,
            cache_bytes: Self::CACHE_BYTES,
            prefetch: Prefetch::Adaptive,
            write_behind: true,
            write_cache: None,
            block_bytes: Self::BLOCK_BYTES,
            disks: None,
            driver: Driver::default(),
            key: None,
            silence: Limits::default().silence,
            sockets: SocketBuffers::default(),
            trace: None,
            reporter: Reporter::default(),
        }
    }

    /// The usual settings, overridden by the environment: STARFISH_DRIVER is one of [`Driver::NAMES`],
    /// STARFISH_SILENCE a number of seconds; STARFISH_WRITE_CACHE the size of a write cache, and with that
    /// STARFISH_FLUSH_SECONDS and STARFISH_JOB what [`CacheWrites`] has of these names; STARFISH_TRACE a trace file.
    pub fn of_environment(agents: Vec<Agent>) -> Result<Self> {
        let mut settings = Self::new(agents);
        if let Ok(name) = env::var(DRIVER) {
            let wrong = |why: String| Error::new(ErrorKind::Invalid, format!("{DRIVER}={name}"), why);
            settings.driver = name.parse().map_err(wrong)?;
        }
        if let Ok(text) = env::var(SILENCE) {
            let wrong = || {
                Error::new(ErrorKind::Invalid, format!("{SILENCE}={text}"), "expected seconds, from 0.1 on")
            };
            settings.silence = seconds(&text).ok_or_else(wrong)?;
        }
        settings.write_cache = CacheWrites::of_environment()?;
        settings.trace = env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(settings)
    }
}

/// A session's part of a write cache (ENWRICH): what is written stays in the memory of the program that wrote it, and
/// all sessions that name the same job flush together: the agents fetch the data in the order of their disks. See the
/// manual's page on write caches for what is durable when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheWrites {
    /// Memory for what has been written and not flushed, in bytes.
    pub bytes: u64,
    /// After what time something written is flushed at the latest; `None` to wait until the cache is full or a flush is
    /// asked for.
    pub flush_after: Option<Duration>,
    /// The job whose members, on any computers, flush together; `None` for this session alone.
    pub job: Option<String>,
}

impl CacheWrites {
    /// A cache of the usual 16 MiB, which is what methods are simulated with, too.
    pub fn usual() -> Self {
        CacheWrites::of(fs::WriteCacheSettings::agent().bytes)
    }

    /// A cache of this size, for this session alone, flushed after the usual time of 30 seconds.
    pub fn of(bytes: u64) -> Self {
        let flush_after = fs::WriteCacheSettings::agent().flush_after;
        CacheWrites {
            bytes,
            flush_after: flush_after.map(|time| Duration::from_nanos(time.as_nanos())),
            job: None,
        }
    }

    fn of_environment() -> Result<Option<Self>> {
        let set = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
        let wrong = |name: &str, text: &str, expected: &str| {
            Error::new(ErrorKind::Invalid, format!("{name}={text}"), format!("expected {expected}"))
        };
        let Some(text) = set(WRITE_CACHE) else { return Ok(None) };
        let Size(bytes) = text.parse().map_err(|_| wrong(WRITE_CACHE, &text, "a size, as in 16MiB"))?;
        let mut cache = CacheWrites::of(bytes);
        if let Some(text) = set(FLUSH_SECONDS) {
            let seconds = text.parse().ok().and_then(flush_seconds);
            cache.flush_after = seconds.ok_or_else(|| wrong(FLUSH_SECONDS, &text, FLUSH_SECONDS_EXPECTED))?;
        }
        cache.job = set(JOB);
        Ok(Some(cache))
    }
}

/// The time limit that a number of seconds stands for: 0 for none.
pub fn flush_seconds(seconds: f64) -> Option<Option<Duration>> {
    match Duration::try_from_secs_f64(seconds).ok()? {
        Duration::ZERO => Some(None),
        time => Some(Some(time)).filter(|_| time >= Duration::from_millis(1)),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration >= Duration::from_millis(100))
}

/// Options for opening a file, as [`std::fs::OpenOptions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
    pub(crate) truncate: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) block_bytes: Option<u64>,
    pub(crate) disks: Option<NonZeroU32>,
    pub(crate) disk: Option<u32>,
    pub(crate) unfinished: bool,
}

impl OpenOptions {
    /// Options that ask for nothing yet.
    pub const fn new() -> Self {
        OpenOptions {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            block_bytes: None,
            disks: None,
            disk: None,
            unfinished: false,
        }
    }

    /// The file is read.
    pub const fn read(self, read: bool) -> Self {
        OpenOptions { read, ..self }
    }

    /// The file is written.
    pub const fn write(self, write: bool) -> Self {
        OpenOptions { write, ..self }
    }

    /// The file is written, and always at its end. What other sessions appended is not overwritten if it was written
    /// out before, and this one's since; two that append at the same time overwrite each other.
    pub const fn append(self, append: bool) -> Self {
        OpenOptions { append, ..self }
    }

    /// The file is emptied. It has to be written.
    pub const fn truncate(self, truncate: bool) -> Self {
        OpenOptions { truncate, ..self }
    }

    /// The file is created if it does not exist. It must be open for writing.
    pub const fn create(self, create: bool) -> Self {
        OpenOptions { create, ..self }
    }

    /// The file is created; it is an error if it exists. It must be open for writing.
    pub const fn create_new(self, create_new: bool) -> Self {
        OpenOptions { create_new, ..self }
    }

    /// Block size in bytes, if the file is created. Without this, that of the session.
    pub const fn block_bytes(self, block_bytes: u64) -> Self {
        OpenOptions { block_bytes: Some(block_bytes), ..self }
    }

    /// How many disks the file is striped over, if it is created. Without this, as the session has it.
    pub const fn disks(self, disks: NonZeroU32) -> Self {
        OpenOptions { disks: Some(disks), ..self }
    }

    /// The file lies on this disk alone, if it is created: disk *i* is that of stripe *i* of a file over all disks.
    pub const fn on_disk(self, disk: u32) -> Self {
        OpenOptions { disk: Some(disk), ..self }
    }

    /// If the file is created and not placed on one disk, it is unfinished until it is renamed. If it never is,
    /// `starfish rm --unfinished` removes it, provided that its name is of the kind that commands give meanwhile.
    pub const fn unfinished(self, unfinished: bool) -> Self {
        OpenOptions { unfinished, ..self }
    }

    /// Whether the file can be written, at its end or anywhere.
    pub fn writes(self) -> bool {
        self.write || self.append
    }

    /// The use that other clients learn of.
    pub(crate) fn used_for(self) -> OpenFor {
        if self.writes() { OpenFor::Writing } else { OpenFor::Reading }
    }

    /// Whether the file can be read.
    pub fn reads(self) -> bool {
        self.read
    }

    /// Whether the file is written at its end only.
    pub fn appends(self) -> bool {
        self.append
    }

    /// Refuses what makes no sense.
    pub(crate) fn check(self, name: &str) -> Result<()> {
        let wrong = |why: &str| Err(Error::new(ErrorKind::Invalid, name, why));
        if !self.read && !self.writes() {
            return wrong("opened neither for reading nor for writing");
        }
        if !self.writes() && (self.truncate || self.create || self.create_new) {
            return wrong("opened for reading only, so it can be neither made nor emptied");
        }
        if self.append && self.truncate {
            return wrong("opened for appending, so it cannot be emptied");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let new = OpenOptions::new();
        for wrong in [
            new,
            new.create(true),
            new.read(true).create(true),
            new.read(true).truncate(true),
            new.read(true).create_new(true),
            new.append(true).truncate(true),
        ] {
            assert_eq!(wrong.check("x").map_err(|error| error.kind()), Err(ErrorKind::Invalid), "{wrong:?}");
        }
        for right in
            [new.read(true), new.write(true), new.append(true).create(true), new.append(true).read(true)]
        {
            assert!(right.check("x").is_ok(), "{right:?}");
        }
    }
}
