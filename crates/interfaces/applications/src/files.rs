//! Opens ordinary and striped files, and defines the options for striped ones.

use std::env;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, FromArgMatches};
use interruption::UndoGuard;
use namespace::{Location, RenameMode, TreeOperation};
use node::agents;
use node::whole_file::CopyError;
use pdiol::options::Options;
use pdiol::{Advice, OpenOptions, Prefetch, Session, Settings};
use replacement::{FilePermissions, NewFile};

use crate::failure::{Failure, Result};
use crate::name::{FileName, own};
use crate::placed_sort::PlacedSort;
use crate::store::{self, Storage};
use node::{Size, Tree};

/// The end of the `--help` text: forms of names.
pub(crate) const NAMES: &str = "Names: pfs:NAME is the striped file NAME, and - is standard input or output. \
                                Any other name is a local file; write ./pfs:x for a local file called pfs:x.";

/// Options for striped files, the same in all programs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Striped files")]
pub struct FilesArgs {
    /// Agents that store striped files, as HOST:PORT, separated by commas [default: those of STARFISH_AGENTS,
    /// ~/PDIOLconf or ~/.config/starfish/config.toml, or of `starfish agents up`].
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    agents: Vec<String>,

    /// File of the cluster key [default: STARFISH_KEY_FILE or ~/.config/starfish/key].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Block size of new files, which is also their page size.
    #[arg(long, value_name = "SIZE", default_value = node::BLOCK)]
    block: Size,

    /// Number of disks to stripe new files over [default: PDIOL_DISKNUMBER, or all].
    #[arg(long, value_name = "N")]
    disks: Option<NonZeroU32>,

    /// Number of pages to prefetch, or `adaptive` to choose it by use [default: PDIOL_WINDOW_SIZE, or adaptive].
    #[arg(long, value_name = "PAGES")]
    window: Option<Prefetch>,

    /// Memory for pages of striped files [default: PDIOL_CACHE, or 256 MiB].
    #[arg(long, value_name = "SIZE")]
    cache: Option<Size>,

    /// Write each page to the agents before the program continues.
    #[arg(long)]
    no_write_behind: bool,

    /// Add the program's operations on striped files to this trace file when it ends [default: STARFISH_TRACE, if set].
    #[arg(long, value_name = "FILE", help_heading = None)]
    trace: Option<PathBuf>,

    /// Print the elapsed, user, system and waiting time on standard error, as CSV.
    #[arg(long, help_heading = None)]
    pub(crate) time: bool,

    /// Options of PDIOL, which the options above override.
    #[arg(skip)]
    pub(crate) pdiol: Options,
}

impl Default for FilesArgs {
    /// Returns the defaults, as for an empty command line.
    fn default() -> Self {
        let matches = FilesArgs::augment_args(clap::Command::new("")).get_matches_from([""]);
        FilesArgs::from_arg_matches(&matches).expect("all options are optional")
    }
}

/// Opens ordinary and striped files. The first striped file connects the program to the agents.
pub struct Files {
    arguments: FilesArgs,
    place: Place,
    placed: Option<PlacedSort>,
    /// Number of striped temporary files made so far.
    temporaries: AtomicUsize,
    /// Metadata of a file: new ordinary files get its permissions.
    like: Option<Metadata>,
    session: Mutex<Option<Session>>,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Files {
    /// Returns an opener with these options.
    pub fn new(arguments: &FilesArgs) -> Files {
        Files {
            arguments: arguments.clone(),
            place: Place::usual(),
            placed: None,
            temporaries: AtomicUsize::new(0),
            like: None,
            session: Mutex::default(),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        }
    }

    /// Creates temporary files in the place `name`: a directory, or `pfs:`.
    pub fn with_temporary_files_in(self, name: &FileName) -> Files {
        Files { place: Place::named(name), ..self }
    }

    /// Places striped temporary files and outputs on the disks that the policy of `sort` selects. Fails if the agents
    /// do not have these disks, or if temporary files are not striped.
    pub(crate) fn with_sort_placed(self, sort: PlacedSort) -> Result<Files> {
        if !matches!(self.place, Place::Striped) {
            let why =
                "a placement requires striped temporary files\n  Place them on the agents: --temporary pfs:";
            return Err(Failure::new(format!("--placement {}", sort.policy.number()), why));
        }
        let disks = self.session()?.disks().map_err(|error| Failure::new("cannot count the disks", error))?;
        sort.check(disks)?;
        Ok(Files { placed: Some(sort), ..self })
    }

    /// Adds the disk of the next run to `options`, if a policy selects it.
    fn next_run(&self, session: &Session, options: OpenOptions) -> node::Result<OpenOptions> {
        let run = self.temporaries.fetch_add(1, Ordering::Relaxed);
        match self.placed {
            Some(sort) => Ok(options.on_disk(sort.disk_of_run(run, session.disks()?))),
            None => Ok(options),
        }
    }

    /// Gives new ordinary files the permissions of the file `name`, if `name` is an ordinary file.
    pub(crate) fn with_permissions_of(self, name: &FileName) -> Files {
        let FileName::Local(path) = name else { return self };
        Files { like: path.metadata().ok().filter(Metadata::is_file), ..self }
    }

    /// Returns the bytes read from inputs and written to outputs so far, without temporary files.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_read.load(Ordering::Relaxed), self.bytes_written.load(Ordering::Relaxed))
    }

