//! Directories by descriptor, and names below them that never resolve to a place outside.
//!
//! Programs create, read or change a tree below a directory that the user has named. Other users choose the names in
//! the tree, and may replace any of them by a link at any time. So a [`LocalDirectory`] resolves one name at a time
//! with `O_NOFOLLOW`, and a [`LocalPlace`] is a path below such a directory.
//!
//! Directories are opened with `O_PATH`, which needs no read permission. A `LocalPlace` keeps only the descriptor of
//! the top directory, because a tree may have more directories than a process may have descriptors.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Permissions that the owner of a directory needs to create names in it.
const OWNERS: u32 = 0o700;

/// Open directory. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct LocalDirectory {
    descriptor: Arc<OwnedFd>,
    /// Path of the directory, for error messages.
    path: Arc<Path>,
}

impl LocalDirectory {
    /// Opens the directory at a path that the user has named; follows links.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn open(path: &Path) -> io::Result<LocalDirectory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = Arc::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
        Ok(LocalDirectory { descriptor, path: path.into() })
    }

    /// Returns the path of a name in this directory, for error messages.
    pub fn path_of(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a subdirectory.
    fn enter(&self, name: &OsStr) -> io::Result<LocalDirectory> {
        let descriptor = Arc::new(self.open_at(name, OFlags::PATH | OFlags::DIRECTORY)?);
        Ok(LocalDirectory { descriptor, path: self.path_of(name).into() })
    }

    /// Opens a name in this directory, unless it is a link.
    fn open_at(&self, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.descriptor, name, flags, Mode::empty())?)
    }

    /// Opens the directory itself, to list it or to change its attributes.
    ///
    /// # Errors
    /// If the user may not read the directory.
    pub fn file(&self) -> io::Result<File> {
        self.open_at(OsStr::new("."), OFlags::RDONLY | OFlags::DIRECTORY).map(File::from)
    }

    /// Returns the names in the directory, sorted.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.file()?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if ![&b"."[..], b".."].contains(&&*name) {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the metadata of a name, without following a link, or `None` if it does not exist.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        match self.open_at(name, OFlags::PATH) {
            Ok(found) => File::from(found).metadata().map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file for reading. Opening a pipe does not block.
    ///
    /// # Errors
    /// If the name does not exist, or is a link.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)
    }

    /// Creates a file under an unused name. The umask can reduce this mode.
    pub(crate) fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.descriptor, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Returns the target of a link.
    ///
    /// # Errors
    /// If the name is not a link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.descriptor, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    pub(crate) fn symlink(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.descriptor, name)?)
    }

    /// Creates a hard link `name` in `other` to a file of this directory.
    pub(crate) fn link(&self, file: &OsStr, other: &LocalDirectory, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.descriptor, file, &other.descriptor, name, AtFlags::empty())?)
    }

    /// Renames a file within this directory. If `to` exists, replaces it, or fails if `replace` is false.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr, replace: bool) -> io::Result<()> {
        if replace {
            return Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?);
        }
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&self.descriptor, from, &self.descriptor, to, flags) {
            // The file system has no atomic rename without replacement.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.link(from, self, to)?;
                self.remove_file(from)
            }
            renamed => Ok(renamed?),
        }
    }

    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Opens a subdirectory. If it is missing, creates it with access only for its owner. Gives the owner all
    /// permissions, because the directory may be an unfinished copy of a write-protected one. If the name is a link,
    /// fails, or replaces the link.
    fn make(&self, name: &OsStr, replace_link: bool) -> io::Result<LocalDirectory> {
        let make = || rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(OWNERS));
        match make() {
            Err(Errno::EXIST) if replace_link && self.is_link(name) => {
                self.remove_file(name)?;
                make()?;
            }
            Err(Errno::EXIST) => {}
            made => made?,
        }
        let made =
            self.enter(name).map_err(|error| if self.is_link(name) { link_in_the_way() } else { error })?;
        made.permit_owner()?;
        Ok(made)
    }

    fn is_link(&self, name: &OsStr) -> bool {
        self.metadata(name).is_ok_and(|found| found.is_some_and(|found| found.is_symlink()))
    }

    fn permit_owner(&self) -> io::Result<()> {
        let descriptor = self.open_at(OsStr::new("."), OFlags::PATH)?;
        let mode = File::from(descriptor.try_clone()?).metadata()?.permissions().mode();
        if mode & OWNERS == OWNERS {
            return Ok(());
        }
        // fchmod does not accept an `O_PATH` descriptor, and any other descriptor needs read permission. This path
        // refers to the descriptor.
        let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        std::fs::set_permissions(path, Permissions::from_mode(mode | OWNERS))
    }
}

/// Path below a directory. Links in the path are not followed.
#[derive(Clone, Debug)]
pub struct LocalPlace {
    top: LocalDirectory,
    below: PathBuf,
}

impl LocalPlace {
    /// Returns the place `below` a directory. `below` is a relative path without `..`; an empty one means the directory
    /// itself.
    pub fn new(top: LocalDirectory, below: impl Into<PathBuf>) -> LocalPlace {
        LocalPlace { top, below: below.into() }
    }

    /// Returns the place of a path relative to this place.
    pub fn join(&self, path: impl AsRef<Path>) -> LocalPlace {
        LocalPlace { top: self.top.clone(), below: self.below.join(path) }
    }

    /// Returns the path relative to the top directory.
    pub fn below(&self) -> &Path {
        &self.below
    }

