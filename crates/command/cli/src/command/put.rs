//! `starfish put`: copies local files to the agents.

use std::fs::File;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use agent_set::host::quoted_if_need_be;
use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use command_line::say;
use command_line::visible;
use namespace::UnixTime;
use node::sparse::Dense;
use node::{ConnectedNode, ErrorKind};

use crate::options::agents::AgentsArgs;
use crate::options::experiment::ProgressArgs;
use crate::options::method::MethodArgs;
use account::explained::explained;
use node::Size;
use node::whole_file::Method;
use transfer::cluster::Cluster;
use transfer::interrupt;
use transfer::interrupt::Interruption;
use transfer::local::{self, Hashing, STANDARD};
use transfer::namespace::{Namespace, joined};
use transfer::one_file::{self, Attributes, Done, Put};
use transfer::parallel;
use transfer::preflight;
use transfer::put_tree::{LocalTree, TreeUpload, UploadOptions, noted_of};

/// Put a local file or directory onto the agents, in stripes over all their disks.
///
/// The blocks of the file are distributed over the disks in turn, so that later reads use all disks at once. When the
/// file is complete and on the disks, it is renamed to its final name, with the permissions and the time of the local
/// file. A command that fails or is interrupted leaves no part of the file. Exception: a file that fails --verify is
/// kept.
///
/// Names are paths. If NAME is a directory, the file is put into it, under the local file's name. With -r, put copies a
/// directory, many files at once.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The local file (with -r, directory); `-` is standard input.
    #[arg(value_name = "LOCAL")]
    local: PathBuf,

    /// Path of the file on the agents [default: the local name, without directories]. With -r, a path that ends with /
    /// is the directory to put the directory in.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Put a directory with everything in it: directories, files and symbolic links.
    #[arg(short, long)]
    recursive: bool,

    /// Resume an interrupted put: skip files that have the same size and time and all their stripes, and replace all
    /// others. Contents are not compared. `starfish fsck` reads existing files back and compares checksums.
    #[arg(long)]
    resume: bool,

    /// Size of a block: number of bytes on one disk before the file continues on the next disk.
    ///
    /// Each block is a separate request, so transfers in small blocks take long. 64 KiB and more are usual; less than 4
    /// KiB causes a warning.
    #[arg(long, value_name = "SIZE", default_value = node::BLOCK)]
    block: Size,

    /// Number of disks to stripe each file over [default: all].
    #[arg(long, value_name = "N", value_parser = crate::options::numbers::disk_count)]
    disks: Option<NonZeroU32>,

    #[command(flatten)]
    method: MethodArgs,

    /// Continue without agents that do not answer: stripe the file only over the disks of the other agents.
    #[arg(long)]
    without_missing: bool,

    /// Replace an existing file of this name when the new file is complete.
    #[arg(long)]
    replace: bool,

    /// Read the file back afterwards and compare its blake3 hash. If the hashes differ, the file is kept.
    #[arg(long, conflicts_with_all = ["recursive", "resume"])]
    verify: bool,

    /// Print the blake3 hash of the file, in the format of b3sum.
    #[arg(long, conflicts_with_all = ["recursive", "resume"])]
    hash: bool,

    /// Report the bottleneck of the run on standard error: disks, links, processors or waiting. For this, all nodes
    /// record their work.
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish put big.dat --agents node1:7117,node2:7117
  starfish put big.dat results/today.dat --verify
  starfish put -r results --resume
  starfish put big.dat results/today.dat --resume
  starfish put big.dat --explain
  tar c directory | starfish put - directory.tar --block 1MiB
  starfish put big.dat --method disk-directed --replace";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let name = name(&arguments)?;
    preflight::check_block(arguments.block)?;
    warn_of_second_file(&arguments);
    let cluster = arguments.agents.cluster()?;
    if arguments.explain {
        interrupt::undo_and_exit()?;
    }
    explained(arguments.explain, &cluster, |cluster| put(cluster, name, arguments))
}

