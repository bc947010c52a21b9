//! Copies a whole file to or from the agents by a chosen method; returns its hash and the duration.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use command_line::mib;
use command_line::progress::Progress;
use command_line::say;
use layout::Extent;
use namespace::{Inode, UnixTime};
use node::ConnectedNode;
use node::sparse::{SparseRead, SparseWrite};
use node::whole_file::{self, CopyError, Method};

use crate::interrupt::{Interruption, UnfinishedWork};
use crate::local::Hashing;
use crate::namespace::{Namespace, joined, trimmed};
use crate::remote_file::{HiddenFile, ReadableFile, WantedFile};

/// Completed transfer.
#[derive(Clone, Debug)]
pub struct Done {
    /// Name of the file on the agents.
    pub name: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Time from the first request until the last byte was received or acknowledged.
    pub elapsed: Duration,
    /// Hash of the file, if requested.
    pub hash: Option<blake3::Hash>,
    /// Inode of a file that was read, or that already existed.
    pub inode: Option<Inode>,
}

impl Done {
    /// Returns the throughput in MiB/s.
    pub fn throughput(&self) -> f64 {
        mib(self.bytes) / self.elapsed.as_secs_f64()
    }
}

/// Reads a file and writes all of it to `output`.
pub async fn get<W: SparseWrite + Send + 'static>(
    namespace: &Namespace,
    name: &str,
    method: Method,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<Done> {
    let stored = ReadableFile::open(namespace, name.as_bytes()).await?;
    let bytes = stored.file().bytes();
    progress.expect(bytes);
    let start = Instant::now();
    let (connection, file) = (&namespace.connection, stored.file());
    let output = whole_file::download(connection, file, method, output, adding_to(progress)).await;
    let output = output.map_err(|error| failed_to_get(name, error))?;
    let (inode, elapsed) = (Some(stored.inode()), start.elapsed());
    stored.close(name).await?;
    Ok(Done { name: name.to_owned(), bytes, elapsed, hash: output.hash(), inode })
}

/// Returns a function that adds a number of bytes to `progress`.
pub fn adding_to(progress: &Progress) -> impl Fn(u64) + Clone + 'static {
    let progress = progress.clone();
    move |bytes| progress.add(bytes)
}

/// Returns the failure for a file that could not be read.
pub fn failed_to_get(name: &str, error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => error.about(name).into(),
        CopyError::Local(error) => Failure::writing(format!("the contents of {name}"), &error),
    }
}

/// Result of reading a damaged file.
pub struct SalvageResult {
    /// Hash of all written bytes, if requested.
    pub hash: Option<blake3::Hash>,
    /// Ranges that could not be read.
    pub lost: Vec<Extent>,
    /// Inode of the file.
    pub inode: Option<Inode>,
    /// Error that names the agents that do not answer, if any.
    pub absence: Option<node::Error>,
}

/// Writes the readable part of a file to `output`, with zeros in place of the rest.
pub async fn salvage<W: SparseWrite + Send + 'static>(
    namespace: &Namespace,
    name: &str,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<SalvageResult> {
    let connection = &namespace.connection;
    let stored = ReadableFile::open(namespace, name.as_bytes()).await?;
    let remains = stored.file().remains();
    progress.expect(remains.bytes());
    let salvaged = whole_file::salvage(connection, name, remains, output, adding_to(progress)).await;
    let (output, lost) = salvaged.map_err(|error| failed_to_get(name, error))?;
    let inode = Some(stored.inode());
    stored.close(name).await?;
    Ok(SalvageResult { hash: output.hash(), lost, inode, absence: connection.incompleteness().err() })
}

/// Options for uploading a file.
#[derive(Clone, Debug)]
pub struct Put {
    /// Size of a block in bytes: consecutive blocks lie on different disks.
    pub block_bytes: u64,
    /// Number of disks for the file; `None` for all.
    pub disks: Option<NonZeroU32>,
    /// Transfer method.
    pub method: Method,
    /// True if a file of the same name is replaced, once the new one is complete.
    pub replace: bool,
    /// Size in bytes and modification time. If the stored file of this name has both, it is kept and nothing is
    /// uploaded.
    pub left_alone: Option<(u64, UnixTime)>,
    /// Name of the new file within a directory, used if the target is a directory.
    pub own_name: Option<String>,
    /// Attributes of the new file.
    pub attributes: Attributes,
}

/// Attributes of a file that is uploaded.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// Permissions of the file.
    pub mode: u16,
    /// Modification time; `None` for the current time.
    pub modified: Option<UnixTime>,
}

/// True if a file has this size and this modification time.
pub fn is_same(inode: &Inode, (bytes, modified): (u64, UnixTime)) -> bool {
    inode.layout().is_some() && (inode.size, inode.modified) == (bytes, modified)
}

