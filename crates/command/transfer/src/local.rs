//! Local files: sources of put and targets of get.
//!
//! A new local file appears under its name only when it is whole (crate `replacement`). Until then only its owner has
//! access, because the original may be private.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use command_line::failure::{Failure, Result};
use interruption::UndoGuard;
use layout::Extent;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{Mode, umask};
use node::sparse::{Dense, Hole, SparseFile, SparseRead, SparseWrite};
use replacement::{FilePermissions, LocalPlace, NewFile};

use crate::interrupt;

/// Path that stands for standard input and output.
pub const STANDARD: &str = "-";

/// Destination of data from the file system.
pub enum Destination {
    /// A new file, which may replace an existing one.
    File(PathBuf, NewFile, UndoGuard),
    /// An existing stream: standard output, a device, a pipe.
    Stream,
}

/// Opens `path` to receive a file called `name`. If `path` is a directory, creates the file in it, under the last part
/// of `name`. Only the owner has access to a new file until the caller sets its permissions.
pub fn create(path: &Path, name: &str, replace: bool) -> Result<(Destination, File)> {
    if path.as_os_str() == STANDARD {
        let output = io::stdout().as_fd().try_clone_to_owned();
        return Ok((Destination::Stream, File::from(output.map_err(|error| failed(path, error.into()))?)));
    }
    let path = if path.is_dir() { path.join(last_part(name)) } else { path.to_owned() };
    begin(&path, replace, FilePermissions::Owner)
}

/// Writes a file atomically: after a failure the old file is unchanged.
pub fn write(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let (target, file) = begin(path, true, FilePermissions::Usual)?;
    let mut buffered = BufWriter::new(file);
    let written = write(&mut buffered).and_then(|()| buffered.flush());
    written.map_err(|error| failed(path, error.into()))?;
    target.complete()
}

/// Writes a file like [`write()`], or standard output if `path` is `-`.
pub fn write_or_print(
    path: &Path,
    write_to: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    if path.as_os_str() != STANDARD {
        return write(path, write_to);
    }
    let (_, file) = create(path, STANDARD, false)?;
    let mut buffered = BufWriter::new(file);
    match write_to(&mut buffered).and_then(|()| buffered.flush()) {
        // The reader of the pipe has closed it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::writing("standard output", &error)),
    }
}

/// Fails if [`write()`] would fail, without changing the file.
pub fn check_writable(path: &Path) -> Result<()> {
    replacement::create(path, true, FilePermissions::Usual).map(drop).map_err(|error| failed(path, error))
}

/// Creates the new file for `path`, or opens `path` if it is a stream.
fn begin(path: &Path, replace: bool, permitted: FilePermissions<'_>) -> Result<(Destination, File)> {
    match replacement::create(path, replace, permitted).map_err(|error| failed(path, error))? {
        replacement::Target::Stream(stream) => Ok((Destination::Stream, stream)),
        replacement::Target::File(file, new) => Ok((Destination::begun(path.to_owned(), new)?, file)),
    }
}

/// Creates a file at a place in a directory tree, without following links. Only the owner has access until the caller
/// sets the permissions.
pub fn create_at(place: &LocalPlace, replace: bool) -> Result<(Destination, File)> {
    let path = place.path();
    let created = replacement::create_at(place, replace, FilePermissions::Owner);
    let (file, new) = created.map_err(|error| failed(&path, error))?;
    Ok((Destination::begun(path, new)?, file))
}

impl Destination {
    /// Returns the destination for a new file, which an interruption of the program removes.
    fn begun(path: PathBuf, new: NewFile) -> Result<Destination> {
        let temporary = new.temporary().clone();
        let left = Failure::new(temporary.to_string(), "interrupted, and there was no time to remove it");
        let undo_guard = UndoGuard::begin(left.to_string(), move || temporary.remove());
        interrupt::undo_and_exit()?;
        Ok(Destination::File(path, new, undo_guard))
    }

    /// Returns the file if it is a new one, so that the caller can set its times and permissions.
    pub fn file(&self) -> Option<&File> {
        match self {
            Destination::File(_, new, _) => Some(new.file()),
            Destination::Stream => None,
        }
    }

    /// Sets the permissions of a new file to those of the file that it replaces, or else to the usual ones.
    pub fn give_usual_permissions(&self) -> io::Result<()> {
        let Destination::File(path, new, _) = self else { return Ok(()) };
        let mode = match path.metadata() {
            Ok(replaced) => replaced.permissions().mode() & 0o777,
            Err(_) => 0o666 & !current_umask().bits(),
        };
        new.file().set_permissions(Permissions::from_mode(mode))
    }