fn put(cluster: &Cluster, name: String, arguments: Arguments) -> Result<()> {
    if arguments.recursive {
        if arguments.local.is_file() {
            let failure =
                Failure::usage(arguments.local.display().to_string(), "it is a file, not a directory");
            return Err(failure.remedy("Leave out --recursive."));
        }
        return put_tree(cluster, &name, &arguments);
    }
    let (input, size) = local::open(&arguments.local)?;
    let input =
        local::SteadyFile::new(input).map_err(|error| Failure::new("cannot read the input", error))?;
    let attributes = attributes(input.file())?;
    let needed = needed(input.file(), size)?;
    let own_name = arguments.name.as_ref().and_then(|_| own_name(&arguments.local).ok());
    let put = Put {
        replace: arguments.replace || arguments.resume,
        left_alone: left_alone(&arguments, size, attributes)?,
        own_name,
        attributes,
        disks: arguments.disks,
        ..Put::new(arguments.block.0, arguments.method.method)
    };
    let progress = Progress::bytes(arguments.progress.show, &name);
    if let Some(size) = size {
        progress.expect(size);
    }
    let input = Hashing::new(input, arguments.hash || arguments.verify);
    let interruption = Interruption::prepare()?;
    let (named, without_missing) = (name.clone(), arguments.without_missing);
    let verify_with = arguments.verify.then_some(arguments.progress.show);
    let done = cluster.run_with_present(move |connection| async move {
        let namespace = reach(&connection, without_missing).await?;
        preflight::check_space(&connection, &named, needed).await?;
        let done = one_file::put(&namespace, &named, &put, input, &progress, &interruption).await?;
        progress.finish();
        let verified = match verify_with.filter(|_| done.inode.is_none()) {
            Some(show) => verify(&namespace, &done, show).await,
            None => Ok(()),
        };
        Ok((done, verified))
    });
    let (done, verified) = done.map_err(|failure| with_way_out(failure, &name, without_missing))?;
    let name = done.name;
    if done.inode.is_some() {
        say!("starfish: {}: skipped, because it already exists", visible(&name));
        return Ok(());
    }
    verified.map_err(|failure| failure.also(&format!("{name} was written, and was not removed.")))?;
    match done.hash.filter(|_| arguments.hash) {
        Some(hash) => local::print([format!("{hash}  {name}")]),
        None => Ok(()),
    }
}

/// Opens the namespace of the agents. Fails if an agent does not answer, unless `without_missing` permits this. The
/// metadata server must answer.
async fn reach(connection: &ConnectedNode, without_missing: bool) -> Result<Namespace> {
    if !without_missing {
        connection.absence()?;
    }
    Ok(Namespace::of(connection).await?)
}

/// Adds `--without-missing` to the remedy, if agents do not answer and the option was not given.
fn with_way_out(failure: Failure, name: &str, without_missing: bool) -> Failure {
    match failure.kind() {
        Some(ErrorKind::Unreachable) if !without_missing => {
            let name = quoted_if_need_be(name);
            failure.also(&format!("`--without-missing` puts {name} on the other agents only."))
        }
        _ => failure,
    }
}

/// Warns users of `put *.dat`, who may expect that the command puts several files.
fn warn_of_second_file(arguments: &Arguments) {
    let Some(name) = arguments.name.as_deref().filter(|name| Path::new(name).is_file()) else { return };
    if arguments.local.as_os_str() != STANDARD && arguments.local != Path::new(name) {
        let local = arguments.local.display().to_string();
        let (local, name) = (visible(&local), visible(name));
        say!(
            "starfish: {local} will be put as {name}. The local file {name} will not be put: `put` accepts \
             only one file."
        );
    }
}

/// Returns the name of the file on the agents.
fn name(arguments: &Arguments) -> Result<String> {
    match &arguments.name {
        Some(name) => Ok(name.clone()),
        None => own_name(&arguments.local),
    }
}

/// Returns the name of a local file without its directories.
fn own_name(local: &Path) -> Result<String> {
    let failed =
        |why: &str| Failure::usage(local.display().to_string(), why).remedy("Give a name: put LOCAL NAME.");
    if local.as_os_str() == STANDARD {
        return Err(failed("standard input has no name"));
    }
    let last = local.file_name().ok_or_else(|| failed("the path has no file name"))?;
    Ok(last.to_str().ok_or_else(|| failed("its name is not UTF-8"))?.to_owned())
}