/// Creates a file with the contents of `input`. When the function returns, the file is on stable storage. After a
/// failure or interruption no new file is left, and a file to be replaced is unchanged.
pub async fn put<R: SparseRead + Send + 'static>(
    namespace: &Namespace,
    name: &str,
    put: &Put,
    input: Hashing<R>,
    progress: &Progress,
    interruption: &Interruption,
) -> Result<Done> {
    let connection = &namespace.connection;
    let name = put.name_in(namespace, name).await?;
    if let Some(there) = put.there(namespace, &name).await? {
        return Ok(there);
    }
    for disk in connection.failing_disks() {
        say!("starfish: {disk}. New files are not striped over this disk.");
    }
    let left = left_hidden(&name);
    let undo_guard = begin(interruption, &name, &left);
    let new = HiddenFile::begin(namespace, name.as_bytes(), put.wanted(connection)?).await?;
    let start = Instant::now();
    let upload = whole_file::upload(connection, new.file(), put.method, input, adding_to(progress));
    match interruption.unless(new.while_open(upload)).await {
        Some(Ok((input, uploaded))) => {
            new.complete(uploaded).await?;
            namespace.flush().await?;
            let (bytes, elapsed) = (uploaded.bytes, start.elapsed());
            Ok(Done { name, bytes, elapsed, hash: input.hash(), inode: None })
        }
        // Report the first failure. If the unfinished file could not be removed, report that, too.
        Some(Err(error)) => {
            let failure = failed_to_put(&new.name(), error);
            Err(match new.discard().await {
                Ok(()) => failure,
                Err(_) => failure.also(&left),
            })
        }
        None => {
            progress.finish();
            let interrupted = Failure::new(&name, "interrupted. The new file was removed");
            Err(undo_guard.undone(interrupted, new.discard().await))
        }
    }
}

impl Put {
    /// Returns the options for a new file with blocks of `block_bytes` bytes.
    pub fn new(block_bytes: u64, method: Method) -> Put {
        let attributes = Attributes { mode: 0o644, modified: None };
        Put { block_bytes, disks: None, method, replace: false, left_alone: None, own_name: None, attributes }
    }

    /// Returns the existing file if it equals the new one, so that the upload is skipped.
    async fn there(&self, namespace: &Namespace, name: &str) -> Result<Option<Done>> {
        let Some(left_alone) = self.left_alone else { return Ok(None) };
        let there = namespace.look_if_there(name.as_bytes()).await?;
        let Some(inode) = there.filter(|inode| is_same(inode, left_alone)) else { return Ok(None) };
        let is_whole = namespace.is_whole(name.as_bytes(), &inode).await?;
        Ok(is_whole.then(|| Done {
            name: name.to_owned(),
            bytes: inode.size,
            elapsed: Duration::ZERO,
            hash: None,
            inode: Some(inode),
        }))
    }

    /// Returns the path of the new file: `name`, or `own_name` within it if `name` is a directory.
    async fn name_in(&self, namespace: &Namespace, name: &str) -> Result<String> {
        let is_directory = name.ends_with('/') || namespace.is_directory(name.as_bytes()).await?;
        match &self.own_name {
            Some(own) if is_directory => {
                let path = joined(trimmed(name.as_bytes()), own.as_bytes());
                Ok(String::from_utf8(path).expect("both are UTF-8"))
            }
            _ => Ok(name.to_owned()),
        }
    }

    fn wanted(&self, connection: &ConnectedNode) -> Result<WantedFile> {
        let striping = connection.striping(self.block_bytes, self.disks)?;
        let Attributes { mode, modified } = self.attributes;
        Ok(WantedFile { striping, mode, modified, replace: self.replace })
    }
}

/// Returns the failure for a file that could not be written.
pub fn failed_to_put(name: &str, error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => error.about(name).into(),
        CopyError::Local(error) => Failure::new("cannot read the input", error),
    }
}

/// Returns the message about an unfinished file that could not be removed.
fn left_hidden(name: &str) -> String {
    format!(
        "An unfinished part of {name} may be left under a hidden name. `starfish rm --unfinished` removes it \
         when it is an hour old; with --older-than 0s, at once."
    )
}

/// Registers an upload in progress, so that an interruption removes its file. `left` is the message if there is no time
/// for the removal.
fn begin(interruption: &Interruption, name: &str, left: &str) -> UnfinishedWork {
    let failure = Failure::new(name, "interrupted, and there was no time to remove the written part");
    interruption.begin(failure.remedy(left))
}

/// Registers uploads in progress, so that an interruption removes their hidden files.
pub fn begin_hidden(interruption: &Interruption, name: &str) -> UnfinishedWork {
    begin(interruption, name, &left_hidden(name))
}
