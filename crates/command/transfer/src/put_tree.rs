//! Copies a local directory with its contents into the namespace, many files at once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use layout::Striping;
use namespace::{FileNumber, InodeKind, NewInode, RemovalTarget, RenameMode, UnixTime};
use nix::unistd::{getgid, getuid};
use node::whole_file::{self, CopyError, Method};
use replacement::{LocalDirectory, LocalPlace};

use crate::local::{SteadyFile, data_bytes};
use crate::namespace::{Namespace, joined, shown};
use crate::one_file::{adding_to, failed_to_put, is_same};
use crate::parallel::{self, FailedFiles};
use crate::remote_file::{HiddenFile, WantedFile, exists, mark_unfinished};

/// Mode of a link, which is never checked.
const LINK_MODE: u16 = 0o777;

/// Target and options for uploading a directory.
pub struct UploadOptions {
    /// Path in the namespace.
    pub path: Vec<u8>,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Number of disks for each file; `None` for all.
    pub disks: Option<NonZeroU32>,
    /// Transfer method.
    pub method: Method,
    /// True if existing files are replaced.
    pub replace: bool,
    /// True if existing files that are whole and have the same size and modification time are skipped, and all others
    /// are replaced.
    pub resume: bool,
}

/// Contents of a local directory.
#[derive(Debug, Default)]
pub struct LocalTree {
    /// Directories, each before its contents. The first one is the top directory, whose path is empty.
    directories: Vec<LocalEntry>,
    /// Files, each once, under the first of its names.
    files: Vec<LocalEntry>,
    /// All other names of files.
    more_names: Vec<LocalEntry>,
    links: Vec<LocalEntry>,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// Number of bytes that are not in holes.
    pub data_bytes: u64,
    /// Number of entries that could not be read; each has been reported.
    failed: FailedFiles,
}

/// Entry of a local directory.
#[derive(Debug)]
struct LocalEntry {
    /// Place of the entry in the tree.
    place: LocalPlace,
    found: Metadata,
}

/// Identity of a local file, independent of its names: device number and inode number.
type LocalFile = (u64, u64);

impl LocalEntry {
    /// Returns the path relative to the top directory.
    fn name(&self) -> &[u8] {
        self.place.below().as_os_str().as_bytes()
    }

    /// Returns the identity of the file if it has several names.
    fn shared(&self) -> Option<LocalFile> {
        (self.found.nlink() > 1).then(|| (self.found.dev(), self.found.ino()))
    }

    /// Returns the entries of this directory, in the order of their names. Entries that cannot be read, for example
    /// because they were just removed, are reported and counted as failed.
    fn entries(&self, failed: &mut FailedFiles) -> Result<Vec<LocalEntry>> {
        let mut entries = Vec::new();
        let directory = self.place.directory().map_err(failed_at(&self.place))?;
        for name in directory.names().map_err(failed_at(&self.place))? {
            let place = self.place.join(&name);
            match directory.metadata(&name).and_then(|found| Ok(found.ok_or(ErrorKind::NotFound)?)) {
                Ok(found) => entries.push(LocalEntry { place, found }),
                Err(error) => failed.note(&failed_at(&place)(error)),
            }
        }
        Ok(entries)
    }

    /// Opens the file. Fails if a link has replaced the file.
    fn open(&self) -> Result<SteadyFile> {
        let opened = self.place.parent().and_then(|(directory, name)| directory.open_file(name));
        let file = opened.and_then(SteadyFile::new).map_err(failed_at(&self.place))?;
        match file.file().metadata() {
            Ok(found) if !found.is_file() => {
                Err(Failure::new(self.place.to_string(), "it is no longer a file"))
            }
            found => found.map(|_| file).map_err(failed_at(&self.place)),
        }
    }
}

fn failed_at(place: &dyn Display) -> impl Fn(std::io::Error) -> Failure + use<> {
    let what = place.to_string();
    move |error| Failure::new(&*what, error)
}

