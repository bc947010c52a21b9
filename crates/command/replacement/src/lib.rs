//! Creates and replaces local files atomically: a file gets its name when it is complete.
//!
//! Data are written to a temporary file in the same directory. At the end, the temporary file is renamed. So no program
//! sees an incomplete file, and a file to be replaced is kept until the new one is complete.
//!
//! If the user names a path, links are followed: a link is kept, and its target is replaced. A name in a directory tree
//! is a [`LocalPlace`] below a [`LocalDirectory`], and no link in it is followed. If the name itself is a link, the
//! operation fails, or replaces the link.
//!
//! From its first byte, the new file has the access permissions of the old one, or only its owner has access.
//!
//! Before the new file replaces an old one, it is flushed to stable storage, so that one of them exists after a power
//! cut. Without an old file no data can be lost, so the new file is not flushed.
//!
//! This crate deliberately does not remove the temporary file when the program is interrupted, because each program
//! handles interruptions differently. [`NewFile::temporary`] returns the file to remove.

mod directory;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

pub use directory::{LocalDirectory, LocalPlace};

/// Prefix of the names of temporary files.
const PREFIX: &str = ".starfish-";

/// Number of random characters after the prefix.
const DRAWN: usize = 6;

/// Default mode of a file: all users may read and write it. The umask can reduce this mode.
const USUAL: u32 = 0o666;

/// Mode of a file that only its owner may access.
const OWNERS: u32 = 0o600;

/// Bits of a file's mode that permit reading, writing and executing.
const PERMISSIONS: u32 = 0o777;

/// Access permissions of a new file.
#[derive(Clone, Copy, Debug)]
pub enum FilePermissions<'a> {
    /// The permissions of the replaced file, or the default ones if no file is replaced.
    Usual,
    /// The permissions of this file.
    Like(&'a Metadata),
    /// Owner only. The caller sets the final permissions once it knows them.
    Owner,
}

/// Destination of the data.
#[derive(Debug)]
pub enum Target {
    /// Existing device or pipe, which cannot be replaced.
    Stream(File),
    /// File to write to. [`NewFile::complete`] renames it to its final name.
    File(File, NewFile),
}

/// Unfinished file. Dropping this value before completion removes the file.
#[derive(Debug)]
pub struct NewFile {
    temporary: TemporaryFile,
    file: File,
    name: OsString,
    replace: bool,
    is_complete: bool,
}

/// Temporary file of an unfinished file. A program that ends before the file is complete must remove the temporary
/// file.
#[derive(Clone, Debug)]
pub struct TemporaryFile {
    directory: LocalDirectory,
    name: OsString,
}

/// Reason that a file of this name cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name belongs to a directory.
    #[error("it is a directory")]
    IsDirectory,
    /// The name can only belong to a directory, which does not exist.
    #[error("no such directory\n  Create it, or give the name of a file.")]
    NoDirectory,
    /// The parent directory does not exist.
    #[error("the directory {} does not exist\n  Create it, or choose another name.", .0.display())]
    NoParent(PathBuf),
    /// The file exists, and the caller did not permit replacing it.
    #[error("already exists\n  Give --force to replace it, or choose another name.")]
    Exists,
    /// The name belongs to a device, pipe or socket in a tree.
    #[error("it is not a regular file, and is not replaced\n  Remove it first.")]
    NoFile,
    /// Any other I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Starts the file at `path`. Fails with [`Error::Exists`] if the file exists and `replace` is false.
pub fn create(path: &Path, replace: bool, permitted: FilePermissions<'_>) -> Result<Target, Error> {
    let found = existing(path)?;
    match &found {
        Some(found) if found.is_dir() => return Err(Error::IsDirectory),
        Some(found) if !found.is_file() => {
            return Ok(Target::Stream(File::options().write(true).open(path)?));
        }
        Some(_) if !replace => return Err(Error::Exists),
        None if names_directory(path) => return Err(Error::NoDirectory),
        _ => {}
    }
    let path = followed(path);
    let parent = directory_of(&path);
    let directory = match LocalDirectory::open(parent) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::NoParent(parent.to_owned())),
        opened => opened?,
    };
    let name = path.file_name().ok_or(Error::NoDirectory)?;
    let (file, new) = NewFile::begin(directory, name, replace, found.as_ref(), permitted)?;
    Ok(Target::File(file, new))
}