    /// Returns the output for the data of `file`: a new file can have holes, a stream cannot.
    pub fn output(&self, file: File) -> io::Result<LocalOutput> {
        Ok(if self.file().is_some() {
            LocalOutput::File(SparseFile::new(file)?)
        } else {
            LocalOutput::Stream(Dense(file))
        })
    }

    /// Renames a complete file to its final name.
    pub fn complete(self) -> Result<()> {
        let Destination::File(path, new, undo_guard) = self else { return Ok(()) };
        new.complete().map_err(|error| failed(&path, error))?;
        undo_guard.keep();
        Ok(())
    }
}

/// Returns the umask of this process. The system can only report the umask by setting another one, so the umask is 077
/// for a moment. A file that another thread creates at this moment is private.
fn current_umask() -> Mode {
    let current = umask(Mode::from_bits_truncate(0o077));
    umask(current);
    current
}

/// Output for data. Only a file that this program has opened gets holes. A stream gets zeros, even if it is a file: the
/// program that opened the file may append, where holes are impossible.
pub enum LocalOutput {
    /// File that this program has opened.
    File(SparseFile),
    /// Stream, in which holes are zeros.
    Stream(Dense<File>),
}

impl LocalOutput {
    fn file(&self) -> &File {
        match self {
            LocalOutput::File(file) => file.file(),
            LocalOutput::Stream(Dense(file)) => file,
        }
    }
}

impl Write for LocalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            LocalOutput::File(file) => file.write(bytes),
            LocalOutput::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl SparseWrite for LocalOutput {
    fn leave_hole(&mut self, bytes: u64) -> io::Result<()> {
        match self {
            LocalOutput::File(file) => file.leave_hole(bytes),
            LocalOutput::Stream(stream) => stream.leave_hole(bytes),
        }
    }
}

/// Returns the failure for a local file that cannot be created.
pub fn failed(path: &Path, error: replacement::Error) -> Failure {
    let failure = Failure::new(path.display().to_string(), &error);
    match error {
        replacement::Error::Exists => exists(path),
        replacement::Error::IsDirectory
        | replacement::Error::NoDirectory
        | replacement::Error::NoParent(_) => failure.of_usage(),
        _ => failure,
    }
}

/// Returns the failure for a name that exists already.
pub fn exists(path: &Path) -> Failure {
    let why = "already exists";
    let error = node::Error::new(node::ErrorKind::Exists, path.display().to_string(), why);
    error.with_remedy("Give --force to replace it, or choose another name").into()
}

/// Opens the source of a put, and returns its size in bytes if known.
pub fn open(path: &Path) -> Result<(File, Option<u64>)> {
    let failed = |error: io::Error| Failure::new(path.display().to_string(), error);
    if path.as_os_str() == STANDARD {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
        if was_closed(&input) {
            let failure = Failure::usage("standard input", "it is closed");
            return Err(failure.remedy("Name a file, or pipe data in: ... | starfish put - NAME."));
        }
        return Ok((input, None));
    }
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_dir() {
        let failure = Failure::usage(path.display().to_string(), "it is a directory");
        return Err(failure.remedy("`starfish put -r` puts directories."));
    }
    Ok((file, found.is_file().then_some(found.len())))
}

/// Returns the maximum number of bytes of data in a file, according to the blocks that its file system has allocated.
/// The rest is holes.
pub fn data_bytes(found: &Metadata) -> u64 {
    found.len().min(found.blocks().saturating_mul(512))
}

/// Local file that is uploaded. The file must not change while it is read, so that the copy has its contents of one
/// moment.
pub struct SteadyFile {
    file: SparseFile,
    /// Length in bytes and modification time when the file was opened; `None` for streams.
    begun: Option<(u64, SystemTime)>,
}

impl SteadyFile {
    /// Records the length and the modification time of the file.
    pub fn new(file: File) -> io::Result<SteadyFile> {
        let begun = length_and_time(&file)?;
        Ok(SteadyFile { file: SparseFile::new(file)?, begun })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        self.file.file()
    }

    /// Fails if the file has changed since it was opened.
    fn check(&self) -> io::Result<()> {
        let now = length_and_time(self.file())?;
        if now == self.begun {
            return Ok(());
        }
        let length = |known: Option<(u64, SystemTime)>| known.map_or(0, |(length, _)| length);
        Err(io::Error::other(format!(
            "it changed while it was read: its size was {} bytes, and is {} now\n  Put it again when no \
             program writes to it. `cat FILE | starfish put - NAME` puts the bytes as they are read.",
            length(self.begun),
            length(now)
        )))
    }
}

