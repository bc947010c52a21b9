//! The directory of a disk: making, finding and removing the files of objects. Blocking calls, all of it.
//!
//! An object comes into being in one step. Its header is written to a file of another name, made safe, and
//! only then linked to its own name, which fails if there is one. A node killed meanwhile leaves at worst a
//! file of the other kind, which nobody lists and the next start removes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use machine::{Error, NodeId, Result, Space};
use nix::sys::statvfs::statvfs;

use super::header::{self, Header, Refusal};
use super::layout::{GROUP_BYTES, Layout, UNIT_BYTES, group_of};
use super::name::{self, Decoded};
use super::record::Record;
use super::stored::Contents;
use super::units::{Seal, UnitSums};

/// How the names of files begin that are not objects yet. No object's file name begins with a dot, except
/// that of the object without a name.
const UNBORN: &str = ".unborn-";

/// Groups at the end of a file that are searched for the object's end if the file is longer than was flushed: 64 GiB.
const UNFLUSHED_GROUPS_MAX: u64 = (64 << 30) / GROUP_BYTES;

const LOCK: &str = ".starfish.lock";

/// What tells a file from all others, those that have its name later among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// An object's file, opened.
pub(crate) struct Found {
    pub(crate) file: File,
    pub(crate) identity: Identity,
    pub(crate) header: Header,
    /// What is known of what is in it, the note of the file system with the record among it.
    pub(crate) contents: Contents,
}

/// A directory that belongs to this process.
pub(crate) struct Directory {
    path: PathBuf,
    unborn: AtomicU64,
    /// Locked for as long as it is open.
    _lock: File,
}

impl Directory {
    /// Takes the directory for `node`, and removes what a killed node left half-made.
    pub(crate) fn take(path: &Path, node: NodeId) -> Result<Self> {
        let failed = |error| io_error(&format!("disk directory {}", path.display()), error);
        match fs::create_dir(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let lock = lock(path, node)?;
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(UNBORN.as_bytes()) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(Directory { path: path.to_owned(), unborn: AtomicU64::new(0), _lock: lock })
    }

    /// The space of the file system it is on, and what of it is free for this process.
    pub(crate) fn space(&self) -> Result<Space> {
        let space = statvfs(&self.path);
        let space = space
            .map_err(|error| io_error(&format!("disk directory {}", self.path.display()), error.into()))?;
        let unit = space.fragment_size();
        Ok(Space { bytes: space.blocks() * unit, free: space.blocks_available() * unit })
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name::encode(name))
    }

    /// The object as error messages call it.
    pub(crate) fn describe(&self, name: &str) -> String {
        format!("object `{name}` ({})", self.path_of(name).display())
    }