/// Starts a file in a directory tree and returns it for writing. Fails with [`Error::Exists`] if the name is in use and
/// `replace` is false. If the name is a link, replaces the link, not its target.
///
/// # Errors
/// If the file cannot be created.
pub fn create_at(
    place: &LocalPlace,
    replace: bool,
    permitted: FilePermissions<'_>,
) -> Result<(File, NewFile), Error> {
    let (directory, name) = place.parent()?;
    let found = directory.metadata(name)?;
    match &found {
        Some(found) if found.is_dir() => return Err(Error::IsDirectory),
        Some(_) if !replace => return Err(Error::Exists),
        Some(found) if !found.is_file() && !found.is_symlink() => return Err(Error::NoFile),
        _ => {}
    }
    let found = found.filter(Metadata::is_file);
    NewFile::begin(directory, name, replace, found.as_ref(), permitted)
}

impl NewFile {
    fn begin(
        directory: LocalDirectory,
        name: &OsStr,
        replace: bool,
        found: Option<&Metadata>,
        permitted: FilePermissions<'_>,
    ) -> Result<(File, NewFile), Error> {
        let like = if let FilePermissions::Like(like) = permitted { Some(like) } else { found };
        let mode = match (permitted, like) {
            (FilePermissions::Owner, _) => OWNERS,
            (_, None) => USUAL,
            (_, Some(like)) => like.permissions().mode() & PERMISSIONS,
        };
        // Create the file with its final permissions: a program that opened it while it had more permissions could
        // still read it later.
        let (file, temporary) = TemporaryFile::make(&directory, |name| directory.create_file(name, mode))?;
        let new = NewFile {
            temporary,
            file: file.try_clone()?,
            name: name.to_owned(),
            replace,
            is_complete: false,
        };
        // The lock shows other programs that the file is being written. Ignore errors: some file systems have no locks.
        let _ = file.try_lock();
        if let Some(like) = like {
            belong_like(&file, like)?;
            // Set the mode again, this time unaffected by the umask.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok((file, new))
    }

    /// Returns the file. The file may be used after the last write, too.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the temporary file to remove if the program ends before the file is complete.
    pub fn temporary(&self) -> &TemporaryFile {
        &self.temporary
    }

    /// Renames the complete file to its final name.
    pub fn complete(mut self) -> Result<(), Error> {
        let TemporaryFile { directory, name } = &self.temporary;
        if self.replace && directory.metadata(&self.name)?.is_some() {
            self.file.sync_data()?;
        }
        directory.rename(name, &self.name, self.replace).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists if !self.replace => Error::Exists,
            _ => error.into(),
        })?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_complete {
            self.temporary.remove();
        }
    }
}

impl TemporaryFile {
    /// Calls `make` with unused temporary names until it succeeds.
    fn make<T>(
        directory: &LocalDirectory,
        make: impl Fn(&OsStr) -> io::Result<T>,
    ) -> io::Result<(T, TemporaryFile)> {
        let of_path = |path: &Path| make(path.file_name().expect("a name was drawn"));
        let mut drawn = tempfile::Builder::new();
        // Disable the cleanup of the crate `tempfile`, which removes files by path.
        let drawn = drawn.prefix(PREFIX).rand_bytes(DRAWN).disable_cleanup(true);
        let (made, path) = drawn.make_in(directory.path_of(""), of_path)?.into_parts();
        let name = path.file_name().expect("a name was drawn").to_owned();
        Ok((made, TemporaryFile { directory: directory.clone(), name }))
    }

    /// Removes the file if it exists.
    pub fn remove(&self) {
        let _ = self.directory.remove_file(&self.name);
    }
}

impl fmt::Display for TemporaryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.directory.path_of(&self.name).display().fmt(f)
    }
}

/// Creates a hard link. If the name is in use, replaces it in one step, or fails if `replace` is false.
///
/// # Errors
/// If no file can have this name, or a directory has it.
pub fn link(file: &LocalPlace, name: &LocalPlace, replace: bool) -> Result<(), Error> {
    let (directory, first) = file.parent()?;
    if replace && name.metadata()?.is_some() {
        directory.open_file(first)?.sync_data()?;
    }
    make(name, replace, |parent, name| directory.link(first, parent, name))
}