    fn session(&self) -> Result<Session> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(session.clone());
        }
        let started = self.settings().and_then(Session::start);
        let started = started.map_err(|error| Failure::new("cannot connect to the agents", error))?;
        *session = Some(started.clone());
        Ok(started)
    }

    fn settings(&self) -> node::Result<Settings> {
        let arguments = &self.arguments;
        let agents = agents::find_among(&arguments.agents, None)?;
        let (mut settings, _) = arguments.pdiol.begin(agents)?;
        settings.key = arguments.key.clone().or(settings.key);
        settings.trace = arguments.trace.clone().or(settings.trace);
        settings.cache_bytes = arguments.cache.map_or(settings.cache_bytes, |Size(bytes)| bytes);
        settings.prefetch = arguments.window.unwrap_or(settings.prefetch);
        settings.block_bytes = arguments.block.0;
        settings.disks = arguments.disks.or(settings.disks);
        settings.write_behind &= !arguments.no_write_behind;
        Ok(settings)
    }
}

/// Copies of whole files between this host and the agents, bypassing the page cache.
impl Files {
    /// Copies an ordinary file to the striped file `name`. A replaced file stays until the new one is complete.
    pub(crate) fn put(&self, input: &FileName, name: &str, replace: bool) -> Result<()> {
        let Source::Local(local) = self.source(input)? else {
            return Err(not_ordinary(input));
        };
        let (session, striped) = (self.session()?, FileName::Striped(name.to_owned()));
        let hidden = self.hidden(&session, name, replace).map_err(|error| not_made(&striped, error))?;
        let begun = make_striped(&session, &hidden, || session.begin_upload(&hidden, local, |_| {}));
        let (copying, undo_guard) = begun.map_err(|error| not_made(&striped, error.about(name)))?;
        let copied = copying.wait().map_err(CopyError::from).flatten();
        let (_, bytes) = copied.map_err(|error| not_copied(&striped, input, error))?;
        undo_guard.keep();
        give_name(&session.tree(), &hidden, name, replace)?;
        self.count(bytes);
        session.tree().flush().wait().map_err(|error| Failure::new(&striped, error))
    }

    /// Copies the striped file `name` to an ordinary file.
    pub(crate) fn get(&self, name: &str, output: &FileName, replace: bool) -> Result<()> {
        let (session, striped) = (self.session()?, FileName::Striped(name.to_owned()));
        let target = self.target(output, replace)?;
        let (Target::Stream(file) | Target::Local { file, .. }) = &target else {
            return Err(not_ordinary(output));
        };
        let local = file.try_clone().map_err(|error| Failure::io(output, &error))?;
        let moved = Arc::new(AtomicU64::new(0));
        let counted = moved.clone();
        let copied = session.download(name, local, move |bytes| {
            counted.fetch_add(bytes, Ordering::Relaxed);
        });
        copied.map_err(|error| not_copied(&striped, output, error))?;
        self.count(moved.load(Ordering::Relaxed));
        target.finish(output)
    }

    /// Counts bytes read and written.
    fn count(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn not_ordinary(name: &FileName) -> Failure {
    Failure::new(
        name,
        "it is a striped file\n  To copy a striped file to a striped one: mycat pfs:ONE -o pfs:OTHER",
    )
}

fn not_copied(striped: &FileName, local: &FileName, error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => Failure::new(striped, error),
        CopyError::Local(error) => Failure::io(local, &error),
    }
}

impl Files {
    /// Opens the input that a name denotes.
    fn source(&self, name: &FileName) -> Result<Source> {
        let failed = |error: io::Error| Failure::io(name, &error);
        Ok(match name {
            FileName::Standard => Source::Local(own(io::stdin()).map_err(failed)?),
            FileName::Local(path) => {
                let file = File::open(path).map_err(failed)?;
                if file.metadata().map_err(failed)?.is_dir() {
                    return Err(Failure::new(name, "it is a directory"));
                }
                Source::Local(file)
            }
            FileName::Striped(striped) => {
                let opened = self.session()?.open(striped, OpenOptions::new().read(true));
                let mut file = opened.map_err(|error| Failure::new(name, error))?;
                file.hint(Advice::Sequential).map_err(|error| Failure::new(name, error))?;
                Source::Striped(file.into())
            }
        })
    }