    pub(crate) fn create(&self, name: &str, label: &[u8]) -> Result<Found> {
        let mut begin_of_file = Header::encode(name, label)?;
        let seal = Seal { layout: Layout::V3, identity: header::identity_of(&begin_of_file) };
        let (record, record_at) = Record::default().encode(&seal.layout, seal.identity);
        begin_of_file.resize(record_at as usize, 0);
        begin_of_file.extend_from_slice(&record);
        let failed = |error| io_error(&self.describe(name), error);
        let serial = self.unborn.fetch_add(1, Ordering::Relaxed);
        let unborn = self.path.join(format!("{UNBORN}{serial}"));
        let made = (|| {
            let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&unborn)?;
            file.write_all(&begin_of_file)?;
            file.set_len(seal.layout.groups)?;
            file.sync_data()?;
            fs::hard_link(&unborn, self.path_of(name))?;
            let identity = Identity::of(&file)?;
            Ok((file, identity))
        })();
        let removed = fs::remove_file(&unborn);
        let (file, identity) = made.map_err(failed)?;
        removed.map_err(failed)?;
        let header = Header {
            layout: seal.layout,
            name: name.to_owned(),
            label: label.to_vec(),
            identity: seal.identity,
        };
        let contents = Contents { seal, bytes: 0, has_excess: false, record: Record::default() };
        Ok(Found { file, identity, header, contents })
    }

    pub(crate) fn open(&self, name: &str) -> Result<Found> {
        let failed = |error| io_error(&self.describe(name), error);
        let refused = |refusal: Refusal| refusal.of(self.describe(name));
        let file = OpenOptions::new().read(true).write(true).open(self.path_of(name)).map_err(failed)?;
        let header = read_header(&file).map_err(failed)?.map_err(refused)?;
        if header.name != name {
            let why = format!("it calls itself `{}`: was its file renamed?", header.name);
            return Err(refused(Refusal::Damaged(why)));
        }
        let seal = Seal { layout: header.layout, identity: header.identity };
        let contents = read_contents(&file, seal).map_err(failed)?.map_err(refused)?;
        let identity = Identity::of(&file).map_err(failed)?;
        Ok(Found { file, identity, header, contents })
    }

    /// The names of all objects, sorted. Other files are left alone.
    pub(crate) fn list(&self) -> Result<Vec<String>> {
        let failed = |error| io_error(&format!("disk directory {}", self.path.display()), error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let decoded = entry.file_name().to_str().and_then(name::decode);
            match decoded {
                Some(_) if !entry.file_type().map_err(failed)?.is_file() => {}
                Some(Decoded::Name(name)) => names.push(name),
                Some(Decoded::Shortened) => names.extend(full_name(&entry.path())),
                None => {}
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes an object, also one that is damaged.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        fs::remove_file(self.path_of(name)).map_err(|error| io_error(&self.describe(name), error))
    }

    /// Waits until all that was made and removed is so on the medium.
    pub(crate) fn sync(&self) -> Result<()> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| io_error(&format!("disk directory {}", self.path.display()), error))
    }
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Identity { device: metadata.dev(), inode: metadata.ino() })
    }
}

fn lock(path: &Path, node: NodeId) -> Result<File> {
    let what = format!("disk directory {}", path.display());
    let failed = |error| io_error(&what, error);
    let mut lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(LOCK))
        .map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Who it is helps, but that it is so suffices.
            let _ = lock.read_to_string(&mut holder);
            let why = format!("it is in use by another agent ({})", holder.trim());
            return Err(Error::Io { what, why }.into());
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let holder = format!("{node}, process {}\n", std::process::id());
    lock.set_len(0).and_then(|()| lock.write_all(holder.as_bytes())).map_err(failed)?;
    Ok(lock)
}