impl LocalTree {
    /// Reads the whole tree below a directory. Reports and skips unreadable entries, and entries other than files,
    /// directories and links.
    pub fn of(top: &Path) -> Result<LocalTree> {
        let (mut tree, mut known) = (LocalTree::default(), BTreeSet::new());
        let found = std::fs::metadata(top).map_err(failed_at(&top.display()))?;
        let place = LocalPlace::new(LocalDirectory::open(top).map_err(failed_at(&top.display()))?, "");
        let mut directories = vec![LocalEntry { place, found }];
        while let Some(directory) = directories.pop() {
            let entries = match directory.entries(&mut tree.failed) {
                Err(failure) if !directory.name().is_empty() => {
                    tree.failed.note(&failure);
                    Vec::new()
                }
                entries => entries?,
            };
            for entry in entries {
                let kind = entry.found.file_type();
                if kind.is_dir() {
                    directories.push(entry);
                } else if kind.is_file() && entry.shared().is_some_and(|file| !known.insert(file)) {
                    tree.more_names.push(entry);
                } else if kind.is_file() {
                    tree.bytes += entry.found.len();
                    tree.data_bytes += data_bytes(&entry.found);
                    tree.files.push(entry);
                } else if kind.is_symlink() {
                    tree.links.push(entry);
                } else {
                    say!("starfish: {}: skipped, because it is not a file, directory or link", entry.place);
                }
            }
            tree.directories.push(directory);
        }
        Ok(tree)
    }
}

/// Returns the modification time of a local file, and the mode for a copy that this user owns.
pub fn noted_of(found: &Metadata) -> (UnixTime, u16) {
    let modified = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    let is_own = (found.uid(), found.gid()) == (getuid().as_raw(), getgid().as_raw());
    (modified, mode_of_copy(found.mode() as u16, is_own))
}

/// Returns the mode of a copy. The set-user-ID and set-group-ID bits are kept only if the copy has the same owner and
/// group.
pub fn mode_of_copy(mode: u16, has_same_owner: bool) -> u16 {
    mode & if has_same_owner { 0o7777 } else { 0o1777 }
}

/// State that the tasks of an upload share.
struct UploadState {
    namespace: Namespace,
    put: UploadOptions,
    striping: Striping,
    progress: Progress,
    /// Hidden files in flight, which are removed if the command is interrupted.
    under_way: RefCell<BTreeMap<Vec<u8>, Option<Rc<HiddenFile>>>>,
    /// Uploaded files that have several names on this computer.
    shared: RefCell<BTreeMap<LocalFile, FileNumber>>,
    skipped: Cell<usize>,
}

/// Upload of a directory. Clones share its state.
#[derive(Clone)]
pub struct TreeUpload(Rc<UploadState>);

impl TreeUpload {
    /// Returns an upload, which [`run`](Self::run) starts.
    pub fn new(namespace: &Namespace, put: UploadOptions, progress: &Progress) -> Result<TreeUpload> {
        let striping = namespace.connection.striping(put.block_bytes, put.disks)?;
        Ok(TreeUpload(Rc::new(UploadState {
            namespace: namespace.clone(),
            put,
            striping,
            progress: progress.clone(),
            under_way: RefCell::default(),
            shared: RefCell::default(),
            skipped: Cell::new(0),
        })))
    }

    /// Uploads the whole tree. Returns the failed files, which have been reported, and the number of skipped files.
    pub async fn run(&self, local: LocalTree) -> Result<(FailedFiles, usize)> {
        let namespace = &self.0.namespace;
        let mut directories = Vec::new();
        for directory in local.directories {
            directories.push((self.make_directory(&directory).await?, directory));
        }
        let mut failed = local.failed;
        for link in &local.links {
            if let Err(failure) = self.put_link(link).await {
                failed.note(&failure);
            }
        }
        let upload = self.clone();
        let put = move |file| {
            let upload = upload.clone();
            async move { upload.put_file(&file).await }
        };
        failed += parallel::each(&namespace.connection.machine, local.files, put).await?;
        let upload = self.clone();
        let name = move |entry| {
            let upload = upload.clone();
            async move { upload.put_name(&entry).await }
        };
        failed += parallel::each(&namespace.connection.machine, local.more_names, name).await?;
        // Set the times of directories last: each new entry changes them.
        let upload = self.clone();
        let note = move |(number, directory)| {
            let upload = upload.clone();
            async move { upload.note_time(number, &directory).await }
        };
        failed += parallel::each(&namespace.connection.machine, directories, note).await?;
        namespace.flush().await?;
        Ok((failed, self.0.skipped.get()))
    }