/// Creates a symbolic link to `target`, which need not exist. If the name is in use, replaces it in one step, or fails
/// if `replace` is false.
///
/// # Errors
/// If no link can have this name, or a directory has it.
pub fn symlink(target: &Path, name: &LocalPlace, replace: bool) -> Result<(), Error> {
    make(name, replace, |parent, name| parent.symlink(target, name))
}

/// Creates an object that is complete from the start, such as a link. If the name is in use and may be replaced,
/// creates the object under a temporary name and then renames it.
fn make(
    place: &LocalPlace,
    replace: bool,
    make: impl Fn(&LocalDirectory, &OsStr) -> io::Result<()>,
) -> Result<(), Error> {
    let (parent, name) = place.parent()?;
    match make(&parent, name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !replace => Err(Error::Exists),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let ((), temporary) = TemporaryFile::make(&parent, |name| make(&parent, name))?;
            let renamed = parent.rename(&temporary.name, name, true);
            // Remove the name even after success, because a rename does nothing if both names belong to the same file.
            temporary.remove();
            Ok(renamed?)
        }
        made => Ok(made?),
    }
}

/// Returns the parent directory of a path.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes the temporary files that killed programs have left in a directory.
///
/// # Errors
/// If the directory cannot be read, or a file cannot be removed.
pub fn remove_abandoned(directory: &LocalDirectory) -> io::Result<()> {
    for name in directory.names()?.iter().filter(|name| is_temporary(name)) {
        if is_abandoned(directory, name) {
            directory.remove_file(name)?;
        }
    }
    Ok(())
}

/// Returns true if a name has the form of a temporary file name.
fn is_temporary(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(PREFIX.as_bytes());
    rest.is_some_and(|rest| rest.len() == DRAWN && rest.iter().all(u8::is_ascii_alphanumeric))
}

/// Returns true if no program is writing this temporary file any more. Returns false if this cannot be determined.
fn is_abandoned(directory: &LocalDirectory, name: &OsStr) -> bool {
    let is_free = |file: File| Ok(file.metadata()?.is_file() && file.try_lock().is_ok());
    directory.open_file(name).and_then(is_free).unwrap_or(false)
}

