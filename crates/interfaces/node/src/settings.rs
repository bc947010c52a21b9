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

/// Environment variable that chooses the interface to the operating system (the driver).
const DRIVER: &str = "STARFISH_DRIVER";

/// Environment variable with the seconds to wait for an agent that does not answer.
const SILENCE: &str = "STARFISH_SILENCE";

/// Environment variable that names a trace file, for all nodes of programs.
pub const TRACE_VARIABLE: &str = "STARFISH_TRACE";

/// Environment variables of a write cache.
const WRITE_CACHE: &str = "STARFISH_WRITE_CACHE";
const FLUSH_SECONDS: &str = "STARFISH_FLUSH_SECONDS";
const JOB: &str = "STARFISH_JOB";

/// Description of the values that [`flush_seconds`] accepts.
const FLUSH_SECONDS_EXPECTED: &str = "seconds: at least 0.001, or 0 for no limit";

/// Default size of the blocks of new files, in all commands: see `docs/adr/0030-sessions-and-handles.md`.
pub const BLOCK: &str = "256KiB";

/// Settings of a session. [`new`](Self::new) returns the defaults; the fields may be changed after that.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The agents that make up the file system; at least one.
    pub agents: Vec<Agent>,
    /// Memory for pages of all open files, in bytes.
    pub cache_bytes: u64,
    /// Prefetch policy.
    pub prefetch: Prefetch,
    /// True if a write returns when the page cache has the data, false if it returns when the agents have them.
    pub write_behind: bool,
    /// Write cache for files, if any. The page cache then only serves reads.
    pub write_cache: Option<CacheWrites>,
    /// Block size of new files in bytes, which is also the size of their pages.
    pub block_bytes: u64,
    /// Number of disks to stripe new files over; `None` for all.
    pub disks: Option<NonZeroU32>,
    /// Interface of the node thread to the operating system.
    pub driver: Driver,
    /// File of the cluster key; `None` for the result of [`key::find`](crate::key::find).
    pub key: Option<PathBuf>,
    /// Timeout for an agent: for its connection, for its answers, and for its return after a disconnection.
    pub silence: Duration,
    /// Buffer sizes of the sockets on this side.
    pub sockets: SocketBuffers,
    /// Trace file to which the node thread appends its records when it ends, if any.
    pub trace: Option<PathBuf>,
    /// Receiver of reports that are returned to no caller.
    pub reporter: Reporter,
}

impl Settings {
    /// Size of blocks and pages in bytes, as in the thesis, of files that programs create through a session.
    pub const BLOCK_BYTES: u64 = 64 << 10;

    /// Size of the page cache in bytes, as in the thesis.
    pub const CACHE_BYTES: u64 = 256 << 20;

    /// Returns the default settings: 256 MiB of cache, an adaptive window, writing behind, blocks of 64 KiB, all disks.
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

    /// Returns the default settings, overridden by the environment. STARFISH_DRIVER is one of [`Driver::NAMES`],
    /// STARFISH_SILENCE a number of seconds, and STARFISH_TRACE a trace file. STARFISH_WRITE_CACHE is the size of a
    /// write cache; then STARFISH_FLUSH_SECONDS and STARFISH_JOB set the fields `flush_after` and `job` of
    /// [`CacheWrites`].
    pub fn of_environment(agents: Vec<Agent>) -> Result<Self> {
        let mut settings = Self::new(agents);
        if let Ok(name) = env::var(DRIVER) {
            let wrong = |why: String| Error::new(ErrorKind::Invalid, format!("{DRIVER}={name}"), why);
            settings.driver = name.parse().map_err(wrong)?;
        }
        if let Ok(text) = env::var(SILENCE) {
            let wrong = || {
                Error::new(ErrorKind::Invalid, format!("{SILENCE}={text}"), "expected seconds: at least 0.1")
            };
            settings.silence = seconds(&text).ok_or_else(wrong)?;
        }
        settings.write_cache = CacheWrites::of_environment()?;
        settings.trace = env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(settings)
    }
}

