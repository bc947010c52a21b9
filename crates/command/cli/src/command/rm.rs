//! `starfish rm`: removes files.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::say;
use namespace::{Location, RemovalTarget, TreeOperation, TreeRefusal};
use node::ErrorKind;

use crate::options::agents::AgentsArgs;
use crate::output::date;
use command_line::durations;
use transfer::local;
use transfer::namespace::{FoundPath, Namespace, shown, split, trimmed};
use transfer::parallel::FailedFiles;
use transfer::remote_file::is_unfinished;
use transfer::{globs, parallel};

/// Remove files from the agents, even damaged ones.
///
/// Names are paths, or patterns of paths; -r removes directories with everything in them. If one of the names cannot be
/// removed, the others are still removed. Stripes on an agent that does not answer are removed when it answers again.
///
/// --unfinished removes files that interrupted commands have left under hidden names, if these files are at least an
/// hour old; --older-than sets another age. Files that a client is writing are kept.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Paths of files. Without paths, `--unfinished` searches all directories.
    #[arg(value_name = "NAME", required_unless_present = "unfinished")]
    names: Vec<OsString>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Remove directories with everything in them.
    #[arg(short, long, conflicts_with = "unfinished")]
    recursive: bool,

    /// Ignore files that do not exist.
    #[arg(short, long, conflicts_with = "unfinished")]
    force: bool,

    /// Remove and list files that interrupted commands left in these directories.
    #[arg(long)]
    unfinished: bool,

    /// Minimum age of the unfinished files to remove, for example 90s, 2h or 7d.
    #[arg(long, value_name = "AGE", requires = "unfinished", value_parser = durations::parse)]
    older_than: Option<Duration>,
}

const EXAMPLES: &str = "\
Examples:
  starfish rm big.dat --agents node1:7117,node2:7117
  starfish rm part1 part2 part3
  starfish rm -r results 'old/*.dat'
  starfish rm --unfinished --older-than 1d";

/// Default minimum age. A younger file may belong to a command that will continue when it reaches the agents again.
const HIDDEN_AGE_MIN: Duration = Duration::from_secs(3600);

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { names, agents, recursive, force, unfinished, older_than } = arguments;
    agents.cluster()?.run_with_present(move |connection| async move {
        let namespace = Namespace::of(&connection).await?;
        match unfinished {
            true => remove_hidden(&namespace, &names, older_than).await,
            false => remove(&namespace, &names, recursive, force).await,
        }
    })
}

/// Returns true if a failure is ignored: the file does not exist and `forced` is set.
fn is_forgiven(failure: &Failure, forced: bool) -> bool {
    forced && failure.kind() == Some(ErrorKind::NotFound)
}

/// Removes the files with these paths and patterns. A missing file is no failure if `forced` is set.
async fn remove(namespace: &Namespace, names: &[OsString], recursive: bool, forced: bool) -> Result<()> {
    let (mut outcome, mut files, mut directories) = (Ok(()), Vec::new(), Vec::new());
    let mut note = |failure: Failure| failure.join(&mut outcome);
    for name in names {
        if recursive && names_no_entry(name) {
            let failure = Failure::new(shown(name.as_bytes()), "`.`, `..` and `/` cannot be removed");
            note(
                failure.remedy(
                    "Name the directory by its path from the root; '/*' names everything in the root.",
                ),
            );
            continue;
        }
        let found = match globs::found(namespace, name, false).await {
            Ok(found) => found,
            Err(failure) if is_forgiven(&failure, forced) => continue,
            Err(failure) => {
                note(failure);
                continue;
            }
        };
        for found in found {
            if !found.inode.is_directory() {
                files.push(found);
            } else if !recursive {
                let failure = Failure::new(shown(&found.path), "it is a directory");
                note(failure.remedy("`starfish rm -r` removes it with its contents."));
            } else {
                let (inner, outer): (Vec<_>, Vec<_>) =
                    namespace.walk(&found).await?.into_iter().partition(|found| found.inode.is_directory());
                files.extend(outer);
                directories.push(found);
                directories.extend(inner);
            }
        }
    }
    let failed = remove_all(namespace, files, directories).await?;
    outcome.and(parallel::outcome("rm", failed, false))
}