    /// Opens the output that a name denotes.
    fn target(&self, name: &FileName, replace: bool) -> Result<Target> {
        Ok(match name {
            FileName::Standard => {
                let output = own(io::stdout()).map_err(|error| Failure::io("standard output", &error))?;
                Target::Stream(output)
            }
            FileName::Local(path) => create_local(path, replace, self.like.as_ref())?,
            FileName::Striped(striped) => {
                let session = self.session()?;
                // Errors must contain the requested name: the user does not know the hidden name.
                let failed = |error: node::Error| not_made(name, error.about(striped));
                let hidden = self.hidden(&session, striped, replace).map_err(failed)?;
                let (file, undo_guard) = self.create_striped(&session, &hidden).map_err(failed)?;
                Target::Striped { undo_guard, file, tree: session.tree(), name: striped.clone(), replace }
            }
        })
    }
}

impl Files {
    /// Returns a hidden name, which the file has until it is complete.
    ///
    /// # Errors
    /// Fails if the name denotes a directory, or a file that must not be replaced.
    fn hidden(&self, session: &Session, name: &str, replace: bool) -> node::Result<String> {
        let look = TreeOperation::Look { at: Location::of_path(name.as_bytes()), follow: false };
        match session.tree().inode(name, look).wait() {
            Ok(there) if there.is_directory() => {
                return Err(node::Error::new(node::ErrorKind::Invalid, name, "it is a directory"));
            }
            Ok(_) if !replace => return Err(node::Error::new(node::ErrorKind::Exists, name, "it exists")),
            Err(error) if error.kind() != node::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let hidden = node::hidden_name(name.as_bytes())?;
        Ok(String::from_utf8(hidden).expect("as the name"))
    }

    fn create_striped(&self, session: &Session, name: &str) -> node::Result<(pdiol::File, UndoGuard)> {
        let options = OpenOptions::new().write(true).create_new(true).unfinished(true);
        let options = self.placed.map_or(options, |sort| options.on_disk(sort.disk_of_output()));
        make_striped(session, name, || session.open(name, options))
    }
}

impl Storage for Files {
    fn open(&self, name: &FileName) -> Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(Input { source: self.source(name)?, files: self }))
    }

    /// Creates an output. A replaced file stays until the new one is complete.
    fn create(&self, name: &FileName, replace: bool) -> Result<Box<dyn store::Output + '_>> {
        Ok(Box::new(Output { name: name.clone(), target: self.target(name, replace)?, files: self }))
    }

    fn temporary(&self) -> Result<Box<dyn store::Temporary>> {
        match &self.place {
            Place::Directory(directory) => {
                let file = tempfile::tempfile_in(directory);
                let file = file.map_err(|error| Failure::io(directory.display(), &error))?;
                Ok(Box::new(Temporary::Local(file)))
            }
            Place::Striped => {
                let session = self.session()?;
                let name = new_name("temporary")?;
                let failed = |error: node::Error| Failure::new(&name, error);
                let options = OpenOptions::new().read(true).write(true).create_new(true);
                let options = self.next_run(&session, options).map_err(failed)?;
                let made = make_striped(&session, &name, || session.open(&name, options));
                let (mut file, undo_guard) = made.map_err(failed)?;
                file.hint(Advice::Temporary).map_err(failed)?;
                Ok(Box::new(Temporary::Striped { _half_done: undo_guard, file: Box::new(file) }))
            }
        }
    }
}

/// Returns a unique name.
fn new_name(beginning: &str) -> Result<String> {
    let random = node::random().map_err(|error| Failure::new(beginning, error))?;
    Ok(format!("{beginning}-{random:016x}"))
}

fn create_local(path: &Path, replace: bool, like: Option<&Metadata>) -> Result<Target> {
    let failed = |error| Failure::new(path.display(), error);
    let permitted = like.map_or(FilePermissions::Usual, FilePermissions::Like);
    match replacement::create(path, replace, permitted).map_err(failed)? {
        replacement::Target::Stream(stream) => Ok(Target::Stream(stream)),
        replacement::Target::File(file, new) => {
            // An interruption between the creation and the next line can only leave a hidden, empty file.
            let temporary = new.temporary().clone();
            let undo_guard = UndoGuard::begin(temporary.to_string(), move || temporary.remove());
            Ok(Target::Local { file, new, undo_guard })
        }
    }
}

