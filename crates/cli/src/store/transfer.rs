//! Moving a whole file by either method, with its hash and the time it took.

use std::io::{Read, Write};
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use layout::Extent;
use node::whole_file::{self, CopyError};
use node::{Agent, ConnectedNode, ErrorKind};

use super::group;
use crate::interrupt::{Interruption, Undertaking};
use crate::local::Hashing;
use crate::this_node;

/// How data get from disks to memory and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// Request block after block, through a window of memory. For files of any size.
    Traditional,
    /// Let a group of compute nodes make one request and the agents move the data in the order of their
    /// disks. The file has to fit into memory.
    DiskDirected,
}

/// The options of the method.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MethodArgs {
    /// How data get from disks to memory and back.
    #[arg(long, value_enum, default_value_t = Method::Traditional)]
    pub(crate) method: Method,

    /// Compute nodes in the group; only with `--method disk-directed`.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) compute_nodes: u32,
}

/// A transfer that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Time it took, from the first request until the last byte was where it belongs.
    pub(crate) elapsed: Duration,
    /// The file's hash, if it was asked for.
    pub(crate) hash: Option<blake3::Hash>,
}

impl Done {
    /// Throughput in MiB/s.
    pub(crate) fn throughput(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20) / self.elapsed.as_secs_f64()
    }
}

/// Which file is to be got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Get {
    /// How data get from the disks.
    pub(crate) method: MethodArgs,
    /// Whether an unfinished file is to be read if there is one.
    pub(crate) unfinished: bool,
}

impl Get {
    /// The finished file.
    pub(crate) fn finished(method: MethodArgs) -> Self {
        Get { method, unfinished: false }
    }
}

/// Reads a file and writes all of it to `output`.
pub(crate) fn get<W: Write + Send + 'static>(
    agents: &[Agent],
    name: &str,
    get: Get,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<Done> {
    match get.method.method {
        Method::Traditional => get_traditional(agents, name, get.unfinished, output, progress),
        Method::DiskDirected => get_disk_directed(agents, name, get, output, progress),
    }
}

fn get_traditional<W: Write + Send + 'static>(
    agents: &[Agent],
    name: &str,
    unfinished: bool,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<Done> {
    let (name, progress) = (name.to_owned(), progress.clone());
    this_node::run_with_present(agents.to_vec(), move |connection| async move {
        let file = connection.open(&name, unfinished).await?;
        progress.expect(file.bytes());
        let start = Instant::now();
        let output = whole_file::download(&connection, &file, output, adding_to(&progress)).await;
        let output = output.map_err(|error| failed_to_get(&name, error))?;
        Ok(Done { bytes: file.bytes(), elapsed: start.elapsed(), hash: output.hash() })
    })
}

/// Counts what is done in a progress.
fn adding_to(progress: &Progress) -> impl Fn(u64) + Clone + 'static {
    let progress = progress.clone();
    move |bytes| progress.add(bytes)
}

/// Why a file was not got.
pub(crate) fn failed_to_get(name: &str, error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => error.into(),
        CopyError::Local(error) => Failure::writing(format!("what {name} holds"), &error),
    }
}

/// Reads what can be read of a file and writes it to `output`, with zeros in place of the rest. Says which bytes those
/// are, and the hash of all that was written, if it was asked for.
pub(crate) fn salvage<W: Write + Send + 'static>(
    agents: &[Agent],
    name: &str,
    method: MethodArgs,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<(Option<blake3::Hash>, Vec<Extent>)> {
    if method.method == Method::DiskDirected {
        let why = "only the method traditional skips damaged parts";
        return Err(Failure::usage("--skip-damaged", why).remedy("Leave out --method."));
    }
    let (name, progress) = (name.to_owned(), progress.clone());
    this_node::run_with_present(agents.to_vec(), move |connection| async move {
        let remains = connection.told(&name, connection.client.open_remains(&name).await)?;
        progress.expect(remains.bytes());
        let salvaged = whole_file::salvage(&connection, &name, remains, output, adding_to(&progress)).await;
        let (output, lost) = salvaged.map_err(|error| failed_to_get(&name, error))?;
        Ok((output.hash(), lost))
    })
}

fn get_disk_directed<W: Write>(
    agents: &[Agent],
    name: &str,
    get: Get,
    mut output: Hashing<W>,
    progress: &Progress,
) -> Result<Done> {
    let owned = name.to_owned();
    let bytes = this_node::run_with_present(agents.to_vec(), move |connection| async move {
        Ok(connection.open(&owned, get.unfinished).await?.bytes())
    })?;
    progress.expect(bytes);
    let moved = group::read(agents, name, bytes, get.method.compute_nodes, get.unfinished)?;
    for part in &moved.parts {
        let written = output.write_all(part);
        written.map_err(|error| Failure::writing(format!("what {name} holds"), &error))?;
        progress.add(part.len() as u64);
    }
    Ok(Done { bytes, elapsed: moved.elapsed, hash: output.hash() })
}

/// How a file is to be put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    /// Bytes on one disk before the file goes on on the next.
    pub(crate) block_bytes: u64,
    /// How data get to the disks.
    pub(crate) method: MethodArgs,
    /// Whether a file of the same name is replaced, once the new one is finished.
    pub(crate) replace: bool,
}

