//! Moving a whole file by either method, with its hash and the time it took.

use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use command_line::failure::{Failure, Result};
use command_line::mib;
use command_line::progress::Progress;
use command_line::say;
use layout::Extent;
use namespace::{Inode, UnixTime};
use node::sparse::{SparseRead, SparseWrite};
use node::whole_file::{self, CopyError, Uploaded};
use node::{BlockingWork, ConnectedNode};

use crate::cluster::Cluster;
use crate::group;
use crate::interrupt::{Interruption, Undertaking};
use crate::local::Hashing;
use crate::namespace::{Namespace, joined, trimmed};
use crate::stored::{HiddenFile, ReadableFile, WantedFile};

/// How data get from disks to memory and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Request block after block, through a window of memory. For files of any size.
    Traditional,
    /// Let a group of compute nodes make one request and the agents move the data in the order of their
    /// disks. The file has to fit into memory.
    DiskDirected,
}

impl Method {
    /// As options have it.
    pub fn name(self) -> &'static str {
        match self {
            Method::Traditional => "traditional",
            Method::DiskDirected => "disk-directed",
        }
    }
}

/// By which method a file is moved, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Movers {
    /// The method.
    pub method: Method,
    /// Compute nodes in the group; only for [`Method::DiskDirected`].
    pub compute_nodes: u32,
}

impl Movers {
    /// This node alone.
    pub const ALONE: Movers = Movers { method: Method::Traditional, compute_nodes: 1 };
}

/// A transfer that is over.
#[derive(Clone, Debug)]
pub struct Done {
    /// What the file is called on the agents.
    pub name: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Time it took, from the first request until the last byte was where it belongs.
    pub elapsed: Duration,
    /// The file's hash, if it was asked for.
    pub hash: Option<blake3::Hash>,
    /// What is known of a file that was got, or was there already.
    pub inode: Option<Inode>,
}

impl Done {
    /// Throughput in MiB/s.
    pub fn throughput(&self) -> f64 {
        mib(self.bytes) / self.elapsed.as_secs_f64()
    }
}

/// Reads a file and writes all of it to `output`. A group of compute nodes connects to the agents of `cluster`.
pub async fn get<W: SparseWrite + Send + 'static>(
    cluster: &Cluster,
    namespace: &Namespace,
    name: &str,
    method: Movers,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<Done> {
    let stored = ReadableFile::open(namespace, name.as_bytes()).await?;
    let bytes = stored.file().bytes();
    progress.expect(bytes);
    let (hash, elapsed) = match method.method {
        Method::Traditional => read(namespace, &stored, name, output, progress).await?,
        Method::DiskDirected => {
            read_by_group((cluster, method.compute_nodes), &stored, name, output, progress).await?
        }
    };
    let inode = stored.inode();
    stored.close(name).await?;
    Ok(Done { name: name.to_owned(), bytes, elapsed, hash, inode: Some(inode) })
}

/// Copies a file to `output`. Returns the hash, if it was asked for, and the time.
async fn read<W: SparseWrite + Send + 'static>(
    namespace: &Namespace,
    stored: &ReadableFile,
    name: &str,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<(Option<blake3::Hash>, Duration)> {
    let start = Instant::now();
    let output =
        whole_file::download(&namespace.connection, stored.file(), output, adding_to(progress)).await;
    let output = output.map_err(|error| failed_to_get(name, error))?;
    Ok((output.hash(), start.elapsed()))
}

/// Has a group of compute nodes read a file, and writes it to `output`. Returns the hash, if it was asked for, and the
/// time of the group.
async fn read_by_group<W: SparseWrite>(
    (cluster, members): (&Cluster, u32),
    stored: &ReadableFile,
    name: &str,
    mut output: Hashing<W>,
    progress: &Progress,
) -> Result<(Option<blake3::Hash>, Duration)> {
    let (bytes, file) = (stored.file().bytes(), stored.for_group(name).await?);
    let (cluster, named) = (cluster.clone(), name.to_owned());
    let reading = BlockingWork::begin(move || group::read(&cluster, (&named, file), bytes, members));
    let moved = reading.outcome().await?;
    for part in &moved.parts {
        let written = output.write_all(part);
        written.map_err(|error| Failure::writing(format!("what {name} holds"), &error))?;
        progress.add(part.len() as u64);
    }
    Ok((output.hash(), moved.elapsed))
}

/// Counts what is done in a progress.
pub fn adding_to(progress: &Progress) -> impl Fn(u64) + Clone + 'static {
    let progress = progress.clone();
    move |bytes| progress.add(bytes)
}

/// Why a file was not got.
pub fn failed_to_get(name: &str, error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => error.about(name).into(),
        CopyError::Local(error) => Failure::writing(format!("what {name} holds"), &error),
    }
}

