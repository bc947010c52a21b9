//! Copies a directory of a namespace with its contents to a local directory, many files at once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{File, FileTimes, Metadata, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use namespace::{FileNumber, Inode, InodeKind, UnixTime};
use node::BlockingWork;
use node::whole_file::{self, CopyError, Method};
use replacement::{LocalDirectory, LocalPlace};

use crate::local::{self, Destination, LocalOutput};
use crate::namespace::{FoundPath, Namespace, shown, split};
use crate::one_file::{adding_to, failed_to_get};
use crate::parallel::{self, FailedFiles};
use crate::put_tree::{mode_of_copy, noted_of};
use crate::remote_file::{ReadableFile, is_unfinished};

/// Options for downloading a directory.
#[derive(Clone, Copy, Debug)]
pub struct DownloadOptions {
    /// Transfer method.
    pub method: Method,
    /// True if existing local files are replaced.
    pub force: bool,
    /// True if local files with the same size and modification time are skipped, and all others are replaced.
    pub resume: bool,
    /// True if the readable part of a damaged file is copied.
    pub skip_damaged: bool,
}

/// File of which some bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedFile {
    /// Path of the file.
    pub name: String,
    /// Number of bytes that could not be read.
    pub lost: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Result of downloading a directory.
pub struct DownloadResult {
    /// Number of failed files; each has been reported.
    pub failed: FailedFiles,
    /// Number of skipped files, which already existed with the same size and time.
    pub skipped: usize,
    /// Damaged files whose readable part was copied, by name.
    pub damaged: Vec<DamagedFile>,
    /// Error that names the agents that do not answer, if any.
    pub absence: Option<node::Error>,
}

/// State that the tasks of a download share.
struct DownloadState {
    namespace: Namespace,
    progress: Progress,
    manner: DownloadOptions,
    /// Local places of copied files that have several names in the namespace.
    shared: RefCell<BTreeMap<FileNumber, LocalPlace>>,
    skipped: Cell<usize>,
    damaged: RefCell<Vec<DamagedFile>>,
}

/// Download of files and directories. Clones share its state.
#[derive(Clone)]
pub struct TreeDownload(Rc<DownloadState>);

/// Inode to download, and its local place.
struct PendingFile {
    found: FoundPath,
    local: LocalPlace,
}

impl PendingFile {
    /// Returns the number of the file if it has several names.
    fn shared(&self) -> Option<FileNumber> {
        let inode = &self.found.inode;
        (inode.links > 1).then_some(inode.number)
    }
}

impl TreeDownload {
    /// Returns a download, which [`run`](Self::run) starts.
    pub fn new(namespace: &Namespace, progress: &Progress, manner: DownloadOptions) -> TreeDownload {
        TreeDownload(Rc::new(DownloadState {
            namespace: namespace.clone(),
            progress: progress.clone(),
            manner,
            shared: RefCell::default(),
            skipped: Cell::new(0),
            damaged: RefCell::default(),
        }))
    }

    /// Downloads the inodes at these paths; directories with their contents.
    pub async fn run(&self, tops: Vec<(FoundPath, LocalPlace)>) -> Result<DownloadResult> {
        let (mut directories, mut files, mut failed) = (Vec::new(), Vec::new(), FailedFiles::default());
        let (mut more_names, mut known) = (Vec::new(), BTreeSet::new());
        for (top, local) in tops {
            for wish in self.wishes(top, local).await? {
                match &wish.found.inode.kind {
                    InodeKind::Directory { .. } => directories.push(wish),
                    InodeKind::File(_) if wish.shared().is_some_and(|file| !known.insert(file)) => {
                        more_names.push(wish);
                    }
                    InodeKind::File(_) => files.push(wish),
                    InodeKind::Link { target } => {
                        if let Err(failure) = self.make_link(&wish.local, target) {
                            failed.note(&failure);
                        }
                    }
                    InodeKind::Special { .. } => {
                        let path = shown(&wish.found.path);
                        say!("starfish: {path}: skipped, because it is not a file, directory or link");
                    }
                }
            }
        }
        self.0.progress.expect(files.iter().map(|wish| wish.found.inode.size).sum());
        let download = self.clone();
        let get = move |wish: PendingFile| {
            let download = download.clone();
            async move { download.get_file(&wish).await }
        };
        failed += parallel::each(&self.0.namespace.connection.machine, files, get).await?;
        let download = self.clone();
        let name = move |wish: PendingFile| {
            let download = download.clone();
            async move { download.get_name(&wish).await }
        };
        failed += parallel::each(&self.0.namespace.connection.machine, more_names, name).await?;
        // Set the attributes of directories last: until then only their owner has access, and each new entry changes
        // their times.
        for PendingFile { found, local } in directories.iter().rev() {
            let noted = local.directory().and_then(|directory| note(&directory.file()?, &found.inode, true));
            noted.map_err(|error| failed_at(local, error))?;
        }
        let mut damaged = self.0.damaged.take();
        damaged.sort();
        let absence = self.0.namespace.connection.incompleteness().err();
        Ok(DownloadResult { failed, skipped: self.0.skipped.get(), damaged, absence })
    }