/// Write cache of a session (ENWRICH). Written data stay in the memory of the program that wrote them until they are
/// flushed. All sessions that name the same job flush together: the agents fetch the data in the order of their disks.
/// The manual's page on write caches explains when data are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheWrites {
    /// Memory for unflushed writes, in bytes.
    pub bytes: u64,
    /// Limit of the time before written data are flushed; `None` to wait until the cache is full or a flush is
    /// requested.
    pub flush_after: Option<Duration>,
    /// Job whose members, on any computers, flush together; `None` for this session alone.
    pub job: Option<String>,
}

impl CacheWrites {
    /// Returns a cache of the default 16 MiB, which simulations use, too.
    pub fn usual() -> Self {
        CacheWrites::of(fs::WriteCacheSettings::agent().bytes)
    }

    /// Returns a cache of this size, for this session alone, flushed after the default time of 30 seconds.
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

/// Returns the time limit for a number of seconds: `Some(None)`, no limit, for 0; `None` if the number is invalid.
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
    /// Returns options that request nothing yet.
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

    /// Sets read access.
    pub const fn read(self, read: bool) -> Self {
        OpenOptions { read, ..self }
    }

    /// Sets write access.
    pub const fn write(self, write: bool) -> Self {
        OpenOptions { write, ..self }
    }

    /// Sets append access: every write goes to the end of the file. Concurrent appends never overwrite each other,
    /// except through write caches. A session with a write cache appends after another session's data only if the other
    /// session has sent them to the agents, and this session has afterwards sent its own data.
    pub const fn append(self, append: bool) -> Self {
        OpenOptions { append, ..self }
    }

    /// Sets truncation of the file. It must be open for writing.
    pub const fn truncate(self, truncate: bool) -> Self {
        OpenOptions { truncate, ..self }
    }

    /// Creates the file if it does not exist. It must be open for writing.
    pub const fn create(self, create: bool) -> Self {
        OpenOptions { create, ..self }
    }

    /// Creates the file, and fails if it exists. It must be open for writing.
    pub const fn create_new(self, create_new: bool) -> Self {
        OpenOptions { create_new, ..self }
    }

    /// Sets the block size in bytes of a created file. Default: that of the session.
    pub const fn block_bytes(self, block_bytes: u64) -> Self {
        OpenOptions { block_bytes: Some(block_bytes), ..self }
    }

    /// Sets the number of disks of a created file. Default: that of the session.
    pub const fn disks(self, disks: NonZeroU32) -> Self {
        OpenOptions { disks: Some(disks), ..self }
    }

    /// Places a created file on this disk alone. Disk *i* is the disk that has stripe *i* of a file over all disks.
    pub const fn on_disk(self, disk: u32) -> Self {
        OpenOptions { disk: Some(disk), ..self }
    }

    /// Marks a created file as unfinished until it is renamed, unless it is placed on one disk. If it never is renamed,
    /// `starfish rm --unfinished` removes it, provided that its name is a [temporary one](crate::hidden_name).
    pub const fn unfinished(self, unfinished: bool) -> Self {
        OpenOptions { unfinished, ..self }
    }

    /// True if the file can be written, at its end or anywhere.
    pub fn writes(self) -> bool {
        self.write || self.append
    }

    /// Returns the kind of use that is reported to other clients.
    pub(crate) fn used_for(self) -> OpenFor {
        if self.writes() { OpenFor::Writing } else { OpenFor::Reading }
    }

    /// True if the file can be read.
    pub fn reads(self) -> bool {
        self.read
    }

    /// Returns true if all writes append to the file.
    pub fn appends(self) -> bool {
        self.append
    }

    /// Fails for inconsistent options.
    pub(crate) fn check(self, name: &str) -> Result<()> {
        let wrong = |why: &str| Err(Error::new(ErrorKind::Invalid, name, why));
        if !self.read && !self.writes() {
            return wrong("opened neither for reading nor for writing");
        }
        if !self.writes() && (self.truncate || self.create || self.create_new) {
            return wrong("opened read-only, so it can be neither created nor truncated");
        }
        if self.append && self.truncate {
            return wrong("opened for appending, so it cannot be truncated");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_open_options_are_rejected() {
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