/// Returns true if the last part of a path is not a name in a directory: the root, `.` or `..`.
fn names_no_entry(path: &OsStr) -> bool {
    let (_, last) = split(trimmed(path.as_bytes()));
    matches!(last, b"" | b"." | b"..")
}

/// Removes files, then directories, children before parents. Waits for the removal of all contents at the end. Returns
/// the failures.
async fn remove_all(
    namespace: &Namespace,
    files: Vec<FoundPath>,
    directories: Vec<FoundPath>,
) -> Result<FailedFiles> {
    let owned = namespace.clone();
    let unname = move |found: FoundPath, what| {
        let namespace = owned.clone();
        async move {
            let at = Location::of_path(&*found.path);
            match namespace.perform(&found.path, TreeOperation::Remove { at, what }).await {
                // Another client has already removed the file.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => Ok(removed.map(drop)?),
            }
        }
    };
    let machine = &namespace.connection.machine;
    let of_files = unname.clone();
    let mut failed =
        parallel::each(machine, files, move |found| of_files(found, RemovalTarget::File)).await?;
    for directory in directories.into_iter().rev() {
        if let Err(failure) = unname(directory, RemovalTarget::Directory).await {
            failed.note(&failure);
        }
    }
    contents_removed(namespace).await?;
    Ok(failed)
}

/// Removes files that interrupted commands have left under hidden names, in these directories or anywhere. Keeps files
/// that a running command has open, whatever their age.
async fn remove_hidden(
    namespace: &Namespace,
    names: &[OsString],
    older_than: Option<Duration>,
) -> Result<()> {
    let least = older_than.unwrap_or(HIDDEN_AGE_MIN);
    let mut all = Vec::new();
    if names.is_empty() {
        all = namespace.walk(&FoundPath { path: Vec::new(), ..namespace.look(b"/").await? }).await?;
    }
    for name in names {
        all.extend(namespace.walk(&namespace.look(name.as_bytes()).await?).await?);
    }
    let since = |found: &FoundPath| machine::Duration::from_nanos(found.inode.changed.max(0) as u64);
    let (all, young): (Vec<_>, Vec<_>) = all.into_iter().partition(|found| date::age(since(found)) >= least);
    let lines: Rc<RefCell<Vec<String>>> = Rc::default();
    let (owned, removed) = (namespace.clone(), lines.clone());
    let failed = parallel::each(&namespace.connection.machine, all, move |found| {
        let (namespace, removed) = (owned.clone(), removed.clone());
        async move {
            if is_unfinished(&namespace, &found).await? && remove_abandoned(&namespace, &found.path).await? {
                let line = format!("{}  (since {})", shown(&found.path), date::of(since(&found)));
                removed.borrow_mut().push(line);
            }
            Ok(())
        }
    });
    let failed = failed.await?;
    contents_removed(namespace).await?;
    let mut lines = lines.take();
    lines.sort();
    local::print(lines)?;
    report_young(namespace, &young, least).await?;
    parallel::outcome("rm", failed, false)
}

/// Prints the number of unfinished files that are too young to be removed, and the option with which they are removed.
async fn report_young(namespace: &Namespace, young: &[FoundPath], least: Duration) -> Result<()> {
    let mut left = 0;
    for found in young {
        left += usize::from(is_unfinished(namespace, found).await?);
    }
    let age = durations::in_words(least);
    let which = match left {
        0 => return Ok(()),
        1 => format!("1 file is younger than {age} and was kept"),
        left => format!("{left} files are younger than {age} and were kept"),
    };
    say!(
        "starfish: {which}: a client may still be writing. --older-than 0s removes all files that no client \
         has open."
    );
    Ok(())
}

/// Removes a file unless a client has it open. Returns true if this call has removed it.
async fn remove_abandoned(namespace: &Namespace, path: &[u8]) -> Result<bool> {
    let remove = TreeOperation::Remove { at: Location::of_path(path), what: RemovalTarget::AbandonedFile };
    match namespace.perform(path, remove).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == ErrorKind::Refused(TreeRefusal::Busy) => Ok(false),
        removed => Ok(removed.map(|_| true)?),
    }
}

/// Removes the contents of orphans.
async fn contents_removed(namespace: &Namespace) -> Result<()> {
    namespace.connection.explained("cannot remove contents", namespace.tree.remove_orphans().await)?;
    Ok(namespace.flush().await?)
}
