//! The file system for Python: a session with its namespace, and open files. The public interface is in
//! `python/starfish/files.py` and `python/starfish/fsspec.py`.
//!
//! Every call waits without the interpreter lock, and most calls handle signals during the wait (`signals.rs`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use layout::Extent;
use namespace::{
    AttributeChanges, DirectoryEntry, FileNumber, Inode, InodeKind, Location, NewInode, RemovalTarget,
    RenameMode, SetTime, TreeAnswer, TreeOperation, TreeRefusal, UNFINISHED,
};
use node::{ErrorKind, Handle, OpenOptions, Session, Settings, Size, Tree, agents};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use crate::error::{FileFailure, FileResult};
use crate::fresh_bytes::filled_by;
use crate::interruptible_wait;
use crate::of_process::OfProcess;
use crate::reading::{PieceReader, extent};
use crate::signals::wait;

/// The mode of a new directory.
const DIRECTORY_MODE: u16 = 0o755;

/// Attributes of a file or directory, as a dictionary; times in nanoseconds since 1970.
#[derive(IntoPyObject)]
struct FileFacts {
    kind: &'static str,
    size: u64,
    mode: u16,
    uid: u32,
    gid: u32,
    links: u32,
    accessed: i64,
    modified: i64,
    changed: i64,
    made: i64,
    version: u64,
    number: u64,
    /// Only for a file.
    block_bytes: Option<u64>,
    /// Only for a file.
    stripes: Option<u32>,
    /// Only for a symbolic link.
    target: Option<OsString>,
}

impl FileFacts {
    fn of(inode: Inode) -> Self {
        let striping = inode.layout().map(|layout| layout.striping);
        let (kind, target) = match inode.kind {
            InodeKind::File(_) => ("file", None),
            InodeKind::Directory { .. } => ("directory", None),
            InodeKind::Link { target } => ("link", Some(OsString::from_vec(target))),
            InodeKind::Special { .. } => ("other", None),
        };
        FileFacts {
            kind,
            size: if kind == "directory" { 0 } else { inode.size },
            mode: inode.mode,
            uid: inode.uid,
            gid: inode.gid,
            links: inode.links,
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
            made: inode.made,
            version: inode.version,
            number: inode.number.0,
            block_bytes: striping.map(|striping| striping.block_bytes()),
            stripes: striping.map(|striping| striping.stripe_count()),
            target,
        }
    }
}

/// A connection to the agents. Only the process that opened the connection can use it.
#[pyclass(frozen, module = "starfish._native")]
pub(crate) struct FileSession {
    session: OfProcess<Session>,
    tree: OnceLock<OfProcess<Tree>>,
}

#[pymethods]
impl FileSession {
    /// Connects to the named agents, or to the agents that the environment names.
    #[new]
    #[pyo3(signature = (agents, key_file, cache_bytes, block_bytes))]
    fn new(
        py: Python<'_>,
        agents: Vec<String>,
        key_file: Option<PathBuf>,
        cache_bytes: Option<u64>,
        block_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let connected = interruptible_wait::run(py, 0, None, move |_| {
            let mut settings = Settings::of_environment(agents::find_among(&agents, None)?)?;
            settings.key = key_file;
            settings.cache_bytes = cache_bytes.unwrap_or(Settings::CACHE_BYTES);
            let usual: Size = node::BLOCK.parse().expect("a size");
            settings.block_bytes = block_bytes.unwrap_or(usual.0);
            Session::start(settings)
        })?;
        let session = OfProcess::new(connected.map_err(FileFailure::Node)?);
        Ok(FileSession { session, tree: OnceLock::new() })
    }

    /// Returns the attributes of a path.
    fn look(&self, py: Python<'_>, path: OsString, follow: bool) -> FileResult<FileFacts> {
        py.detach(|| Ok(FileFacts::of(self.look_inode(&path, follow)?)))
    }