    /// Returns the inodes to download, each directory before its contents. Creates the local directories.
    async fn wishes(&self, top: FoundPath, local: LocalPlace) -> Result<Vec<PendingFile>> {
        if !top.inode.is_directory() {
            return Ok(vec![PendingFile { found: top, local }]);
        }
        let (mut all, mut left_out) = (Vec::new(), 0);
        for found in self.0.namespace.walk(&top).await? {
            match is_unfinished(&self.0.namespace, &found).await? {
                true => left_out += 1,
                false => all.push(found),
            }
        }
        if left_out > 0 {
            let top = shown(&top.path);
            say!(
                "starfish: {top}: skipped {left_out} unfinished files: clients are writing them, or were \
                 interrupted"
            );
        }
        let start = top.path.len();
        let mut wishes = vec![PendingFile { found: top, local: local.clone() }];
        wishes.extend(all.into_iter().map(|found| {
            let rest = found.path[start..].strip_prefix(b"/").unwrap_or(&found.path[start..]);
            PendingFile { local: local.join(OsStr::from_bytes(rest)), found }
        }));
        for PendingFile { local, .. } in wishes.iter().filter(|wish| wish.found.inode.is_directory()) {
            let made = local.make_directory(self.0.may_replace());
            let directory = made.map_err(|error| failed_at(local, error))?;
            if self.0.manner.resume {
                replacement::remove_abandoned(&directory).map_err(|error| failed_at(local, error))?;
            }
        }
        Ok(wishes)
    }

    fn make_link(&self, local: &LocalPlace, target: &[u8]) -> Result<()> {
        let target = Path::new(OsStr::from_bytes(target));
        let there = local.parent().and_then(|(directory, name)| directory.read_link(name));
        if there.is_ok_and(|there| there == target) {
            return Ok(());
        }
        let made = replacement::symlink(target, local, self.0.may_replace());
        made.map_err(|error| local::failed(&local.path(), error))
    }

    /// Links an already copied file to this further name. Copies the file again if the local file system has no hard
    /// links, or if the first copy failed.
    async fn get_name(&self, wish: &PendingFile) -> Result<()> {
        let (getting, local) = (&*self.0, &wish.local);
        let first = wish.shared().and_then(|file| getting.shared.borrow().get(&file).cloned());
        let Some(first) = first else { return self.get_file(wish).await };
        if is_same_file(&first, local) {
            getting.skipped.set(getting.skipped.get() + usize::from(getting.manner.resume));
            return if getting.may_replace() { Ok(()) } else { Err(local::exists(&local.path())) };
        }
        let (name, replace) = (local.clone(), getting.may_replace());
        let linked = BlockingWork::begin(move || replacement::link(&first, &name, replace));
        match linked.outcome().await {
            Ok(()) => Ok(()),
            Err(replacement::Error::Exists) => Err(local::exists(&local.path())),
            Err(_) => self.get_file(wish).await,
        }
    }

    async fn get_file(&self, wish: &PendingFile) -> Result<()> {
        let (getting, local) = (&*self.0, &wish.local);
        let name = shown(&wish.found.path);
        let there = local.metadata().map_err(|error| failed_at(local, error))?;
        let is_same = there.as_ref().is_some_and(|found| {
            found.is_file()
                && (found.len(), noted_of(found).0) == (wish.found.inode.size, wish.found.inode.modified)
        });
        if getting.manner.resume && is_same {
            self.note_shared(wish);
            getting.progress.add(wish.found.inode.size);
            getting.skipped.set(getting.skipped.get() + 1);
            return Ok(());
        }
        if there.is_some_and(|found| found.is_dir()) {
            return Err(Failure::new(local.to_string(), "it is a directory"));
        }
        let stored = ReadableFile::open(&getting.namespace, &wish.found.path).await?;
        let inode = stored.inode();
        let (target, lost) = getting.copy(&stored, &name, local).await?;
        stored.close(&name).await?;
        if let Some(file) = target.file() {
            note(file, &inode, lost == 0).map_err(|error| failed_at(local, error))?;
        }
        let is_file = target.file().is_some();
        // Completing a file that replaces another one blocks until the new file is on disk.
        BlockingWork::begin(move || target.complete()).outcome().await?;
        if is_file {
            self.note_shared(wish);
        }
        if lost > 0 {
            getting.damaged.borrow_mut().push(DamagedFile { name, lost, bytes: inode.size });
        }
        Ok(())
    }

