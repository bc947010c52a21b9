//! `starfish get`: copies files from the agents.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use command_line::{counted, visible};
use layout::Extent;

use crate::options::agents::AgentsArgs;
use crate::options::experiment::ProgressArgs;
use crate::options::method::MethodArgs;
use account::explained::explained;
use node::BlockingWork;
use replacement::LocalPlace;
use transfer::cluster::Cluster;
use transfer::get_tree::{self, DamagedFile, DownloadOptions, TreeDownload};
use transfer::interrupt;
use transfer::local::{self, Hashing, STANDARD};
use transfer::namespace::{FoundPath, Namespace};
use transfer::one_file::{self, SalvageResult};
use transfer::{globs, namespace, parallel};

/// Get files from the agents, reading all their disks at once.
///
/// The local file is renamed to its final name when it is complete; until then its name is `.starfish-` and some
/// letters. A command that fails or is interrupted removes this file; a killed command does not.
///
/// A pattern with *, ? or [...] gets all matching files, and -r gets directories, many files at once. Local files get
/// the permissions and times of the files on the agents.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Path of the file on the agents, or a pattern of paths.
    #[arg(value_name = "NAME")]
    name: String,

    /// Destination: a file, a directory, or `-` for standard output [default: the same name, in the current directory].
    #[arg(value_name = "LOCAL")]
    local: Option<PathBuf>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Get directories with everything in them. LOCAL is the new name of the directory or, if it ends with /, the
    /// directory to put it in.
    #[arg(short, long)]
    recursive: bool,

    /// Resume an interrupted get: skip files that have the same size and time, and replace all others. Contents are not
    /// compared.
    #[arg(long, requires = "recursive")]
    resume: bool,

    #[command(flatten)]
    method: MethodArgs,

    /// Replace an existing local file.
    #[arg(long, short)]
    force: bool,

    /// Get the readable parts of damaged files, with zeros in place of the rest. Report the missing bytes or, for many
    /// files, their number in each file. Exit code 1 if bytes are missing.
    ///
    /// The local copy of a damaged file does not get the file's time, so `get -r --resume` replaces the copy.
    #[arg(long, conflicts_with = "method")]
    skip_damaged: bool,

    /// Print the blake3 hash of the file, in the format of b3sum; on standard error if the file is printed on standard
    /// output.
    #[arg(long, conflicts_with = "recursive")]
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
  starfish get big.dat --agents node1:7117,node2:7117
  starfish get results/today.dat /tmp --force --hash
  starfish get directory.tar - | tar x
  starfish get 'results/*.dat' /tmp/                 all matching files
  starfish get -r results --resume
  starfish get big.dat --method disk-directed
  starfish get big.dat --explain
  starfish get hurt.dat rest.dat --skip-damaged
  starfish get -r results rest --skip-damaged        the readable parts, after a disk is lost";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let cluster = arguments.agents.cluster()?;
    if arguments.explain {
        interrupt::undo_and_exit()?;
    }
    explained(arguments.explain, &cluster, |cluster| get(cluster, arguments))
}

fn get(cluster: &Cluster, arguments: Arguments) -> Result<()> {
    cluster.run_with_present(move |connection| async move {
        let namespace = Namespace::of(&connection).await?;
        match arguments.recursive || is_pattern(&namespace, &arguments.name).await? {
            true => get_many(&namespace, arguments).await,
            false => get_one(&namespace, arguments).await,
        }
    })
}

/// Returns true if a name is a pattern, and no file has exactly this name.
async fn is_pattern(namespace: &Namespace, name: &str) -> Result<bool> {
    Ok(globs::is_pattern(name) && namespace.find_at(name.as_bytes(), false).await?.is_none())
}

/// Gets one file.
async fn get_one(namespace: &Namespace, arguments: Arguments) -> Result<()> {
    let name = &*arguments.name;
    let local = arguments.local.unwrap_or_else(|| local::last_part(name).into());
    let (target, output) = local::create(&local, name, arguments.force)?;
    let progress = Progress::bytes(arguments.progress.show, name);
    let output = target.output(output).map_err(|error| Failure::new(local.display().to_string(), error))?;
    let output = Hashing::new(output, arguments.hash);
    let SalvageResult { hash, lost, inode, absence } = if arguments.skip_damaged {
        one_file::salvage(namespace, name, output, &progress).await?
    } else {
        let done = one_file::get(namespace, name, arguments.method.method, output, &progress).await?;
        SalvageResult { hash: done.hash, lost: Vec::new(), inode: done.inode, absence: None }
    };
    let noted = match (target.file(), inode) {
        (Some(file), Some(inode)) => get_tree::note(file, &inode, lost.is_empty()),
        _ => target.give_usual_permissions(),
    };
    noted.map_err(|error| Failure::new(local.display().to_string(), error))?;
    progress.finish();
    // Run this on another thread: if the file replaces another one, it is first flushed to stable storage, which
    // blocks.
    BlockingWork::begin(move || target.complete()).outcome().await?;
    match hash {
        Some(hash) if local == Path::new(STANDARD) => say!("{hash}  {name}"),
        Some(hash) => local::print([format!("{hash}  {name}")])?,
        None => {}
    }
    report_lost(name, &lost, absence)
}