    /// Returns the entries of a directory, in the order of their names as bytes.
    fn entries(&self, py: Python<'_>, path: OsString) -> FileResult<Vec<(OsString, FileFacts)>> {
        py.detach(|| {
            let directory = self.look_inode(&path, true)?;
            let listed = self.tree()?.run(&shown(&path), move |node, what| async move {
                node.explained(&what, node.tree().entries(directory.number).await)
            });
            let facts = |entry: DirectoryEntry| (OsString::from_vec(entry.name), FileFacts::of(entry.inode));
            Ok(wait(listed)?.into_iter().map(facts).collect())
        })
    }

    /// True if the file with this number is marked as unfinished, and the mark contains the name in `path`: the file is
    /// being written, or was never completed.
    fn is_unfinished(&self, py: Python<'_>, path: OsString, number: u64) -> FileResult<bool> {
        py.detach(|| {
            let get = TreeOperation::GetExtended { number: FileNumber(number), name: UNFINISHED.to_vec() };
            match wait(self.tree()?.perform(&shown(&path), get)) {
                Ok(TreeAnswer::Value(name)) => {
                    Ok(Path::new(&path).file_name() == Some(OsStr::from_bytes(&name)))
                }
                Ok(_) => Ok(false),
                Err(FileFailure::Node(error)) if is_unmarked(error.kind()) => Ok(false),
                Err(failure) => Err(failure),
            }
        })
    }

    /// Creates a directory.
    fn make_directory(&self, py: Python<'_>, path: OsString) -> FileResult<()> {
        py.detach(|| {
            let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
            let (at, new) = (location(&path), NewInode::Directory);
            let make = TreeOperation::Make { at, new, mode: DIRECTORY_MODE, uid, gid, exclusive: true };
            wait(self.tree()?.perform(&shown(&path), make)).map(drop)
        })
    }

    /// Removes the name of a file or of an empty directory.
    fn remove(&self, py: Python<'_>, path: OsString, directory: bool) -> FileResult<()> {
        py.detach(|| {
            let what = if directory { RemovalTarget::Directory } else { RemovalTarget::File };
            let remove = TreeOperation::Remove { at: location(&path), what };
            wait(self.tree()?.unname(&shown(&path), remove))
        })
    }

    /// Renames a file or directory. An existing target is replaced atomically if `replace` is true; otherwise the call
    /// fails.
    fn rename(&self, py: Python<'_>, from: OsString, to: OsString, replace: bool) -> FileResult<()> {
        py.detach(|| {
            let mode = if replace { RenameMode::Replace } else { RenameMode::Keep };
            let what = format!("{} to {}", shown(&from), shown(&to));
            let rename = TreeOperation::Rename { from: location(&from), to: location(&to), mode };
            wait(self.tree()?.unname(&what, rename))
        })
    }

    /// Sets the permissions of a file or directory, or its times to now.
    #[pyo3(signature = (path, mode = None, touch = false))]
    fn change(&self, py: Python<'_>, path: OsString, mode: Option<u16>, touch: bool) -> FileResult<()> {
        py.detach(|| {
            let number = self.look_inode(&path, true)?.number;
            let time = touch.then_some(SetTime::Now);
            let changes =
                AttributeChanges { mode, accessed: time, modified: time, ..AttributeChanges::default() };
            let change = TreeOperation::Change { number, changes };
            wait(self.tree()?.perform(&shown(&path), change)).map(drop)
        })
    }

    /// Opens a file; `options` are `read`, `write`, `append`, `create`, `create_new`, `truncate` and `unfinished`.
    fn open(&self, py: Python<'_>, path: OsString, options: Vec<String>) -> FileResult<FileHandle> {
        let has = |option: &str| options.iter().any(|one| one == option);
        let open = OpenOptions::new()
            .read(has("read"))
            .write(has("write"))
            .append(has("append"))
            .create(has("create"))
            .create_new(has("create_new"))
            .truncate(has("truncate"))
            .unfinished(has("unfinished"));
        py.detach(|| {
            let handle = self.session.get()?.open_path(path.as_bytes(), open)?;
            Ok(FileHandle { handle: OfProcess::new(handle) })
        })
    }