/// What could be read of a file.
pub struct Salvaged {
    /// The hash of all that was written, if it was asked for.
    pub hash: Option<blake3::Hash>,
    /// Which bytes could not be read.
    pub lost: Vec<Extent>,
    /// What is known of the file.
    pub inode: Option<Inode>,
    /// Which agents do not answer, if any do not.
    pub absence: Option<node::Error>,
}

/// Reads what can be read of a file and writes it to `output`, with zeros in place of the rest.
pub async fn salvage<W: SparseWrite + Send + 'static>(
    namespace: &Namespace,
    name: &str,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<Salvaged> {
    let connection = &namespace.connection;
    let stored = ReadableFile::open(namespace, name.as_bytes()).await?;
    let remains = stored.file().remains();
    progress.expect(remains.bytes());
    let salvaged = whole_file::salvage(connection, name, remains, output, adding_to(progress)).await;
    let (output, lost) = salvaged.map_err(|error| failed_to_get(name, error))?;
    let inode = Some(stored.inode());
    stored.close(name).await?;
    Ok(Salvaged { hash: output.hash(), lost, inode, absence: connection.incompleteness().err() })
}

/// How a file is to be put.
#[derive(Clone, Debug)]
pub struct Put {
    /// Bytes on one disk before the file goes on on the next.
    pub block_bytes: u64,
    /// How many disks it lies on; without this on all.
    pub disks: Option<NonZeroU32>,
    /// How data get to the disks.
    pub method: Movers,
    /// Whether a file of the same name is replaced, once the new one is finished.
    pub replace: bool,
    /// The size and the time of a file of the same name that is left alone; nothing is put then.
    pub left_alone: Option<(u64, UnixTime)>,
    /// What it is called in a directory, if the name leads to one.
    pub own_name: Option<String>,
    /// What is noted of it.
    pub attributes: Attributes,
}

/// What is noted of a file that is put.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// Its permissions.
    pub mode: u16,
    /// When its contents were changed, if that is not now.
    pub modified: Option<UnixTime>,
}

/// Whether a file has this size and this time, as its copy has.
pub fn is_same(inode: &Inode, (bytes, modified): (u64, UnixTime)) -> bool {
    inode.layout().is_some() && (inode.size, inode.modified) == (bytes, modified)
}

/// Makes a file of all that `input` holds, on the disks when this returns. What fails or is interrupted leaves
/// no file, and one that was to be replaced as it was. A group of compute nodes connects to the agents of `cluster`.
///
/// `size` is the size of the input, as far as known.
pub async fn put<R: SparseRead + Send + 'static>(
    cluster: &Cluster,
    namespace: &Namespace,
    name: &str,
    put: &Put,
    (input, size): (Hashing<R>, Option<u64>),
    progress: &Progress,
    interruption: &Interruption,
) -> Result<Done> {
    match (put.method.method, size) {
        (Method::Traditional, _) => {
            let write = async |new: &HiddenFile| write(namespace, new, input, progress).await;
            put_by(write, namespace, name, put, progress, interruption).await
        }
        (Method::DiskDirected, Some(bytes)) => {
            let (parts, hash) = parts_of(name, input, bytes, put.method.compute_nodes).await?;
            let write = async |new: &HiddenFile| write_by_group(cluster, new, parts, bytes).await;
            let done = put_by(write, namespace, name, put, progress, interruption).await?;
            progress.add(bytes);
            // Of a file that was there already, too: the input has been read.
            Ok(Done { hash, ..done })
        }
        (Method::DiskDirected, None) => {
            let failure = Failure::usage(name, "the method disk-directed has to know the size beforehand");
            Err(failure.remedy("Put a file, or use --method traditional."))
        }
    }
}

/// Copies all of the input to a new file.
async fn write<R: SparseRead + Send + 'static>(
    namespace: &Namespace,
    new: &HiddenFile,
    input: Hashing<R>,
    progress: &Progress,
) -> Result<Moved> {
    let copied = whole_file::upload(&namespace.connection, new.file(), input, adding_to(progress));
    let copied = new.while_open(copied).await;
    let (input, uploaded) = copied.map_err(|error| failed_to_put(&new.name(), error))?;
    Ok(Moved { uploaded, hash: input.hash(), elapsed: None })
}

/// Has a group of compute nodes write a new file of these parts.
async fn write_by_group(
    cluster: &Cluster,
    new: &HiddenFile,
    parts: Vec<Vec<u8>>,
    bytes: u64,
) -> Result<Moved> {
    let file = new.for_group(bytes).await?;
    let (cluster, named) = (cluster.clone(), new.name());
    let writing = BlockingWork::begin(move || group::write(&cluster, (&named, file), parts));
    let moved = new.while_open(writing.outcome()).await?;
    let committing = Instant::now();
    new.to_disks(bytes).await?;
    let elapsed = Some(moved.elapsed + committing.elapsed());
    Ok(Moved { uploaded: Uploaded { bytes, written: bytes }, hash: None, elapsed })
}