    async fn make_directory(&self, directory: &LocalEntry) -> Result<FileNumber> {
        let (_, mode) = noted_of(&directory.found);
        let made = self.0.namespace.make_directory_unless_there(&self.path_of(directory), mode).await;
        made.map_err(|error| match error.kind() {
            node::ErrorKind::NotFound => Failure::from(error).remedy("`starfish mkdir -p` creates it."),
            _ => error.into(),
        })
    }

    async fn note_time(&self, number: FileNumber, directory: &LocalEntry) -> Result<()> {
        let (modified, _) = noted_of(&directory.found);
        Ok(self.0.namespace.set_modified(&self.path_of(directory), number, modified).await?)
    }

    /// Creates a further name for an uploaded file.
    async fn put_name(&self, entry: &LocalEntry) -> Result<()> {
        let (putting, path) = (&*self.0, self.path_of(entry));
        let number = entry.shared().and_then(|file| putting.shared.borrow().get(&file).copied());
        let Some(number) = number else {
            let why = "it failed under another of its names, see above";
            return Err(Failure::new(entry.place.to_string(), why));
        };
        match putting.namespace.look_if_there(&path).await? {
            None => Ok(putting.namespace.link(number, &path).await?),
            Some(inode) if inode.number == number && putting.put.resume => {
                putting.skipped.set(putting.skipped.get() + 1);
                Ok(())
            }
            Some(inode) if inode.is_directory() || !self.may_replace() => Err(exists(&path).into()),
            // Nothing to do: the existing name is already a name of this file. A rename of one name of a file to
            // another name of it would do nothing.
            Some(inode) if inode.number == number => Ok(()),
            Some(_) => {
                let link = async |hidden: &[u8]| {
                    mark_unfinished(&putting.namespace, number, hidden).await?;
                    putting.namespace.link(number, hidden).await
                };
                self.replace(&path, link).await
            }
        }
    }

    /// Replaces the inode at this path by a new inode, which `make` creates under a hidden name.
    async fn replace(&self, path: &[u8], make: impl AsyncFnOnce(&[u8]) -> node::Result<()>) -> Result<()> {
        let (putting, hidden) = (&*self.0, node::hidden_name(path)?);
        putting.under_way.borrow_mut().insert(hidden.clone(), None);
        let named = async {
            make(&hidden).await?;
            putting.namespace.rename(&hidden, path, RenameMode::Replace).await
        };
        let named = named.await;
        putting.under_way.borrow_mut().remove(&hidden);
        if named.is_err() {
            // Report the first failure.
            let _ = putting.namespace.remove(&hidden, RemovalTarget::File).await;
        }
        Ok(named?)
    }

    /// Records the number of an uploaded file that has several names on this computer.
    fn note_shared(&self, entry: &LocalEntry, number: FileNumber) {
        if let Some(file) = entry.shared() {
            self.0.shared.borrow_mut().insert(file, number);
        }
    }

    /// Removes the files in flight, after the future of [`run`](Self::run) was dropped.
    pub async fn discard(&self) -> node::Result<()> {
        let mut outcome = Ok(());
        for (name, hidden) in self.0.under_way.take() {
            if let Some(hidden) = hidden {
                outcome = outcome.and(hidden.discard().await);
            }
            // The interruption can occur just after the file was created, or just before its rename.
            match self.0.namespace.remove(&name, RemovalTarget::File).await {
                Err(error) if error.kind() == node::ErrorKind::NotFound => {}
                removed => outcome = outcome.and(removed),
            }
        }
        outcome
    }

    fn path_of(&self, entry: &LocalEntry) -> Vec<u8> {
        match entry.name() {
            b"" => self.0.put.path.clone(),
            name => joined(&self.0.put.path, name),
        }
    }

    fn may_replace(&self) -> bool {
        self.0.put.replace || self.0.put.resume
    }

    async fn put_link(&self, link: &LocalEntry) -> Result<()> {
        let (path, namespace) = (self.path_of(link), &self.0.namespace);
        let target = link.place.parent().and_then(|(directory, name)| directory.read_link(name));
        let target = target.map_err(failed_at(&link.place))?;
        let target = target.as_os_str().as_bytes().to_vec();
        let new = NewInode::Link { target: target.clone() };
        match namespace.look_if_there(&path).await? {
            Some(inode) if inode.kind == (InodeKind::Link { target }) => Ok(()),
            Some(_) if self.may_replace() => {
                let make = async |hidden: &[u8]| {
                    let made = namespace.make(hidden, new, LINK_MODE).await?;
                    mark_unfinished(namespace, made.number, hidden).await
                };
                self.replace(&path, make).await
            }
            _ => Ok(namespace.make(&path, new, LINK_MODE).await.map(drop)?),
        }
    }

