//! Moving a whole file by either method, with its hash and the time it took.

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

use crate::interrupt::{Interruption, Undertaking};
use crate::local::Hashing;
use crate::namespace::{Namespace, joined, trimmed};
use crate::stored::{HiddenFile, ReadableFile, WantedFile};

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
    pub method: Method,
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
/// no file, and one that was to be replaced as it was.
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
        say!("starfish: {disk}. New files do not lie on it.");
    }
    let left = left_hidden(&name);
    let half_done = begin(interruption, &name, &left);
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
        // The failure counts, but what is left behind is said, too.
        Some(Err(error)) => {
            let failure = failed_to_put(&new.name(), error);
            Err(match new.discard().await {
                Ok(()) => failure,
                Err(_) => failure.also(&left),
            })
        }
        None => {
            progress.finish();
            let interrupted = Failure::new(&name, "interrupted. Nothing of the new file is left");
            Err(half_done.undone(interrupted, new.discard().await))
        }
    }
}

impl Put {
    /// A new file, in blocks of so many bytes.
    pub fn new(block_bytes: u64, method: Method) -> Put {
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
