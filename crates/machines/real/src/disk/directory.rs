//! Directory of a disk: creates, finds and removes the files of objects. All calls block.
//!
//! Creating an object does not wait for the medium. Until the first flush, the name of its file marks the object as
//! *new*. A power failure before the first flush may leave the file in any state. If the file is incomplete, it was
//! never an object, and the next object of its name replaces it.
//!
//! Other programs may put anything in the place of an object: a directory, a pipe, a symbolic link. None of these is
//! followed or opened. They are reported as damaged objects, and can be removed. On a read-only disk objects are opened
//! for reading.

use std::fs::{self, DirBuilder, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use machine::{Error, NO_DISK, NodeId, Result, Space};
use nix::libc;
use nix::sys::statvfs::statvfs;

use super::contents::{FoundContents, first_bytes, read_header, read_object};
use super::disk_identity;
use super::failures::{describe, io_error, refuses_writing};
use super::header::{Header, Refusal};
use super::identity::Identity;
use super::lock::Lock;
use super::name::{self, Decoded, ObjectFileKind, Stage};
use super::sync_failure::SyncFailure;
use crate::random::draw;

/// Prefix of the names of files that are not objects yet. No object's file name begins with a dot, except that of the
/// object with the empty name.
const UNBORN: &str = ".unborn-";

/// Opened file of an object.
pub(crate) struct Found {
    pub(crate) file: File,
    pub(crate) stage: Stage,
    /// True if the object has never been flushed, and its file name still says so.
    pub(crate) is_new: bool,
    pub(crate) identity: Identity,
    pub(crate) header: Header,
    /// State of the contents, including the record with the note of the file system.
    pub(crate) contents: FoundContents,
}

/// Directory owned by this process.
pub(crate) struct Directory {
    path: PathBuf,
    /// Identity of the disk, if it had one when the directory was taken.
    found_identity: Option<u64>,
    /// Number of published objects when the directory was taken.
    published: u64,
    unborn: AtomicU64,
    /// Lock held for the lifetime of this value.
    lock: Lock,
    sync_failure: SyncFailure,
    /// True if syncs fail, for tests.
    #[cfg(test)]
    syncs_fail: std::sync::atomic::AtomicBool,
}

/// Mode of a directory that the node creates: writable only by its user.
const MODE: u32 = 0o755;

impl Directory {
    /// Takes the directory for `node`, and removes incomplete files of a killed node.
    pub(crate) fn take(path: &Path, node: NodeId) -> Result<Self> {
        let failed = |error| io_error(&describe(path), error);
        match DirBuilder::new().mode(MODE).create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.and_then(|()| sync_parent(path)).map_err(failed)?,
        }
        let lock = Lock::take(path, node)?;
        let found_identity = disk_identity::read(path)?;
        let mut published = 0;
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if found_identity.is_none() && name::is_numbered(&entry.file_name()) {
                return Err(disk_identity::lost(path));
            }
            published += u64::from(name::is_published(&entry.file_name()));
            let is_unborn = entry.file_name().as_encoded_bytes().starts_with(UNBORN.as_bytes());
            if is_unborn && entry.file_type().map_err(failed)?.is_file() && !lock.is_read_only {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(Directory {
            path: path.to_owned(),
            found_identity,
            published,
            unborn: AtomicU64::new(0),
            lock,
            sync_failure: SyncFailure::default(),
            #[cfg(test)]
            syncs_fail: false.into(),
        })
    }

    /// Returns the number of published objects when the directory was taken.
    pub(crate) fn published(&self) -> u64 {
        self.published
    }

    /// Fails if one of two directories is a copy of the other: each would lack the writes to the other.
    pub(crate) fn refuse_copy(&self, other: &Directory) -> Result<()> {
        let Some(identity) = self.found_identity.filter(|_| self.found_identity == other.found_identity)
        else {
            return Ok(());
        };
        let why = format!(
            "one is a copy of the other: both have the identity {identity:016x}. Leave out the copy, or \
             remove it"
        );
        Err(Error::Io { what: format!("{} and {}", describe(&self.path), describe(&other.path)), why }.into())
    }

    /// Returns a message if the disk is read-only.
    pub(crate) fn read_only(&self) -> Option<String> {
        let text = || format!("{} is read-only: its files can only be read", describe(&self.path));
        self.lock.is_read_only.then(text)
    }

    /// Returns the last incarnation of a node with this directory, if it shut down cleanly since the computer was
    /// booted.
    pub(crate) fn last_run(&self) -> Option<u64> {
        self.lock.last_run
    }

    /// Records a clean shutdown of this incarnation, for the next node that takes the directory.
    pub(crate) fn note_end(&self, run: u64) -> Result<()> {
        self.lock.note_end(run).map_err(|error| io_error(&describe(&self.path), error))
    }

    /// Returns the number of the directory's device on this computer.
    pub(crate) fn device(&self) -> u64 {
        self.lock.identity.device
    }

    /// Returns the size of the file system, and the free space available to this process.
    pub(crate) fn space(&self) -> Result<Space> {
        self.check_path()?;
        let space = statvfs(&self.path);
        let space = space.map_err(|error| io_error(&describe(&self.path), error.into()))?;
        let unit = space.fragment_size();
        Ok(Space { bytes: space.blocks() * unit, free: space.blocks_available() * unit })
    }

    /// Returns the identity of the disk. Creates one if it is missing.
    pub(crate) fn disk_identity(&self) -> Result<u64> {
        self.check_path()?;
        if let Some(identity) = disk_identity::read(&self.path)? {
            return Ok(identity);
        }
        let failed = |error: io::Error| io_error(&describe(&self.path), error);
        let (file, unborn) = self.unborn_file().map_err(failed)?;
        let identity = draw("the identity of a disk")? % NO_DISK;
        disk_identity::write(&self.path, identity, file, &unborn)?;
        self.sync()?;
        disk_identity::read(&self.path)?.ok_or_else(|| failed(ErrorKind::NotFound.into()))
    }

    fn path_of(&self, name: &str, kind: ObjectFileKind) -> PathBuf {
        self.path.join(name::encode(name, kind))
    }

    /// Runs `work` on the file of an object, of any kind that exists.
    fn with_file<T>(
        &self,
        name: &str,
        stage: Stage,
        work: impl Fn(&Path, ObjectFileKind) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut outcome = Err(ErrorKind::NotFound.into());
        for &kind in ObjectFileKind::of(stage) {
            outcome = work(&self.path_of(name, kind), kind);
            if !outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                break;
            }
        }
        outcome
    }

    /// Returns the name of the disk for messages.
    pub(crate) fn described(&self) -> String {
        describe(&self.path)
    }

    /// Fails if the path now leads to another directory, which would not be ours, or to none.
    fn check_path(&self) -> Result<()> {
        let there = fs::metadata(&self.path).map(|metadata| Identity::of(&metadata));
        let why = match there {
            Ok(there) if there == self.lock.identity => return Ok(()),
            Ok(_) => "it was replaced by another directory after the agent started",
            Err(error) if error.kind() == ErrorKind::NotFound => "it was removed after the agent started",
            Err(error) => return Err(io_error(&describe(&self.path), error)),
        };
        Err(Error::Io { what: describe(&self.path), why: why.to_owned() }.into())
    }

    /// Returns the name of the object for error messages.
    pub(crate) fn describe(&self, name: &str, stage: Stage) -> String {
        let path = self.path_of(name, ObjectFileKind::of(stage)[0]);
        format!("object `{name}` ({})", path.display())
    }

    /// Creates an object.
    pub(crate) fn create(&self, name: &str, label: &[u8]) -> Result<Found> {
        let (bytes, seal) = first_bytes(name, label)?;
        let failed = |error| io_error(&self.describe(name, Stage::Pending), error);
        self.check_path()?;
        if self.is_there(name, ObjectFileKind::Pending).map_err(failed)? {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let path = self.path_of(name, ObjectFileKind::New);
        let make = || OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let mut file = match make() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.remove_incomplete(name)?;
                make()
            }
            made => made,
        }
        .map_err(failed)?;
        let written = file.write_all(&bytes).and_then(|()| file.metadata());
        match written {
            Ok(metadata) => {
                let (layout, identity) = (seal.layout, seal.identity);
                let header = Header { layout, name: name.to_owned(), label: label.to_vec(), identity };
                let (identity, contents) = (Identity::of(&metadata), FoundContents::of_empty(seal));
                Ok(Found { file, stage: Stage::Pending, is_new: true, identity, header, contents })
            }
            Err(error) => {
                // The remains would not be an object either.
                let _ = fs::remove_file(&path);
                Err(failed(error))
            }
        }
    }

    fn is_there(&self, name: &str, kind: ObjectFileKind) -> io::Result<bool> {
        match fs::symlink_metadata(self.path_of(name, kind)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Prepares the creation of an object. Fails if a new one of that name exists, and removes an incomplete file.
    fn remove_incomplete(&self, name: &str) -> Result<()> {
        let failed = |error| io_error(&self.describe(name, Stage::Pending), error);
        if !self.is_there(name, ObjectFileKind::New).map_err(failed)? {
            return Ok(());
        }
        match self.open_file_of(name, ObjectFileKind::New).map_err(failed)? {
            Ok(_) => Err(failed(ErrorKind::AlreadyExists.into())),
            Err(Refusal::Damaged(_)) => {
                fs::remove_file(self.path_of(name, ObjectFileKind::New)).map_err(failed)
            }
            Err(refusal) => Err(refusal.of(self.describe(name, Stage::Pending))),
        }
    }

    /// Records that a new object has been flushed: from now on an incomplete file is damage. Persistent after the next
    /// [`sync`](Self::sync).
    pub(crate) fn settle(&self, name: &str) -> Result<()> {
        self.check_path()?;
        let (from, to) =
            (self.path_of(name, ObjectFileKind::New), self.path_of(name, ObjectFileKind::Pending));
        fs::rename(from, to).map_err(|error| io_error(&self.describe(name, Stage::Pending), error))
    }

    /// Creates a file under a name that no object has.
    fn unborn_file(&self) -> io::Result<(File, PathBuf)> {
        loop {
            let serial = self.unborn.fetch_add(1, Ordering::Relaxed);
            let path = self.path.join(format!("{UNBORN}{serial}"));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                // A foreign file or directory has this name.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => return Ok((opened?, path)),
            }
        }
    }

    /// Opens an object. A never flushed, incomplete file counts as missing.
    pub(crate) fn open(&self, name: &str, stage: Stage) -> Result<Found> {
        let failed = |error| io_error(&self.describe(name, stage), error);
        self.check_path()?;
        let opened = self.with_file(name, stage, |_, kind| match self.open_file_of(name, kind)? {
            Err(Refusal::Damaged(_)) if kind == ObjectFileKind::New => Err(ErrorKind::NotFound.into()),
            opened => Ok(opened),
        });
        opened.map_err(failed)?.map_err(|refusal| refusal.of(self.describe(name, stage)))
    }

    /// Opens the object in a file of this kind, or returns the reason why it is unusable.
    fn open_file_of(
        &self,
        name: &str,
        kind: ObjectFileKind,
    ) -> io::Result<std::result::Result<Found, Refusal>> {
        let path = self.path_of(name, kind);
        let file_type = fs::symlink_metadata(&path)?.file_type();
        if !file_type.is_file() {
            return Ok(Err(not_a_file(file_type)));
        }
        let (file, is_read_only) = open_file(&path)?;
        let metadata = file.metadata()?;
        let (header, contents) = match read_object(&file, metadata.len(), name)? {
            Ok((header, contents)) => (header, FoundContents { is_read_only, ..contents }),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let stage = if kind == ObjectFileKind::Published { Stage::Published } else { Stage::Pending };
        let (identity, is_new) = (Identity::of(&metadata), kind == ObjectFileKind::New);
        Ok(Ok(Found { file, stage, is_new, identity, header, contents }))
    }

    /// Returns the sorted names of all objects of this stage, including names whose place other programs have taken.
    /// Ignores other files.
    pub(crate) fn list(&self, stage: Stage) -> Result<Vec<String>> {
        let failed = |error| io_error(&describe(&self.path), error);
        self.check_path()?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let file_name = entry.file_name();
            let is_wanted = |file_name: &&str| {
                ObjectFileKind::by_name(file_name)
                    .is_some_and(|kind| ObjectFileKind::of(stage).contains(&kind))
            };
            match file_name.to_str().filter(is_wanted).and_then(name::decode) {
                Some(Decoded::Name(name)) => names.push(name),
                Some(Decoded::Shortened) if entry.file_type().map_err(failed)?.is_file() => {
                    names.extend(full_name(&entry.path()));
                }
                _ => {}
            }
        }
        names.sort_unstable();
        // An incomplete file may exist in addition to an object of the same name.
        names.dedup();
        Ok(names)
    }

    /// Removes an object, even a damaged one. Persistent after the next [`sync`](Self::sync).
    pub(crate) fn remove(&self, name: &str, stage: Stage) -> Result<()> {
        self.check_path()?;
        let removed = self.with_file(name, stage, |path, _| match fs::remove_file(path) {
            // A directory created by another program; it must be empty.
            Err(error) if error.kind() == ErrorKind::IsADirectory => fs::remove_dir(path),
            removed => removed,
        });
        removed.map_err(|error| io_error(&self.describe(name, stage), error))
    }

    /// Makes all later syncs fail, or succeed again.
    #[cfg(test)]
    pub(super) fn fail_syncs(&self, fail: bool) {
        self.syncs_fail.store(fail, Ordering::Relaxed);
    }

    /// Waits until all created and removed files are persistent. After one failure every call fails.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check_syncs()?;
        let failed = |error| io_error(&describe(&self.path), error);
        let directory = File::open(&self.path).map_err(failed)?;
        let synced = self.sync_file(&directory);
        synced.inspect_err(|error| self.sync_failure.note(error)).map_err(failed)
    }

    fn sync_file(&self, directory: &File) -> io::Result<()> {
        #[cfg(test)]
        if self.syncs_fail.load(Ordering::Relaxed) {
            return Err(ErrorKind::Other.into());
        }
        directory.sync_all()
    }

    /// Fails if a sync has failed.
    pub(crate) fn check_syncs(&self) -> Result<()> {
        let consequence = "after a power cut, created, renamed or removed files may be back in their old \
                           state: restart the agent";
        self.sync_failure.check(consequence).map_err(|error| io_error(&describe(&self.path), error))
    }
}

