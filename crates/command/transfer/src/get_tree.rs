//! A directory of a namespace with all that is in it becomes a local one: many files at once.

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
use crate::many::{self, FailedFiles};
use crate::namespace::{FoundPath, Namespace, shown, split};
use crate::one_file::{adding_to, failed_to_get};
use crate::put_tree::{mode_of_copy, noted_of};
use crate::stored::{ReadableFile, is_unfinished};

/// How a tree is to be got.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// How data get from the disks.
    pub method: Method,
    /// Whether local files that are there are replaced.
    pub force: bool,
    /// Whether those are left alone that have the same size and time, and others replaced.
    pub resume: bool,
    /// Whether of damaged files is got what can be read.
    pub skip_damaged: bool,
}

/// A file of which not all could be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedFile {
    /// Its path.
    pub name: String,
    /// How many bytes could not be read.
    pub lost: u64,
    /// How many it has.
    pub bytes: u64,
}

/// What has become of a tree that was to be got.
pub struct GotTree {
    /// The files that failed, which have been told.
    pub failed: FailedFiles,
    /// How many were there already.
    pub skipped: usize,
    /// Of which there is here what was left, by their names.
    pub damaged: Vec<DamagedFile>,
    /// Which agents do not answer, if any do not.
    pub absence: Option<node::Error>,
}

/// What a tree that is got has in common.
struct Getting {
    namespace: Namespace,
    progress: Progress,
    manner: Manner,
    /// The files that are here now and have other names there, too: under which name.
    shared: RefCell<BTreeMap<FileNumber, LocalPlace>>,
    skipped: Cell<usize>,
    damaged: RefCell<Vec<DamagedFile>>,
}

/// Files and directories that are being got. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct TreeDownload(Rc<Getting>);

/// Something that is to be got, and what it is called here.
struct Wish {
    found: FoundPath,
    local: LocalPlace,
}

impl Wish {
    /// Which file it is, if that has other names.
    fn shared(&self) -> Option<FileNumber> {
        let inode = &self.found.inode;
        (inode.links > 1).then_some(inode.number)
    }
}

impl TreeDownload {
    /// A download that begins with [`run`](Self::run).
    pub fn new(namespace: &Namespace, progress: &Progress, manner: Manner) -> TreeDownload {
        TreeDownload(Rc::new(Getting {
            namespace: namespace.clone(),
            progress: progress.clone(),
            manner,
            shared: RefCell::default(),
            skipped: Cell::new(0),
            damaged: RefCell::default(),
        }))
    }

    /// Gets each of these, and all that is in it if it is a directory.
    pub async fn run(&self, tops: Vec<(FoundPath, LocalPlace)>) -> Result<GotTree> {
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
                        say!("starfish: {path}: it is no file, directory or link: left out");
                    }
                }
            }
        }
        self.0.progress.expect(files.iter().map(|wish| wish.found.inode.size).sum());
        let download = self.clone();
        let get = move |wish: Wish| {
            let download = download.clone();
            async move { download.get_file(&wish).await }
        };
        failed += many::each(&self.0.namespace.connection.machine, files, get).await?;
        let download = self.clone();
        let name = move |wish: Wish| {
            let download = download.clone();
            async move { download.get_name(&wish).await }
        };
        failed += many::each(&self.0.namespace.connection.machine, more_names, name).await?;
        // Only now: until then they are their owner's alone, and what is made in them changes their times.
        for Wish { found, local } in directories.iter().rev() {
            let noted = local.directory().and_then(|directory| note(&directory.file()?, &found.inode, true));
            noted.map_err(|error| failed_at(local, error))?;
        }
        let mut damaged = self.0.damaged.take();
        damaged.sort();
        let absence = self.0.namespace.connection.incompleteness().err();
        Ok(GotTree { failed, skipped: self.0.skipped.get(), damaged, absence })
    }

    /// What is to be got, each directory, which is made here, before what is in it.
    async fn wishes(&self, top: FoundPath, local: LocalPlace) -> Result<Vec<Wish>> {
        if !top.inode.is_directory() {
            return Ok(vec![Wish { found: top, local }]);
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
                "starfish: {top}: files that are being put, or were not put to their end, left out: {left_out}"
            );
        }
        let start = top.path.len();
        let mut wishes = vec![Wish { found: top, local: local.clone() }];
        wishes.extend(all.into_iter().map(|found| {
            let rest = found.path[start..].strip_prefix(b"/").unwrap_or(&found.path[start..]);
            Wish { local: local.join(OsStr::from_bytes(rest)), found }
        }));
        for Wish { local, .. } in wishes.iter().filter(|wish| wish.found.inode.is_directory()) {
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

    /// Gives a file that is here another name; where there are no such names, or it could not be got, it is got.
    async fn get_name(&self, wish: &Wish) -> Result<()> {
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

    async fn get_file(&self, wish: &Wish) -> Result<()> {
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
        // What takes another one's place waits for the medium.
        BlockingWork::begin(move || target.complete()).outcome().await?;
        if is_file {
            self.note_shared(wish);
        }
        if lost > 0 {
            getting.damaged.borrow_mut().push(DamagedFile { name, lost, bytes: inode.size });
        }
        Ok(())
    }

    /// Notes where a file is that is to have other names.
    fn note_shared(&self, wish: &Wish) {
        if let Some(file) = wish.shared() {
            self.0.shared.borrow_mut().insert(file, wish.local.clone());
        }
    }
}

impl Getting {
    fn may_replace(&self) -> bool {
        self.manner.force || self.manner.resume
    }

    /// Copies a file, or what is left of it if that is asked for: to a new local file, which has its name when it is
    /// completed. With it comes how many bytes could not be read.
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
        // Somebody may still be writing to the other one.
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

/// Gives a local file or directory the permissions of what it is a copy of, and its time, by which the copy passes for
/// the same, if it is whole.
pub fn note(output: &File, inode: &Inode, is_whole: bool) -> std::io::Result<()> {
    output.set_permissions(permissions(&output.metadata()?, inode))?;
    match is_whole {
        true => output.set_times(FileTimes::new().set_modified(time_of(inode.modified))),
        false => Ok(()),
    }
}

/// The permissions of a local file or directory that is a copy of this.
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

/// The place of something of the namespace in a local directory, under its own name.
pub fn within(directory: &Path, path: &[u8]) -> Result<LocalPlace> {
    let (_, name) = split(path);
    let directory =
        LocalDirectory::open(directory).map_err(|error| failed_at(&directory.display(), error))?;
    Ok(LocalPlace::new(directory, OsStr::from_bytes(name)))
}

/// The place that the user has named. For a directory, a link that leads to one is followed, and missing directories
/// above are made.
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