/// The header of an object's file, or what is wrong with it.
fn read_header(file: &File) -> io::Result<std::result::Result<Header, Refusal>> {
    let mut bytes = [0; header::BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(Header::decode(&bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            let why = format!("its file is shorter than the header of {} bytes", header::BYTES);
            Ok(Err(Refusal::Damaged(why)))
        }
        Err(error) => Err(error),
    }
}

/// What an object's file has, or what is wrong with it. What is missing or changed in it is told when it is read.
fn read_contents(file: &File, seal: Seal) -> io::Result<std::result::Result<Contents, Refusal>> {
    let Some(in_file) = seal.layout.object_bytes(file.metadata()?.len()) else {
        let why = format!("its file is shorter than the {} bytes before data", seal.layout.groups);
        return Ok(Err(Refusal::Damaged(why)));
    };
    let mut begin_of_file = vec![0; seal.layout.groups as usize];
    file.read_exact_at(&mut begin_of_file, 0)?;
    let record = match Record::latest(&begin_of_file, &seal.layout, seal.identity) {
        Some(record) => record,
        // Earlier programs wrote none before the first flush.
        None if !seal.layout.keeps_flushed => Record::default(),
        None => {
            let why = "neither of the two records of what was flushed matches its checksum".to_owned();
            return Ok(Err(Refusal::Damaged(why)));
        }
    };
    let bytes = length(file, &seal, &record, in_file)?;
    let has_excess = file.metadata()?.len() > seal.layout.file_bytes(bytes);
    Ok(Ok(Contents { seal, bytes, has_excess, record }))
}

/// How long an object is whose file has room for `in_file` bytes: as it was flushed, or as it was written since.
fn length(file: &File, seal: &Seal, record: &Record, in_file: u64) -> io::Result<u64> {
    if !seal.layout.keeps_flushed || in_file <= record.bytes {
        return Ok(in_file.max(record.bytes));
    }
    let (flushed, last) = (group_of(record.bytes), group_of(in_file - 1));
    let mut page = vec![0; seal.layout.sums_bytes()];
    for group in (flushed.max(last.saturating_sub(UNFLUSHED_GROUPS_MAX))..=last).rev() {
        file.read_exact_at(&mut page, seal.layout.sums_in_file(group))?;
        for (end, sums) in seal.decode(&page, group, in_file, false).ends(group) {
            if end <= record.bytes {
                return Ok(record.bytes);
            }
            if end <= in_file && is_there(file, seal, end, sums)? {
                return Ok(end);
            }
        }
    }
    Ok(record.bytes)
}

/// Whether the unit in which an object ends at `end` matches its sums.
fn is_there(file: &File, seal: &Seal, end: u64, sums: UnitSums) -> io::Result<bool> {
    let at = (end - 1) / UNIT_BYTES * UNIT_BYTES;
    let mut unit = [0; UNIT_BYTES as usize];
    file.read_exact_at(&mut unit[..(end - at) as usize], seal.layout.in_file(at))?;
    Ok(seal.vouching(sums, at, &unit).is_some())
}

/// The name of an object whose file name is too short for it. One that cannot be read is not listed.
fn full_name(path: &Path) -> Option<String> {
    let header = read_header(&File::open(path).ok()?).ok()?.ok()?;
    (path.file_name()?.to_str()? == name::encode(&header.name)).then_some(header.name)
}

/// The failure of an operation on `what`, told apart as far as callers care.
pub(crate) fn io_error(what: &str, error: io::Error) -> Box<Error> {
    let what = what.to_owned();
    let error = match error.kind() {
        ErrorKind::NotFound => Error::NotFound { what },
        ErrorKind::AlreadyExists => Error::Exists { what },
        // The last one: a limit on the length of files, of the system or of the process.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Error::NoSpace { what }
        }
        _ => Error::Io { what, why: error.to_string() },
    };
    error.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        // Any characters; those that file systems dislike; and more of these than a file name takes.
        prop_oneof![".{0,50}", "[./%\\\\\\x00-\\x1f~]{0,20}", "(/[a-z.]|%|ü){0,66}", "(\\.|\\./)*[a-z]{0,3}"]
            .prop_filter("at most 200 bytes", |name| name.len() <= 200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn every_name_stays_in_the_directory_and_is_listed(names in proptest::collection::btree_set(name(), 1..20)) {
            let place = tempfile::tempdir().expect("a temporary directory");
            let path = place.path().join("disk");
            let directory = Directory::take(&path, NodeId(1)).expect("a fresh directory");
            for name in &names {
                directory.create(name, b"").expect("a new object");
                let again = directory.create(name, b"").map(drop).map_err(|error| *error);
                prop_assert!(matches!(again, Err(Error::Exists { .. })), "{:?}", again);
                prop_assert_eq!(&directory.open(name).expect("just made").header.name, name);
            }
            let listed = directory.list().expect("a directory");
            prop_assert_eq!(BTreeSet::from_iter(listed), names.clone());
            // As many files as objects, and the lock; and nothing beside the directory.
            prop_assert_eq!(fs::read_dir(&path).expect("a directory").count(), names.len() + 1);
            prop_assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 1);
        }
    }

    #[test]
    fn failures_that_callers_act_on_are_told_apart() {
        let told = |kind: ErrorKind| *io_error("disk", kind.into());
        assert_eq!(told(ErrorKind::StorageFull), Error::NoSpace { what: "disk".to_owned() });
        assert_eq!(told(ErrorKind::QuotaExceeded), Error::NoSpace { what: "disk".to_owned() });
        assert_eq!(told(ErrorKind::FileTooLarge), Error::NoSpace { what: "disk".to_owned() });
        assert_eq!(told(ErrorKind::NotFound), Error::NotFound { what: "disk".to_owned() });
        assert!(matches!(told(ErrorKind::PermissionDenied), Error::Io { .. }));
    }
}