impl Read for SteadyFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(bytes)?;
        if read == 0 && !bytes.is_empty() {
            self.check()?;
        }
        Ok(read)
    }
}

impl SparseRead for SteadyFile {
    fn hole(&mut self) -> io::Result<Hole> {
        self.file.hole()
    }

    fn skip_hole(&mut self, bytes: u64) -> io::Result<()> {
        self.file.skip_hole(bytes)
    }
}

fn length_and_time(file: &File) -> io::Result<Option<(u64, SystemTime)>> {
    let found = file.metadata()?;
    if found.is_file() { Ok(Some((found.len(), found.modified()?))) } else { Ok(None) }
}

/// True if standard input was closed when the program started. Rust's runtime then opens /dev/null in its place, for
/// reading and writing. A redirection from /dev/null opens it only for reading.
fn was_closed(input: &File) -> bool {
    let (Ok(found), Ok(null)) = (input.metadata(), std::fs::metadata("/dev/null")) else { return false };
    let is_null = found.file_type().is_char_device() && found.rdev() == null.rdev();
    let flags = fcntl(input, FcntlArg::F_GETFL).map(OFlag::from_bits_truncate);
    is_null && flags.is_ok_and(|flags| flags & OFlag::O_ACCMODE == OFlag::O_RDWR)
}

/// Returns the last part of a local path or of a path in the namespace.
pub fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Formats a range of a file as the offsets of its first and last byte.
pub fn range(extent: Extent) -> String {
    match extent.bytes {
        1 => extent.offset.to_string(),
        _ => format!("{} to {}", extent.offset, extent.end() - 1),
    }
}

/// Reader or writer that optionally hashes the bytes that pass through.
pub struct Hashing<T> {
    inner: T,
    hasher: Option<Box<blake3::Hasher>>,
}

impl<T> Hashing<T> {
    /// Wraps `inner`, and hashes the bytes if `hash` is true.
    pub fn new(inner: T, hash: bool) -> Self {
        Hashing { inner, hasher: hash.then(Box::default) }
    }

    /// Returns the hash of all bytes so far, or `None` without hashing.
    pub fn hash(&self) -> Option<blake3::Hash> {
        self.hasher.as_ref().map(|hasher| hasher.finalize())
    }

    fn take_in(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    /// Hashes a hole as zeros.
    fn take_in_hole(&mut self, bytes: u64) {
        if let Some(hasher) = &mut self.hasher {
            let hashed = hasher.update_reader(io::repeat(0).take(bytes));
            hashed.map(drop).expect("zeros can be read");
        }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.take_in(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.take_in(&bytes[..read]);
        Ok(read)
    }
}

impl<R: SparseRead> SparseRead for Hashing<R> {
    fn hole(&mut self) -> io::Result<Hole> {
        self.inner.hole()
    }

    fn skip_hole(&mut self, bytes: u64) -> io::Result<()> {
        self.inner.skip_hole(bytes)?;
        self.take_in_hole(bytes);
        Ok(())
    }
}

impl<W: SparseWrite> SparseWrite for Hashing<W> {
    fn leave_hole(&mut self, bytes: u64) -> io::Result<()> {
        self.inner.leave_hole(bytes)?;
        self.take_in_hole(bytes);
        Ok(())
    }
}

/// Prints lines on standard output. A closed pipe is no error.
pub fn print(lines: impl IntoIterator<Item = String>) -> Result<()> {
    let mut output = io::stdout().lock();
    let written =
        lines.into_iter().try_for_each(|line| writeln!(output, "{line}")).and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::new("standard output", error)),
    }
}
/// Maximum size of a log in bytes (some ten thousand lines). A program that starts with a larger log rotates the log.
/// One old log is kept.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Opens a log for appending.
pub fn open_log(path: &Path) -> Result<File> {
    let failed = |error: io::Error| Failure::new(path.display().to_string(), error);
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    if std::fs::metadata(path).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
        std::fs::rename(path, path.with_extension("old")).map_err(failed)?;
    }
    File::options().create(true).read(true).append(true).open(path).map_err(failed)
}

/// Returns the contents of a text file from byte `begin` on.
pub fn read_from(path: &Path, begin: u64) -> io::Result<String> {
    let (mut file, mut text) = (File::open(path)?, String::new());
    file.seek(SeekFrom::Start(begin))?;
    file.read_to_string(&mut text)?;
    Ok(text)
}