    /// Returns the bytes from `start` to `end` of a file; both as in a Python slice.
    #[pyo3(signature = (path, start = None, end = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: OsString,
        start: Option<i64>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut read = self.read_ranges(py, path, vec![(start, end)])?;
        Ok(read.pop().expect("one for each range"))
    }

    /// Returns the bytes of each of these ranges of a file; their ends are as in Python slices.
    fn read_ranges<'py>(
        &self,
        py: Python<'py>,
        path: OsString,
        ranges: Vec<(Option<i64>, Option<i64>)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let (handle, bytes) = py
            .detach(|| {
                let handle = self.session.get()?.open_path(path.as_bytes(), OpenOptions::new().read(true))?;
                let bytes = handle.known_bytes()?;
                Ok((handle, bytes))
            })
            .map_err(FileFailure::Node)?;
        let extents: Vec<Extent> = ranges.into_iter().map(|(start, end)| extent(start, end, bytes)).collect();
        let mut reading = PieceReader::of_ranges(&handle, &extents);
        let read = extents.iter().map(|extent| read_bytes(py, &mut reading, *extent)).collect();
        drop(reading);
        // Ignore errors: nothing was written.
        drop(py.detach(|| handle.close()));
        read
    }

    /// Returns where a range of a file is stored: offset, length in bytes and agent of each run of consecutive bytes on
    /// the same agent.
    fn blocks(
        &self,
        py: Python<'_>,
        path: OsString,
        offset: u64,
        bytes: u64,
    ) -> FileResult<Vec<(u64, u64, String)>> {
        py.detach(|| blocks(self.tree()?, &path, Extent::new(offset, bytes)))
    }

    /// Flushes all changes of names to stable storage.
    fn flush(&self, py: Python<'_>) -> FileResult<()> {
        py.detach(|| wait(self.tree()?.flush()))
    }

    /// Writes out all data that write-behind still buffers. Fails if any such write failed.
    fn finish(&self, py: Python<'_>) -> FileResult<()> {
        py.detach(|| Ok(self.session.get()?.finish()?))
    }
}

impl FileSession {
    fn tree(&self) -> node::Result<&Tree> {
        if let Some(tree) = self.tree.get() {
            return tree.get();
        }
        let tree = self.session.get()?.tree();
        self.tree.get_or_init(|| OfProcess::new(tree)).get()
    }

    /// Returns the inode of a path, including this session's writes.
    fn look_inode(&self, path: &OsString, follow: bool) -> FileResult<Inode> {
        let look = TreeOperation::Look { at: location(path), follow };
        let looked = self.tree()?.run(&shown(path), move |node, what| async move {
            let inode = node.explained(&what, node.tree().inode(look).await)?;
            Ok(node.tree().seen(inode))
        });
        wait(looked)
    }
}

/// Returns where an extent of a file is stored: see [`FileSession::blocks`].
fn blocks(tree: &Tree, path: &OsString, extent: Extent) -> FileResult<Vec<(u64, u64, String)>> {
    let look = TreeOperation::Look { at: location(path), follow: true };
    let found = tree.run(&shown(path), move |node, what| async move {
        let inode = node.explained(&what, node.tree().inode(look).await)?;
        let file = node.explained(&what, node.tree().numbered(&node.tree().seen(inode)).await)?;
        let places = node.explained(&what, node.client().disks_by_identity().await)?;
        let mut blocks: Vec<(u64, u64, String)> = Vec::new();
        for request in file.striping.requests(extent.clip(file.bytes)) {
            let disk = file.disks[request.stripe as usize];
            let agent = places.get(&disk).map(|(agent, _)| node.agent(*agent)).unwrap_or_default();
            match blocks.last_mut() {
                Some((_, bytes, last)) if last == agent => *bytes += request.bytes,
                _ => blocks.push((request.file_offset, request.bytes, agent.to_owned())),
            }
        }
        Ok(blocks)
    });
    wait(found)
}

/// An open file, without a position.
#[pyclass(frozen, module = "starfish._native")]
pub(crate) struct FileHandle {
    handle: OfProcess<Handle>,
}