/// Destination of several files.
enum Target {
    /// Directory for the files, which keep their names.
    Within(PathBuf),
    /// New name, for a single file.
    Called(PathBuf),
}

impl Target {
    fn new(local: Option<&Path>, is_pattern: bool) -> Result<Target> {
        let Some(local) = local else { return Ok(Target::Within(".".into())) };
        let what = || local.display().to_string();
        if local == Path::new(STANDARD) {
            let failure = Failure::usage(what(), "several files cannot go to standard output");
            return Err(failure.remedy("`starfish cat` prints them."));
        }
        let is_directory = is_pattern || local.as_os_str().as_encoded_bytes().ends_with(b"/");
        match is_directory {
            true if local.is_dir() => Ok(Target::Within(local.to_owned())),
            true => Err(Failure::new(what(), "no such directory").remedy("Create it first: mkdir.")),
            false => Ok(Target::Called(local.to_owned())),
        }
    }

    fn of(&self, found: &FoundPath) -> Result<LocalPlace> {
        match self {
            Target::Within(directory) => get_tree::within(directory, namespace::trimmed(&found.path)),
            Target::Called(local) => get_tree::named(local, found.inode.is_directory()),
        }
    }
}

/// Rejects options that are for a single file only.
fn check_many(arguments: &Arguments) -> Result<()> {
    if arguments.hash {
        let why = format!("it needs a single file, and {} is a pattern", visible(&arguments.name));
        return Err(Failure::usage("--hash", why).remedy("Get the files one by one, or leave --hash out."));
    }
    Ok(())
}

/// Gets directories, or the files that match a pattern.
async fn get_many(namespace: &Namespace, arguments: Arguments) -> Result<()> {
    check_many(&arguments)?;
    let Arguments { name, recursive, .. } = arguments;
    let manner = DownloadOptions {
        method: arguments.method.method,
        force: arguments.force,
        resume: arguments.resume,
        skip_damaged: arguments.skip_damaged,
    };
    let target = Target::new(arguments.local.as_deref(), globs::is_pattern(&name))?;
    let progress = Progress::bytes(arguments.progress.show, &name);
    let (mut tops, mut outcome) = (Vec::new(), Ok(()));
    for found in globs::found(namespace, name.as_ref(), true).await? {
        if found.inode.is_directory() && !recursive {
            let why = "it is a directory, skipped without -r";
            Failure::new(namespace::shown(&found.path), why).join(&mut outcome);
            continue;
        }
        let local = target.of(&found)?;
        tops.push((found, local));
    }
    let paths: Vec<_> = tops.iter().map(|(found, local)| (&*found.path, local.path())).collect();
    parallel::check_distinct(paths.iter().map(|(found, local)| (*found, local.as_os_str().as_bytes())))?;
    let got = TreeDownload::new(namespace, &progress, manner).run(tops).await?;
    progress.finish();
    if manner.resume {
        say!(
            "starfish: {}: {} of its files skipped, because they already exist",
            visible(&name),
            got.skipped
        );
    }
    let of_files =
        [parallel::outcome(&name, got.failed, recursive), report_damaged(&name, &got.damaged, got.absence)];
    of_files.into_iter().filter_map(Result::err).for_each(|failure| failure.join(&mut outcome));
    outcome
}

/// Prints the name of each file that could not be read completely. Fails if there are any.
fn report_damaged(name: &str, damaged: &[DamagedFile], absence: Option<node::Error>) -> Result<()> {
    for DamagedFile { name, lost, bytes } in damaged {
        say!("{}: {lost} of {bytes} bytes could not be read", visible(name));
    }
    let how_many = match damaged.len() {
        0 => return Ok(()),
        1 => "one file is incomplete".to_owned(),
        files => format!("{files} files are incomplete"),
    };
    let lost: u64 = damaged.iter().map(|file| file.lost).sum();
    let why = format!(
        "{how_many}, see above: {} could not be read and are zeros in the local copies",
        counted(lost, "byte")
    );
    Err(unreadable(name, why, absence))
}

/// Prints each range that could not be read. Fails if there are any.
fn report_lost(name: &str, lost: &[Extent], absence: Option<node::Error>) -> Result<()> {
    for extent in lost {
        say!("{}: bytes {} could not be read", visible(name), local::range(*extent));
    }
    let bytes: u64 = lost.iter().map(|extent| extent.bytes).sum();
    if bytes == 0 {
        return Ok(());
    }
    let why = format!("{bytes} bytes could not be read and are zeros in the copy");
    Err(unreadable(name, why, absence))
}

/// Returns the failure for unreadable bytes. The remedy mentions agents that do not answer, because they may have these
/// bytes.
fn unreadable(name: &str, why: String, absence: Option<node::Error>) -> Failure {
    let Some(absence) = absence else {
        return Failure::new(name, why).remedy("`starfish fsck` shows the disks of these bytes.");
    };
    let failure = Failure::new(name, format!("{why}. {}: {}", absence.what(), absence.why()));
    absence.remedy().into_iter().fold(failure, |failure, remedy| failure.remedy(format!("{remedy}.")))
}