/// Returns the metadata of a path, or `None` if it does not exist.
fn existing(path: &Path) -> io::Result<Option<Metadata>> {
    match path.metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if only a directory can have this path. The text is checked, because `Path` strips the end of `x/` and
/// `x/.`.
fn names_directory(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    path.file_name().is_none() || text.ends_with(b"/") || text.ends_with(b"/.")
}

/// Returns the final target of a path through links, even if the target does not exist.
///
/// The loop ends, because the system has already resolved these links.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while let Ok(target) = fs::read_link(&path) {
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Sets the owner and group of the file to those of another file, as far as permitted. Only the superuser may change
/// the owner; for other users the creator remains the owner.
fn belong_like(file: &File, like: &Metadata) -> io::Result<()> {
    let found = file.metadata()?;
    if found.gid() != like.gid() {
        let _ = fchown(file, None, Some(like.gid()));
    }
    if found.uid() != like.uid() {
        let _ = fchown(file, Some(like.uid()), None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().expect("a directory")
    }

    fn write(path: &Path, contents: &str, mode: u32) {
        fs::write(path, contents).expect("a file");
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it belongs to this user");
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("a file").permissions().mode() & PERMISSIONS
    }

    fn place(path: &Path) -> LocalPlace {
        let top = LocalDirectory::open(path.parent().expect("a directory")).expect("it exists");
        LocalPlace::new(top, path.file_name().expect("a name"))
    }

    fn path_of(temporary: &TemporaryFile) -> PathBuf {
        temporary.to_string().into()
    }

    fn begin(path: &Path, replace: bool, permitted: FilePermissions<'_>) -> Result<(File, NewFile), Error> {
        match create(path, replace, permitted)? {
            Target::File(file, new) => Ok((file, new)),
            Target::Stream(_) => panic!("{} is no stream", path.display()),
        }
    }

    fn replace(path: &Path, contents: &str) {
        let (mut file, new) = begin(path, true, FilePermissions::Usual).expect("it can be replaced");
        file.write_all(contents.as_bytes()).expect("room");
        new.complete().expect("it can be named");
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_keeps_its_contents_until_its_replacement_is_complete() {
        let directory = directory();
        let path = directory.path().join("x");
        write(&path, "old", 0o644);
        let (mut file, new) = begin(&path, true, FilePermissions::Usual).expect("it can be replaced");
        file.write_all(b"new").expect("room");
        assert_eq!(fs::read(&path).expect("a file"), b"old");
        new.complete().expect("it can be named");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        drop(begin(&path, true, FilePermissions::Usual));
        assert_eq!(
            (fs::read(&path).expect("a file"), names(directory.path())),
            (b"new".into(), vec!["x".into()])
        );
    }

    #[test]
    fn a_hard_link_replaces_an_existing_file_only_if_allowed() {
        let directory = directory();
        let [file, name] = ["file", "name"].map(|name| directory.path().join(name));
        write(&file, "contents", 0o644);
        link(&place(&file), &place(&name), false).expect("the name is free");
        let is_one = || file.metadata().expect("a file").ino() == name.metadata().expect("a file").ino();
        assert!(is_one());
        fs::remove_file(&name).expect("it belongs to this user");
        write(&name, "other", 0o644);
        assert!(matches!(link(&place(&file), &place(&name), false), Err(Error::Exists)));
        link(&place(&file), &place(&name), true).expect("it is replaced");
        assert!(is_one());
        assert_eq!(names(directory.path()), ["file", "name"]);
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let directory = directory();
        let path = directory.path().join("x");
        for kept in [0o600, 0o666, 0o444, 0o755, 0o000] {
            write(&path, "old", 0o644);
            fs::set_permissions(&path, Permissions::from_mode(kept)).expect("it belongs to this user");
            let (_, new) = begin(&path, true, FilePermissions::Usual).expect("it can be replaced");
            assert_eq!(mode(&path_of(new.temporary())), kept, "before the first byte");
            new.complete().expect("it can be named");
            assert_eq!(mode(&path), kept);
            fs::remove_file(&path).expect("it belongs to this user");
        }
    }

    #[test]
    fn a_new_file_gets_the_mode_of_the_given_file() {
        let directory = directory();
        let (secret, path) = (directory.path().join("secret"), directory.path().join("x"));
        write(&secret, "", 0o600);
        for existing in [None, Some(0o644)] {
            if let Some(mode) = existing {
                write(&path, "", mode);
            }
            let like = secret.metadata().expect("a file");
            let (_, new) = begin(&path, true, FilePermissions::Like(&like)).expect("it can be made");
            new.complete().expect("it can be named");
            assert_eq!(mode(&path), 0o600);
        }
    }

    #[test]
    fn a_private_file_has_mode_600_until_its_writer_changes_it() {
        let directory = directory();
        let path = directory.path().join("x");
        for existing in [None, Some(0o666)] {
            if let Some(mode) = existing {
                write(&path, "", mode);
            }
            let (file, new) = begin(&path, true, FilePermissions::Owner).expect("it can be made");
            assert_eq!(mode(&path_of(new.temporary())), 0o600, "before the first byte");
            file.set_permissions(Permissions::from_mode(0o640)).expect("it belongs to this user");
            new.complete().expect("it can be named");
            assert_eq!(mode(&path), 0o640);
        }
    }

    #[test]
    fn a_symbolic_link_replaces_a_link_but_not_a_directory() {
        let directory = directory();
        let [name, other] = ["name", "directory"].map(|name| directory.path().join(name));
        let target = || fs::read_link(&name).expect("a link");
        super::symlink(Path::new("nowhere"), &place(&name), false).expect("the name is free");
        assert!(matches!(super::symlink(Path::new("x"), &place(&name), false), Err(Error::Exists)));
        assert_eq!(target(), Path::new("nowhere"));
        super::symlink(Path::new("x"), &place(&name), true).expect("it is replaced");
        assert_eq!(target(), Path::new("x"));
        fs::create_dir(&other).expect("room");
        super::symlink(Path::new("x"), &place(&other), true).expect_err("a directory is not replaced");
        assert_eq!(names(directory.path()), ["directory", "name"]);
    }

    #[test]
    fn replacing_a_link_replaces_its_target() {
        let directory = directory();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("data")).expect("a directory");
        write(&path("data/17"), "old", 0o640);
        symlink("17", path("data/newest")).expect("a link");
        symlink("data/newest", path("latest")).expect("a link");
        replace(&path("latest"), "new");
        assert_eq!(fs::read_link(path("latest")).expect("a link"), Path::new("data/newest"));
        assert_eq!(fs::read(path("data/17")).expect("a file"), b"new");
        assert_eq!(mode(&path("data/17")), 0o640);
        // A link to a missing file is followed, too.
        symlink(path("data/18"), path("next")).expect("a link");
        replace(&path("next"), "newer");
        assert_eq!(fs::read(path("data/18")).expect("a file"), b"newer");
        assert_eq!(names(directory.path()), ["data", "latest", "next"]);
        // A loop of links fails.
        symlink("loop", path("loop")).expect("a link");
        assert!(matches!(begin(&path("loop"), true, FilePermissions::Usual), Err(Error::Io(_))));
    }

    #[test]
    fn within_a_tree_the_link_itself_is_replaced() {
        let directory = directory();
        let path = |name: &str| directory.path().join(name);
        write(&path("outside"), "outside", 0o644);
        for target in ["outside", "nowhere"] {
            symlink(target, path("x")).expect("a link");
            let create = |replace| create_at(&place(&path("x")), replace, FilePermissions::Owner);
            assert!(matches!(create(false), Err(Error::Exists)), "{target}");
            let (mut file, new) = create(true).expect("it can be replaced");
            file.write_all(b"new").expect("room");
            new.complete().expect("it can be named");
            assert!(path("x").symlink_metadata().expect("it exists").is_file(), "{target}");
            fs::remove_file(path("x")).expect("it belongs to the test");
        }
        assert_eq!(fs::read(path("outside")).expect("a file"), b"outside");
        assert_eq!(names(directory.path()), ["outside"]);
        let socket = std::os::unix::net::UnixListener::bind(path("x")).expect("room");
        assert!(matches!(create_at(&place(&path("x")), true, FilePermissions::Owner), Err(Error::NoFile)));
        drop(socket);
    }

    #[test]
    fn only_abandoned_temporary_files_are_removed() {
        let directory = directory();
        let path = |name: &str| directory.path().join(name);
        for name in [".starfish-aB3dEf", ".starfish-0123456789abcdef", ".starfish-a.b", "x"] {
            write(&path(name), "", 0o644);
        }
        fs::create_dir(path(".starfish-abcdef")).expect("room");
        let (_file, new) = begin(&path("y"), false, FilePermissions::Usual).expect("it can be made");
        remove_abandoned(&LocalDirectory::open(directory.path()).expect("it exists")).expect("removed");
        assert!(path_of(new.temporary()).exists());
        new.complete().expect("it can be named");
        let left = [".starfish-0123456789abcdef", ".starfish-a.b", ".starfish-abcdef", "x", "y"];
        assert_eq!(names(directory.path()), left);
    }

    #[test]
    fn an_impossible_target_is_rejected_and_changes_no_file() {
        let directory = directory();
        let path = |name: &str| directory.path().join(name);
        write(&path("x"), "old", 0o644);
        assert!(matches!(begin(&path("x"), false, FilePermissions::Usual), Err(Error::Exists)));
        assert!(matches!(begin(&path("."), true, FilePermissions::Usual), Err(Error::IsDirectory)));
        assert!(matches!(begin(&path("new/"), true, FilePermissions::Usual), Err(Error::NoDirectory)));
        assert!(matches!(begin(&path("new/."), false, FilePermissions::Usual), Err(Error::NoDirectory)));
        assert!(matches!(begin(&path("new/.."), false, FilePermissions::Usual), Err(Error::NoDirectory)));
        assert!(matches!(begin(Path::new(""), false, FilePermissions::Usual), Err(Error::NoDirectory)));
        assert!(matches!(begin(&path("x/"), true, FilePermissions::Usual), Err(Error::Io(_))));
        let parent = path("new");
        assert!(
            matches!(begin(&path("new/x"), true, FilePermissions::Usual), Err(Error::NoParent(there)) if there == parent)
        );
        assert!(matches!(
            create(Path::new("/dev/null"), false, FilePermissions::Usual),
            Ok(Target::Stream(_))
        ));
        let (_, new) = begin(&path("y"), false, FilePermissions::Usual).expect("it can be made");
        write(&path("y"), "made concurrently", 0o644);
        assert!(matches!(new.complete(), Err(Error::Exists)));
        assert_eq!(fs::read(path("y")).expect("a file"), b"made concurrently");
        assert_eq!(names(directory.path()), ["x", "y"]);
    }
}