/// Reads an input of `bytes` bytes into memory, in the parts of `nodes` compute nodes. Returns its hash, too, if it was
/// asked for.
async fn parts_of<R: Read + Send + 'static>(
    name: &str,
    mut input: Hashing<R>,
    bytes: u64,
    nodes: u32,
) -> Result<(Vec<Vec<u8>>, Option<blake3::Hash>)> {
    let lengths = group::lengths(name, bytes, nodes)?;
    let reading =
        BlockingWork::begin(move || read_parts(&mut input, &lengths).map(|parts| (parts, input.hash())));
    reading.outcome().await.map_err(|error| Failure::new("reading the input", error))
}

/// What has been moved into a file that is being put.
struct Moved {
    uploaded: Uploaded,
    hash: Option<blake3::Hash>,
    /// The time of the collective operation; without this all counts from the first byte until the file has its name.
    elapsed: Option<Duration>,
}

/// Makes a file, has `move_data` write it, and gives it its name.
async fn put_by(
    move_data: impl AsyncFnOnce(&HiddenFile) -> Result<Moved>,
    namespace: &Namespace,
    name: &str,
    put: &Put,
    progress: &Progress,
    interruption: &Interruption,
) -> Result<Done> {
    let connection = &namespace.connection;
    let name = put.name_in(namespace, name).await?;
    if let Some(there) = put.there(namespace, &name).await? {
        return Ok(there);
    }
    for disk in connection.failing_disks() {
        say!("starfish: {disk}. New files do not lie on it.");
    }
    let left = left_hidden(&name);
    let half_done = begin(interruption, &name, &left);
    let new = HiddenFile::begin(namespace, name.as_bytes(), put.wanted(connection)?).await?;
    let start = Instant::now();
    match interruption.unless(move_data(&new)).await {
        Some(Ok(Moved { uploaded, hash, elapsed })) => {
            new.complete(uploaded).await?;
            namespace.flush().await?;
            let elapsed = elapsed.unwrap_or_else(|| start.elapsed());
            Ok(Done { name, bytes: uploaded.bytes, elapsed, hash, inode: None })
        }
        // The failure counts, but what is left behind is said, too.
        Some(Err(failure)) => Err(match new.discard().await {
            Ok(()) => failure,
            Err(_) => failure.also(&left),
        }),
        None => {
            progress.finish();
            let interrupted = Failure::new(&name, "interrupted. Nothing of the new file is left");
            Err(half_done.undone(interrupted, new.discard().await))
        }
    }
}

impl Put {
    /// A new file, in blocks of so many bytes.
    pub fn new(block_bytes: u64, method: Movers) -> Put {
        let attributes = Attributes { mode: 0o644, modified: None };
        Put { block_bytes, disks: None, method, replace: false, left_alone: None, own_name: None, attributes }
    }

    /// What there is already of a file that is left alone.
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

    /// What the file is to be called: within a directory, if the name leads to one.
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

/// Why a file was not put.
pub fn failed_to_put(name: &str, error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => error.about(name).into(),
        CopyError::Local(error) => Failure::new("reading the input", error),
    }
}

/// What is left of a file if there is no time to remove it.
fn left_hidden(name: &str) -> String {
    format!(
        "What had been written of {name} may be left under a hidden name; `starfish rm --unfinished` removes that an hour \
         later, with --older-than 0s at once."
    )
}

/// Begins what is undone by removing what has been made. `left` says what is left if there is no time for that.
fn begin(interruption: &Interruption, name: &str, left: &str) -> Undertaking {
    let failure = Failure::new(name, "interrupted, and there was no time to remove what had been written");
    interruption.begin(failure.remedy(left))
}

/// Begins what is undone by removing hidden files.
pub fn begin_hidden(interruption: &Interruption, name: &str) -> Undertaking {
    begin(interruption, name, &left_hidden(name))
}

/// Reads all of the input, in parts of these lengths.
///
/// # Errors
/// If it is shorter or longer.
fn read_parts(input: &mut impl Read, lengths: &[u64]) -> io::Result<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    for &length in lengths {
        let mut part = vec![0; length as usize];
        input.read_exact(&mut part)?;
        parts.push(part);
    }
    if input.read(&mut [0])? > 0 {
        let known: u64 = lengths.iter().sum();
        return Err(io::Error::other(format!(
            "it was changed while it was read: it had {known} bytes, and has more now\n  Put it again when nobody \
             writes to it."
        )));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_of_another_length_than_it_had_is_refused() {
        let read = |mut input: &[u8]| read_parts(&mut input, &[3, 2]);
        assert_eq!(read(b"abcde").expect("all of it"), [b"abc".to_vec(), b"de".to_vec()]);
        assert!(read(b"abcd").is_err());
        let longer = read(b"abcdef").expect_err("it has grown").to_string();
        assert!(longer.contains("it had 5 bytes, and has more now"), "{longer}");
    }
}