    async fn put_file(&self, entry: &LocalEntry) -> Result<()> {
        let (putting, path) = (&*self.0, self.path_of(entry));
        let local = entry.open()?;
        // The file may have changed since the directory was read.
        let found = local.file().metadata().map_err(failed_at(&entry.place))?;
        let (modified, mode) = noted_of(&found);
        if putting.put.resume {
            let there = putting.namespace.look_if_there(&path).await?;
            if let Some(inode) = there.filter(|inode| is_same(inode, (found.len(), modified)))
                && putting.namespace.is_whole(&path, &inode).await?
            {
                self.note_shared(entry, inode.number);
                putting.progress.add(found.len());
                putting.skipped.set(putting.skipped.get() + 1);
                return Ok(());
            }
        }
        let replace = self.may_replace();
        let wanted = WantedFile { striping: putting.striping, mode, modified: Some(modified), replace };
        let name = node::hidden_name(&path)?;
        // Register the name before the file is created, so that an interruption leaves nothing.
        putting.under_way.borrow_mut().insert(name.clone(), None);
        let begun = HiddenFile::begin_as(&putting.namespace, name.clone(), &path, wanted).await;
        let hidden = match begun {
            Ok(hidden) => Rc::new(hidden),
            Err(error) => {
                putting.under_way.borrow_mut().remove(&name);
                return Err(error.into());
            }
        };
        putting.under_way.borrow_mut().insert(name.clone(), Some(hidden.clone()));
        let number = hidden.inode().expect("it has just been made").number;
        let put = self.put_contents(&hidden, entry, local).await;
        if put.is_ok() {
            self.note_shared(entry, number);
        }
        let is_mine = putting.under_way.borrow_mut().remove(&name).is_some();
        if put.is_err() && is_mine {
            // Report the first failure.
            let _ = hidden.discard().await;
        }
        put
    }

    async fn put_contents(&self, hidden: &HiddenFile, entry: &LocalEntry, local: SteadyFile) -> Result<()> {
        let (connection, adding) = (&self.0.namespace.connection, adding_to(&self.0.progress));
        let upload = whole_file::upload(connection, hidden.file(), self.0.put.method, local, adding);
        let uploaded = hidden.while_open(upload).await;
        let (_, uploaded) = uploaded.map_err(|error| match error {
            CopyError::Local(error) => failed_at(&entry.place)(error),
            striped @ CopyError::Striped(_) => failed_to_put(&shown(&self.path_of(entry)), striped),
        })?;
        Ok(hidden.complete(uploaded).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_may_be_deeper_than_the_longest_path() {
        let top = tempfile::tempdir().expect("a directory");
        std::fs::write(top.path().join("file"), "1").expect("room");
        let mut place = LocalPlace::new(LocalDirectory::open(top.path()).expect("it exists"), "");
        for _ in 0..25 {
            place = place.join("d".repeat(200));
            place.make_directory(false).expect("room");
        }
        let tree = LocalTree::of(top.path()).expect("all of it");
        assert_eq!((tree.directories.len(), tree.files.len(), tree.bytes, tree.failed.all), (26, 1, 1, 0));
        let missing = LocalTree::of(&top.path().join("z")).expect_err("it is not there").to_string();
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn a_link_that_replaces_a_listed_entry_is_not_followed() {
        let (top, outside) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("one"));
        std::fs::create_dir(top.path().join("x")).expect("room");
        for file in [top.path().join("x/file"), top.path().join("y"), outside.path().join("file")] {
            std::fs::write(file, "1").expect("room");
        }
        let tree = LocalTree::of(top.path()).expect("all of it");
        std::fs::remove_dir_all(top.path().join("x")).expect("it belongs to the test");
        std::fs::remove_file(top.path().join("y")).expect("it belongs to the test");
        symlink(outside.path(), top.path().join("x")).expect("room");
        symlink(outside.path().join("file"), top.path().join("y")).expect("room");
        assert!(tree.files.len() == 2 && tree.files.iter().all(|file| file.open().is_err()));
        let within = tree.directories.iter().find(|directory| directory.name() == b"x").expect("one");
        within.entries(&mut FailedFiles::default()).expect_err("it leads elsewhere");
    }
}