/// Waits until a created directory is persistent.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Opens a file, for reading only if it is not writable. Returns true in that case.
fn open_file(path: &Path) -> io::Result<(File, bool)> {
    let open = |writes| OpenOptions::new().read(true).write(writes).custom_flags(libc::O_NOFOLLOW).open(path);
    match open(true) {
        Err(error) if refuses_writing(&error) => Ok((open(false)?, true)),
        opened => Ok((opened?, false)),
    }
}

fn not_a_file(kind: FileType) -> Refusal {
    let what = if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link, which is not followed"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "no file"
    };
    Refusal::Damaged(format!("it is {what}"))
}

/// Returns the name of an object whose file name is too short for it. An unreadable object is not listed.
fn full_name(path: &Path) -> Option<String> {
    let header = read_header(&File::open(path).ok()?).ok()?.ok()?;
    let file_name = path.file_name()?.to_str()?;
    let is_its_name = |kind| file_name == name::encode(&header.name, kind);
    ObjectFileKind::ALL.into_iter().any(is_its_name).then_some(header.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::sys::stat::Mode;
    use nix::unistd::{Uid, geteuid, mkfifo, setfsuid};
    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        // Any characters; characters with special meaning in file systems; and names too long for a file name.
        prop_oneof![".{0,50}", "[./%\\\\\\x00-\\x1f~]{0,20}", "(/[a-z.]|%|ü){0,66}", "(\\.|\\./)*[a-z]{0,3}"]
            .prop_filter("at most 200 bytes", |name| name.len() <= 200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn every_object_name_is_listed_and_stays_in_the_directory(
            names in proptest::collection::btree_set(name(), 1..20),
        ) {
            let place = tempfile::tempdir().expect("a temporary directory");
            let path = place.path().join("disk");
            let directory = Directory::take(&path, NodeId(1)).expect("a fresh directory");
            for name in &names {
                directory.create(name, b"").expect("a new object");
                let again = directory.create(name, b"").map(drop).map_err(|error| *error);
                prop_assert!(matches!(again, Err(Error::Exists { .. })), "{:?}", again);
                prop_assert_eq!(&directory.open(name, Stage::Pending).expect("just made").header.name, name);
            }
            let listed = directory.list(Stage::Pending).expect("a directory");
            prop_assert_eq!(BTreeSet::from_iter(listed), names.clone());
            // As many files as objects, and the lock. Nothing outside the directory.
            prop_assert_eq!(fs::read_dir(&path).expect("a directory").count(), names.len() + 1);
            prop_assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 1);
        }
    }

    /// Runs `work` as a user without write permission for the directory and its files. Root may write everywhere, so
    /// this thread temporarily becomes an unprivileged user.
    fn without_writing<T>(path: &Path, work: impl FnOnce() -> T) -> T {
        let set_modes = |directory, file| {
            for entry in fs::read_dir(path).expect("a directory") {
                let path = entry.expect("a directory").path();
                fs::set_permissions(path, Permissions::from_mode(file)).expect("our file");
            }
            fs::set_permissions(path, Permissions::from_mode(directory)).expect("our directory");
        };
        set_modes(0o555, 0o444);
        let user = geteuid();
        setfsuid(Uid::from_raw(if user.is_root() { 65534 } else { user.as_raw() }));
        let outcome = work();
        setfsuid(user);
        set_modes(0o755, 0o644);
        outcome
    }

    #[test]
    fn a_read_only_directory_is_readable() {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("our directory");
        let path = place.path().join("disk");
        let directory = Directory::take(&path, NodeId(1)).expect("a fresh directory");
        directory.create("thing", b"label").expect("room");
        assert_eq!(directory.read_only(), None);
        drop(directory);
        fs::write(path.join(".unborn-3"), "half").expect("room");
        without_writing(&path, || {
            let directory = Directory::take(&path, NodeId(1)).expect("it can be read");
            assert!(directory.read_only().is_some_and(|text| text.contains("is read-only")));
            let found = directory.open("thing", Stage::Pending).expect("it can be read");
            assert!(found.header.label == b"label" && found.contents.is_read_only);
            assert_eq!(directory.list(Stage::Pending), Ok(vec!["thing".to_owned()]));
            assert!(matches!(directory.create("other", b"").map_err(|error| *error), Err(Error::Io { .. })));
            assert!(directory.remove("thing", Stage::Pending).is_err());
        });
        let directory = Directory::take(&path, NodeId(1)).expect("as before");
        assert!(!directory.open("thing", Stage::Pending).expect("as before").contents.is_read_only);
    }

    #[test]
    fn a_directory_that_others_use_or_can_change_is_refused() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path();
        let refusal = || Directory::take(path, NodeId(2)).map(drop).map_err(|error| error.to_string());
        let first = Directory::take(path, NodeId(1)).expect("a fresh directory");
        // A program that clears temporary directories ignores locks.
        fs::remove_file(path.join(".starfish.lock")).expect("it exists");
        assert!(refusal().is_err_and(|why| why.contains("in use by another agent")));
        drop(first);
        let victim = path.join("foreign");
        fs::write(&victim, "precious").expect("room");
        fs::remove_file(path.join(".starfish.lock")).expect("it exists");
        symlink(&victim, path.join(".starfish.lock")).expect("room");
        assert!(refusal().is_err_and(|why| why.contains("symbolic link")));
        assert_eq!(fs::read_to_string(&victim).expect("it exists"), "precious");
        fs::remove_file(path.join(".starfish.lock")).expect("it exists");
        for (mode, is_safe) in [(0o777, false), (0o1777, true), (0o775, true)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("our directory");
            assert_eq!(refusal().is_ok(), is_safe, "{mode:o}");
        }
    }

    #[test]
    fn foreign_files_in_place_of_objects_are_reported_and_removable() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("disk");
        // The directory is not searched, and its name is not reused for a file.
        fs::create_dir_all(path.join(".unborn-0")).expect("room");
        let directory = Directory::take(&path, NodeId(1)).expect("a directory");
        directory.create("elsewhere", b"").expect("room");
        let outside = place.path().join("outside.stripe");
        fs::rename(path.join("elsewhere.new"), &outside).expect("the same file system");
        symlink(&outside, path.join("elsewhere.stripe")).expect("room");
        fs::create_dir(path.join("folder.stripe")).expect("room");
        mkfifo(&path.join("pipe.stripe"), Mode::S_IRWXU).expect("room");
        let names = ["elsewhere", "folder", "pipe"];
        assert_eq!(directory.list(Stage::Published), Ok(names.map(str::to_owned).to_vec()));
        for (name, expected) in names.into_iter().zip(["symbolic link", "a directory", "a pipe"]) {
            match directory.open(name, Stage::Published).map(drop).map_err(|error| *error) {
                Err(Error::Damaged { why, .. }) => assert!(why.contains(expected), "{why}"),
                other => panic!("{other:?} for {name}"),
            }
            directory.remove(name, Stage::Published).expect("it can be removed");
            assert!(directory.create(name, b"").is_ok(), "{name}");
        }
        assert!(outside.exists());
    }

    #[test]
    fn a_missing_directory_is_not_mistaken_for_an_empty_one() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("disk");
        let directory = Directory::take(&path, NodeId(1)).expect("a fresh directory");
        directory.create("thing", b"").expect("room");
        let check = |expected: &str| {
            let outcomes = [
                directory.open("thing", Stage::Pending).map(drop),
                directory.create("new", b"").map(drop),
                directory.list(Stage::Pending).map(drop),
                directory.remove("thing", Stage::Pending),
            ];
            for error in outcomes.map(|outcome| *outcome.expect_err("it is not ours")) {
                assert!(matches!(&error, Error::Io { why, .. } if why.contains(expected)), "{error:?}");
            }
        };
        fs::rename(&path, place.path().join("away")).expect("the same file system");
        check("was removed");
        fs::create_dir(&path).expect("room");
        check("was replaced");
        fs::remove_dir(&path).expect("it is empty");
        fs::rename(place.path().join("away"), &path).expect("the same file system");
        assert!(directory.open("thing", Stage::Pending).is_ok());
    }

    #[test]
    fn each_system_error_is_reported_as_its_kind() {
        let reported = |kind: ErrorKind| *io_error("disk", kind.into());
        assert_eq!(reported(ErrorKind::StorageFull), Error::NoSpace { what: "disk".to_owned() });
        assert_eq!(reported(ErrorKind::QuotaExceeded), Error::NoSpace { what: "disk".to_owned() });
        assert_eq!(reported(ErrorKind::FileTooLarge), Error::NoSpace { what: "disk".to_owned() });
        assert_eq!(reported(ErrorKind::NotFound), Error::NotFound { what: "disk".to_owned() });
        assert!(matches!(reported(ErrorKind::PermissionDenied), Error::Io { .. }));
    }
}