/// Creates a striped file that is removed unless it is completed.
fn make_striped<T, E>(
    session: &Session,
    name: &str,
    make: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<(T, UndoGuard), E> {
    let (session, owned) = (session.clone(), name.to_owned());
    // Ignore errors of the removal: nothing can be done, and the failure that caused it is reported.
    UndoGuard::make(format!("pfs:{name}"), move || drop(session.unlink(&owned)), make)
}

/// Renames a complete file to its final name.
fn give_name(tree: &Tree, whole: &str, name: &str, replace: bool) -> Result<()> {
    let mode = if replace { RenameMode::Replace } else { RenameMode::Keep };
    tree.rename(whole, name, mode).map_err(|error| not_named(whole, name, &error))
}

/// Returns the failure for a file `whole` that could not be renamed to `name`. The file stays.
fn not_named(whole: &str, name: &str, error: &node::Error) -> Failure {
    let stays = format!("The new contents are in pfs:{whole}.");
    let remedy = format!("Copy them: mycat pfs:{whole} -o pfs:{name} --force");
    Failure::new(format!("pfs:{name}"), format!("{error}\n  {stays} {remedy}"))
}

/// Returns the failure for a striped file that could not be created.
fn not_made(name: &FileName, error: node::Error) -> Failure {
    match error.kind() {
        node::ErrorKind::Exists => Failure::new(name, replacement::Error::Exists),
        node::ErrorKind::NotFound => {
            Failure::new(name, "no such directory\n  `starfish mkdir -p` creates it.")
        }
        _ => Failure::new(name, error),
    }
}

/// An input file.
struct Input<'a> {
    source: Source,
    files: &'a Files,
}

enum Source {
    Local(File),
    Striped(Box<pdiol::File>),
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::Local(file) => file.read(into)?,
            Source::Striped(file) => file.read(into)?,
        };
        self.files.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// An output file.
struct Output<'a> {
    name: FileName,
    target: Target,
    files: &'a Files,
}

enum Target {
    /// Standard output, a device, or a pipe.
    Stream(File),
    Local {
        file: File,
        new: NewFile,
        undo_guard: UndoGuard,
    },
    /// A file that gets its final name when it is complete.
    Striped {
        undo_guard: UndoGuard,
        file: pdiol::File,
        tree: Tree,
        name: String,
        replace: bool,
    },
}

impl store::Output for Output<'_> {
    fn finish(self: Box<Self>) -> Result<()> {
        self.target.finish(&self.name)
    }
}

impl Target {
    /// Completes the file under this name.
    fn finish(self, name: &FileName) -> Result<()> {
        let failed = |error: node::Error| Failure::new(name, error);
        match self {
            Target::Stream(_) => Ok(()),
            Target::Local { new, undo_guard, .. } => {
                new.complete().map_err(|error| Failure::new(name, error))?;
                undo_guard.keep();
                Ok(())
            }
            Target::Striped { undo_guard, file, tree, name, replace } => {
                let whole = file.name().to_owned();
                file.close().map_err(failed)?;
                undo_guard.keep();
                give_name(&tree, &whole, &name, replace)
            }
        }
    }
}

impl Write for Output<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let written = match &mut self.target {
            Target::Stream(file) | Target::Local { file, .. } => file.write(from)?,
            Target::Striped { file, .. } => file.write(from)?,
        };
        self.files.bytes_written.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    /// Does nothing: the output has no buffer, and [`finish`](store::Output::finish) completes the file.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The place of temporary files.
enum Place {
    /// This directory.
    Directory(PathBuf),
    /// Striped files.
    Striped,
}

impl Place {
    /// Returns the place of this name: a directory, or `pfs:`.
    fn named(name: &FileName) -> Place {
        match name {
            FileName::Striped(_) => Place::Striped,
            FileName::Local(path) => Place::Directory(path.clone()),
            FileName::Standard => Place::Directory("-".into()),
        }
    }

    /// Returns the directory for temporary files of this host.
    fn usual() -> Place {
        Place::Directory(env::temp_dir())
    }
}

/// A temporary file.
enum Temporary {
    /// An ordinary file, already unlinked.
    Local(File),
    /// A striped file. The name is dropped, and thereby unlinked, before the file is closed, so that the close has
    /// nothing to write.
    Striped { _half_done: UndoGuard, file: Box<pdiol::File> },
}

impl store::Temporary for Temporary {
    fn rewind(&mut self) -> io::Result<()> {
        match self {
            Temporary::Local(file) => file.seek(SeekFrom::Start(0)).map(drop),
            Temporary::Striped { file, .. } => {
                file.hint(Advice::Sequential)?;
                file.seek(SeekFrom::Start(0)).map(drop)
            }
        }
    }
}

impl Read for Temporary {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Temporary::Local(file) => file.read(into),
            Temporary::Striped { file, .. } => {
                let read = file.read(into)?;
                if read == 0 && !into.is_empty() {
                    // At the end, the loss of any part read so far is an error.
                    file.check_losses()?;
                }
                Ok(read)
            }
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Temporary::Local(file) => file.write(from),
            Temporary::Striped { file, .. } => file.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