    /// Returns the full path, for error messages.
    pub fn path(&self) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => self.top.path.to_path_buf(),
            false => self.top.path_of(&self.below),
        }
    }

    /// Opens the place as a directory.
    ///
    /// # Errors
    /// If there is no directory at this place, or the path contains a link.
    pub fn directory(&self) -> io::Result<LocalDirectory> {
        let mut directory = self.top.clone();
        for component in self.below.components() {
            directory = directory.enter(name_of(component)?).map_err(|error| match error.kind() {
                ErrorKind::NotADirectory if directory.is_link(component.as_os_str()) => link_in_the_way(),
                _ => error,
            })?;
        }
        Ok(directory)
    }

    /// Opens the parent directory, and returns the last name of the path.
    ///
    /// # Errors
    /// If the parent directory does not exist, or the path contains a link.
    pub fn parent(&self) -> io::Result<(LocalDirectory, &OsStr)> {
        let last = self.below.components().next_back().ok_or(ErrorKind::InvalidInput)?;
        let above = self.below.parent().unwrap_or(Path::new(""));
        Ok((LocalPlace::new(self.top.clone(), above).directory()?, name_of(last)?))
    }

    /// Opens the directory at this place. Creates it if it is missing and its parent exists. Gives the owner all
    /// permissions. If the place is a link, fails, or replaces the link.
    ///
    /// # Errors
    /// If the place is another kind of file, or the directory cannot be created.
    pub fn make_directory(&self, replace_link: bool) -> io::Result<LocalDirectory> {
        if self.below.as_os_str().is_empty() {
            self.top.permit_owner()?;
            return Ok(self.top.clone());
        }
        let (parent, name) = self.parent()?;
        parent.make(name, replace_link)
    }

    /// Returns the metadata of the file at this place, without following a link, or `None` if the file does not exist.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub fn metadata(&self) -> io::Result<Option<Metadata>> {
        if self.below.as_os_str().is_empty() {
            return self.top.metadata(OsStr::new("."));
        }
        let (parent, name) = self.parent()?;
        parent.metadata(name)
    }
}

impl fmt::Display for LocalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

/// Returns the name of a component of a path. Fails if the component is `..` or the root.
fn name_of(component: Component<'_>) -> io::Result<&OsStr> {
    match component {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "the path leads outside the directory")),
    }
}

fn link_in_the_way() -> io::Error {
    let why = "it is a symbolic link, which is not followed\n  Remove it, or give --force to replace it.";
    io::Error::new(ErrorKind::AlreadyExists, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn place() -> (tempfile::TempDir, LocalDirectory) {
        let directory = tempfile::tempdir().expect("a directory");
        let opened = LocalDirectory::open(directory.path()).expect("it exists");
        (directory, opened)
    }

    #[test]
    fn a_new_directory_is_private_and_an_existing_one_becomes_writable() {
        let (top, opened) = place();
        let (local, within) = (top.path().join("x"), LocalPlace::new(opened, "x"));
        let mode = || fs::metadata(&local).expect("it exists").mode() & 0o7777;
        within.make_directory(false).expect("made");
        assert_eq!(mode(), 0o700);
        for (before, then) in [(0o555, 0o755), (0o2070, 0o2770), (0o755, 0o755), (0o1777, 0o1777)] {
            fs::set_permissions(&local, Permissions::from_mode(before)).expect("it belongs to the test");
            within.make_directory(false).expect("it exists");
            assert_eq!(mode(), then, "{before:o}");
        }
        fs::write(local.join("file"), "").expect("room");
        within.join("file").make_directory(true).expect_err("a file is not replaced");
        within.join("file/x").make_directory(true).expect_err("it is no directory");
    }

    #[test]
    fn no_path_leads_out_of_its_directory() {
        let (top, opened) = place();
        let outside = tempfile::tempdir().expect("a directory");
        fs::write(outside.path().join("file"), "outside").expect("room");
        symlink(outside.path(), top.path().join("link")).expect("room");
        symlink(outside.path().join("file"), top.path().join("leaf")).expect("room");
        let link = LocalPlace::new(opened.clone(), "link");
        for place in [link.clone(), link.join("file"), link.join("file/x")] {
            assert!(place.directory().is_err() && place.make_directory(false).is_err(), "{place}");
        }
        assert!(link.join("file").parent().is_err() && link.join("file").metadata().is_err());
        assert!(link.metadata().expect("it exists").expect("it exists").is_symlink());
        opened.open_file(OsStr::new("leaf")).expect_err("a link");
        for path in ["..", "../x", "/", "x/../../y"] {
            let place = LocalPlace::new(opened.clone(), path);
            assert!(place.directory().is_err() && place.parent().is_err(), "{path}");
        }
        let made = link.make_directory(true).expect("in its place");
        assert_eq!(made.names().expect("empty"), Vec::<OsString>::new());
        assert_eq!(fs::read(outside.path().join("file")).expect("a file"), b"outside");
        assert_eq!(opened.names().expect("it belongs to the test"), ["leaf", "link"]);
    }

    #[test]
    fn a_path_may_be_longer_than_the_kernel_accepts() {
        let (_top, opened) = place();
        let mut place = LocalPlace::new(opened, "");
        for _ in 0..25 {
            place = place.join("d".repeat(200));
            place.make_directory(false).expect("room");
        }
        place.join("x").parent().expect("a directory").0.create_file(OsStr::new("x"), 0o600).expect("room");
        assert!(place.join("x").metadata().expect("it exists").is_some_and(|found| found.is_file()));
    }
}