#[pymethods]
impl FileHandle {
    /// Returns the size in bytes, including this session's writes.
    fn size(&self, py: Python<'_>) -> FileResult<u64> {
        py.detach(|| Ok(self.handle.get()?.known_bytes()?))
    }

    /// Returns `bytes` bytes from `offset`, or fewer at the end of the file.
    fn read_at<'py>(&self, py: Python<'py>, offset: u64, bytes: u64) -> PyResult<Bound<'py, PyBytes>> {
        let handle = self.handle.get().map_err(FileFailure::Node)?;
        let extent = Extent::new(offset, bytes).clip(self.size(py)?);
        read_bytes(py, &mut PieceReader::of(handle, extent), extent)
    }

    /// Reads from `offset` until the memory is full or the file ends. Returns the number of bytes.
    fn read_into(&self, py: Python<'_>, offset: u64, into: &Bound<'_, PyMemoryView>) -> PyResult<usize> {
        let handle = self.handle.get().map_err(FileFailure::Node)?;
        let extent = Extent::new(offset, into.len()? as u64).clip(self.size(py)?);
        let mut reading = PieceReader::of(handle, extent);
        let mut filled = 0;
        while let Some(pages) = py.detach(|| reading.next())? {
            for page in pages {
                let bytes = page.as_slice();
                let place = PySlice::new(py, filled.try_into()?, (filled + bytes.len()).try_into()?, 1);
                PyBuffer::<u8>::get(&into.get_item(place)?)?.copy_from_slice(py, bytes)?;
                filled += bytes.len();
            }
        }
        Ok(filled)
    }

    /// Writes bytes at `offset`.
    fn write_at(&self, py: Python<'_>, offset: u64, bytes: PyBuffer<u8>) -> FileResult<()> {
        let bytes = bytes.to_vec(py)?;
        py.detach(|| wait(self.handle.get()?.begin_write(offset, bytes)))
    }

    /// Writes bytes at the current end of the file. Returns their offset.
    fn append(&self, py: Python<'_>, bytes: PyBuffer<u8>) -> FileResult<u64> {
        let bytes = bytes.to_vec(py)?;
        py.detach(|| wait(self.handle.get()?.begin_append(bytes)))
    }

    /// Truncates the file to `bytes`, or extends it with zeros.
    fn set_size(&self, py: Python<'_>, bytes: u64) -> FileResult<()> {
        py.detach(|| wait(self.handle.get()?.begin_set_len(bytes)))
    }

    /// Flushes all writes to stable storage.
    fn flush(&self, py: Python<'_>) -> FileResult<()> {
        py.detach(|| wait(self.handle.get()?.begin_flush()))
    }

    /// Sends all writes to the agents, without flushing them to stable storage.
    fn send(&self, py: Python<'_>) -> FileResult<()> {
        py.detach(|| wait(self.handle.get()?.begin_send()))
    }

    /// Closes the file. Clients that open it afterwards see the writes.
    fn close(&self, py: Python<'_>) -> FileResult<()> {
        py.detach(|| wait(self.handle.get()?.begin_close()))
    }
}

/// Reads the next extent directly into a new Python object; returns fewer bytes if the file was truncated.
fn read_bytes<'py>(
    py: Python<'py>,
    reading: &mut PieceReader<'_>,
    extent: Extent,
) -> PyResult<Bound<'py, PyBytes>> {
    filled_by(py, usize::try_from(extent.bytes)?, |into| Ok(py.detach(|| reading.fill(into, extent))?))
}

/// True if this error means that a file is not marked as unfinished: it was removed, or renamed to its final name.
fn is_unmarked(why: ErrorKind) -> bool {
    matches!(why, ErrorKind::NotFound | ErrorKind::Refused(TreeRefusal::NoAttribute))
}

fn location(path: &OsString) -> Location {
    Location::of_path(path.as_bytes())
}

/// Returns the path as it appears in errors.
fn shown(path: &OsString) -> String {
    path.to_string_lossy().into_owned()
}