/// Makes a file of all that `input` holds, on the disks when this returns. What fails or is interrupted leaves
/// no file, and one that was to be replaced as it was.
///
/// `size` is the size of the input, as far as known.
pub(crate) fn put<R: Read + Send + 'static>(
    agents: &[Agent],
    name: &str,
    put: Put,
    input: Hashing<R>,
    size: Option<u64>,
    progress: &Progress,
    interruption: Interruption,
) -> Result<Done> {
    match (put.method.method, size) {
        (Method::Traditional, _) => put_traditional(agents, name, put, input, progress, interruption),
        (Method::DiskDirected, Some(bytes)) => {
            put_disk_directed(agents, name, put, input, bytes, progress, &interruption)
        }
        (Method::DiskDirected, None) => {
            let failure = Failure::usage(name, "the method disk-directed has to know the size beforehand");
            Err(failure.remedy("Put a file, or use --method traditional."))
        }
    }
}

fn put_traditional<R: Read + Send + 'static>(
    agents: &[Agent],
    name: &str,
    put: Put,
    input: Hashing<R>,
    progress: &Progress,
    interruption: Interruption,
) -> Result<Done> {
    let (name, progress) = (name.to_owned(), progress.clone());
    this_node::run(agents.to_vec(), move |connection| async move {
        let half_done = begin(&interruption, &name);
        let file = create(&connection, &name, put).await?;
        let start = Instant::now();
        let copied = whole_file::upload(&connection, &file, input, adding_to(&progress));
        match interruption.unless(copied).await {
            Some(Ok((input, bytes))) => Ok(Done { bytes, elapsed: start.elapsed(), hash: input.hash() }),
            Some(Err(error)) => Err(discard_failed(&connection, &name, failed_to_put(error)).await),
            None => Err(half_done.undone(&name, connection.discard(&name).await)),
        }
    })
}

/// Why a file was not put.
pub(crate) fn failed_to_put(error: CopyError) -> Failure {
    match error {
        CopyError::Striped(error) => error.into(),
        CopyError::Local(error) => Failure::new("reading the input", error),
    }
}

/// Removes the unfinished file after a failure, which is what counts; but what is left is told, too.
async fn discard_failed(connection: &ConnectedNode, name: &str, failure: Failure) -> Failure {
    match connection.discard(name).await {
        Ok(()) => failure,
        Err(_) => failure.also(&left_behind(name)),
    }
}

fn left_behind(name: &str) -> String {
    format!(
        "An unfinished {name} may be left; putting it again replaces that, and `starfish rm --unfinished {name}` \
         removes it."
    )
}

fn begin(interruption: &Interruption, name: &str) -> Undertaking {
    let failure = Failure::new(name, "interrupted, and there was no time to remove what had been written");
    interruption.begin(failure.remedy(left_behind(name)))
}

fn put_disk_directed<R: Read>(
    agents: &[Agent],
    name: &str,
    put: Put,
    mut input: Hashing<R>,
    bytes: u64,
    progress: &Progress,
    interruption: &Interruption,
) -> Result<Done> {
    let mut parts = Vec::new();
    for length in group::lengths(name, bytes, put.method.compute_nodes)? {
        let mut part = vec![0; length as usize];
        input.read_exact(&mut part).map_err(|error| Failure::new("reading the input", error))?;
        parts.push(part);
    }
    let (all, name, interruption) = (agents.to_vec(), name.to_owned(), interruption.clone());
    let progress = progress.clone();
    let moved = this_node::run(agents.to_vec(), move |connection| async move {
        let half_done = begin(&interruption, &name);
        // Open until the group is done: the file is being written for as long as who has begun it is there.
        let file = create(&connection, &name, put).await?;
        let written = interruption.unless(async {
            let moved = write_in_group(&all, &name, parts).await?;
            progress.add(bytes);
            let committing = Instant::now();
            connection.told(&name, file.commit().await)?;
            Ok(moved.elapsed + committing.elapsed())
        });
        match written.await {
            Some(Ok(elapsed)) => Ok(elapsed),
            Some(Err(failure)) => Err(discard_failed(&connection, &name, failure).await),
            None => Err(half_done.undone(&name, connection.discard(&name).await)),
        }
    });
    Ok(Done { bytes, elapsed: moved?, hash: input.hash() })
}

/// What [`group::write`] comes to.
async fn write_in_group(agents: &[Agent], name: &str, parts: Vec<Vec<u8>>) -> Result<group::MovedByGroup> {
    let (agents, owned) = (agents.to_vec(), name.to_owned());
    let (done, outcome) = flume::bounded(1);
    let writing = thread::spawn(move || {
        // After an interruption nobody wants to know.
        let _ = done.send(group::write(&agents, &owned, parts));
    });
    match outcome.recv_async().await {
        Ok(outcome) => outcome,
        Err(_) => resume_unwind(writing.join().expect_err("it ended without an outcome")),
    }
}

async fn create(connection: &ConnectedNode, name: &str, put: Put) -> Result<fs::File<real::RealMachine>> {
    let striping = connection.striping(put.block_bytes, None)?;
    connection.create(name, striping, put.replace).await.map_err(|error| match error.kind() {
        ErrorKind::Exists => {
            Failure::from(error).remedy("Remove it with `starfish rm`, or put with --replace.")
        }
        _ => error.into(),
    })
}