/// Returns the number of bytes that a file needs on the agents, if known. Holes need none.
fn needed(input: &File, size: Option<u64>) -> Result<u64> {
    if size.is_none() {
        return Ok(0);
    }
    let found = input.metadata().map_err(|error| Failure::new("cannot read the input", error))?;
    Ok(local::data_bytes(&found))
}

/// Returns the attributes of the new file.
fn attributes(input: &File) -> Result<Attributes> {
    let found = input.metadata().map_err(|error| Failure::new("cannot read the input", error))?;
    if !found.is_file() {
        return Ok(Put::new(0, Method::Traditional).attributes);
    }
    let (modified, mode) = noted_of(&found);
    Ok(Attributes { mode, modified: Some(modified) })
}

/// Returns the size and time with which `--resume` skips an existing file.
fn left_alone(
    arguments: &Arguments,
    size: Option<u64>,
    attributes: Attributes,
) -> Result<Option<(u64, UnixTime)>> {
    if !arguments.resume {
        return Ok(None);
    }
    match size.zip(attributes.modified) {
        None => Err(Failure::usage("--resume", "it needs a regular file, whose size and time it compares")),
        known => Ok(known),
    }
}

/// Puts a directory with its contents.
fn put_tree(cluster: &Cluster, name: &str, arguments: &Arguments) -> Result<()> {
    let local = LocalTree::of(&arguments.local)?;
    let path = match (name.ends_with('/'), own_name(&arguments.local)) {
        (true, own) => joined(name.as_bytes(), own?.as_bytes()),
        (false, _) => name.into(),
    };
    let put = UploadOptions {
        path,
        block_bytes: arguments.block.0,
        disks: arguments.disks,
        method: arguments.method.method,
        replace: arguments.replace,
        resume: arguments.resume,
    };
    let progress = Progress::bytes(arguments.progress.show, name);
    progress.expect(local.bytes);
    let (shown, interruption) = (progress.clone(), Interruption::prepare()?);
    let (owned, without_missing) = (name.to_owned(), arguments.without_missing);
    let put = cluster.run_with_present(move |connection| async move {
        let namespace = reach(&connection, without_missing).await?;
        preflight::check_space(&connection, &owned, local.data_bytes).await?;
        let undo_guard = one_file::begin_hidden(&interruption, &owned);
        let upload = TreeUpload::new(&namespace, put, &shown)?;
        match interruption.unless(upload.run(local)).await {
            Some(Ok(counts)) => Ok(counts),
            Some(Err(failure)) => {
                // Report only the first failure.
                let _ = upload.discard().await;
                Err(failure)
            }
            None => {
                shown.finish();
                let interrupted = Failure::new(&owned, "interrupted. The files put so far are complete");
                let interrupted = interrupted.remedy("`starfish put -r --resume` puts the others.");
                Err(undo_guard.undone(interrupted, upload.discard().await))
            }
        }
    });
    let (failed, skipped) = put.map_err(|failure| with_way_out(failure, name, without_missing))?;
    progress.finish();
    if arguments.resume {
        say!("starfish: {}: {skipped} of its files skipped, because they already exist", visible(name));
    }
    parallel::outcome(name, failed, true)
}

/// Reads a file back and compares its hash.
async fn verify(namespace: &Namespace, written: &Done, show: Show) -> Result<()> {
    let Done { name, hash: expected, .. } = written;
    let progress = Progress::bytes(show, &format!("verifying {name}"));
    let output = Hashing::new(Dense(std::io::sink()), true);
    let done = one_file::get(namespace, name, Method::Traditional, output, &progress).await?;
    progress.finish();
    match (*expected, done.hash) {
        (Some(expected), Some(found)) if expected == found => Ok(()),
        (expected, found) => {
            let hex =
                |hash: Option<blake3::Hash>| hash.map_or_else(|| "?".to_owned(), |hash| hash.to_string());
            let why = format!(
                "the data read back have the blake3 hash {} instead of {}",
                hex(found),
                hex(expected)
            );
            Err(Failure::new(name, why)
                .remedy("A disk or network corrupts data, or another program wrote to the file."))
        }
    }
}