    /// Records the local place of a copied file that has several names.
    fn note_shared(&self, wish: &PendingFile) {
        if let Some(file) = wish.shared() {
            self.0.shared.borrow_mut().insert(file, wish.local.clone());
        }
    }
}

impl DownloadState {
    fn may_replace(&self) -> bool {
        self.manner.force || self.manner.resume
    }

    /// Copies a file to a new local file, which is renamed to its final name when completed. If `skip_damaged` is set,
    /// copies the readable part of a damaged file. Returns also the number of bytes that could not be read.
    async fn copy(
        &self,
        stored: &ReadableFile,
        name: &str,
        local: &LocalPlace,
    ) -> Result<(Destination, u64)> {
        let (connection, file) = (&self.namespace.connection, stored.file());
        let (target, output) = self.create(local)?;
        let adding = adding_to(&self.progress);
        match whole_file::download(connection, file, self.manner.method, output, adding).await {
            Ok(_) => return Ok((target, 0)),
            Err(CopyError::Striped(_)) if self.manner.skip_damaged => {}
            Err(error) => return Err(failed_to_get(name, error)),
        }
        // A thread of the first copy may still be writing to the first target, so create another one.
        drop(target);
        self.progress.expect_more(file.bytes());
        let (target, output) = self.create(local)?;
        let adding = adding_to(&self.progress);
        let salvaged = whole_file::salvage(connection, name, file.remains(), output, adding).await;
        let (_, lost) = salvaged.map_err(|error| failed_to_get(name, error))?;
        Ok((target, lost.iter().map(|extent| extent.bytes).sum()))
    }

    fn create(&self, local: &LocalPlace) -> Result<(Destination, LocalOutput)> {
        let (target, output) = local::create_at(local, self.may_replace())?;
        let output = target.output(output).map_err(|error| failed_at(local, error))?;
        Ok((target, output))
    }
}

fn is_same_file(one: &LocalPlace, other: &LocalPlace) -> bool {
    let identity =
        |place: &LocalPlace| place.metadata().ok().flatten().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|found| identity(other) == Some(found))
}

/// Sets the permissions of a local file or directory to those of its original. Sets the modification time only if the
/// copy is whole, because `--resume` takes an equal time as a sign of an identical file.
pub fn note(output: &File, inode: &Inode, is_whole: bool) -> std::io::Result<()> {
    output.set_permissions(permissions(&output.metadata()?, inode))?;
    match is_whole {
        true => output.set_times(FileTimes::new().set_modified(time_of(inode.modified))),
        false => Ok(()),
    }
}

/// Returns the permissions for a local copy of this inode.
fn permissions(here: &Metadata, inode: &Inode) -> Permissions {
    let mode = mode_of_copy(inode.mode, (here.uid(), here.gid()) == (inode.uid, inode.gid));
    Permissions::from_mode(u32::from(mode))
}

fn time_of(at: UnixTime) -> SystemTime {
    let since = Duration::from_nanos(at.unsigned_abs());
    if at < 0 { SystemTime::UNIX_EPOCH - since } else { SystemTime::UNIX_EPOCH + since }
}

fn failed_at(local: &impl Display, error: std::io::Error) -> Failure {
    Failure::new(local.to_string(), error)
}

/// Returns the place in a local directory for a copy of `path`, under the last name of `path`.
pub fn within(directory: &Path, path: &[u8]) -> Result<LocalPlace> {
    let (_, name) = split(path);
    let directory =
        LocalDirectory::open(directory).map_err(|error| failed_at(&directory.display(), error))?;
    Ok(LocalPlace::new(directory, OsStr::from_bytes(name)))
}

/// Returns the place for `local`, the path that the user gave. For a directory, follows a link to a directory, and
/// creates missing parents.
pub fn named(local: &Path, is_directory: bool) -> Result<LocalPlace> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| failed_at(&path.display(), error)
    };
    let name = match local.file_name() {
        Some(name) if !(is_directory && local.is_dir()) => name,
        _ => return Ok(LocalPlace::new(LocalDirectory::open(local).map_err(failed(local))?, "")),
    };
    let parent = local.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_directory {
        if let Some(file) = local.ancestors().find(|path| path.is_file()) {
            let failure = Failure::new(file.display().to_string(), "it is a file, not a directory");
            return Err(failure.remedy("Name a directory for the copy."));
        }
        std::fs::create_dir_all(parent).map_err(failed(parent))?;
    }
    let parent = LocalDirectory::open(parent).map_err(failed(parent))?;
    Ok(LocalPlace::new(parent, name))
}
