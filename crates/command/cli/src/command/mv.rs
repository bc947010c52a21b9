//! `starfish mv`: renames and moves files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use command_line::failure::{Failure, Result};
use namespace::{RenameMode, TreeRefusal};
use node::ErrorKind;
use transfer::globs;
use transfer::namespace::{Namespace, joined, shown, split, trimmed};
use transfer::parallel;

use crate::options::agents::AgentsArgs;

/// Rename files and directories, or move them into a directory.
///
/// Each rename is atomic: at any moment exactly one of the two names exists. An existing file with the new name is
/// replaced in the same step. No data are copied. If a file cannot be moved, the other files are still moved. If two
/// files would get the same name, no file is moved.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The paths, or patterns of paths. The last one is the new name, or the directory.
    #[arg(value_name = "PATH", required = true, num_args = 2..)]
    paths: Vec<OsString>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Fail instead of replacing an existing file.
    #[arg(short, long)]
    no_clobber: bool,
}

const EXAMPLES: &str = "\
Examples:
  starfish mv today.dat yesterday.dat
  starfish mv 'results/*.dat' archive";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    arguments.agents.cluster()?.run_with_present(move |connection| async move {
        let (to, from) = arguments.paths.split_last().expect("there are two at least");
        let namespace = Namespace::of(&connection).await?;
        let (to, mut found, mut outcome) = (to.as_bytes(), Vec::new(), Ok(()));
        let is_directory = namespace.is_directory(to).await?;
        for from in from {
            match globs::found(&namespace, from, false).await {
                Ok(meant) => found.extend(meant),
                Err(failure) => failure.join(&mut outcome),
            }
        }
        let are_many = from.len() > 1 || found.len() > 1;
        let has_file = found.iter().any(|found| !found.inode.is_directory());
        if !is_directory && (are_many || to.ends_with(b"/") && has_file) {
            no_directory(to).join(&mut outcome);
            return outcome;
        }
        let mode = if arguments.no_clobber { RenameMode::Keep } else { RenameMode::Replace };
        let moves = found.into_iter().map(|from| {
            let (_, name) = split(trimmed(&from.path));
            let to = if is_directory { joined(to, name) } else { to.to_vec() };
            (from, to)
        });
        let moves: Vec<_> = moves.collect();
        if let Err(failure) = parallel::check_distinct(moves.iter().map(|(from, to)| (&*from.path, &**to))) {
            failure.join(&mut outcome);
            return outcome;
        }
        for (from, to) in moves {
            let moved = namespace.rename(&from.path, &to, mode).await.map_err(|error| match error.kind() {
                // The source was found before, so the target's directory is missing.
                ErrorKind::NotFound if !is_directory => no_directory(split(trimmed(&to)).0),
                ErrorKind::Exists => Failure::from(error).remedy("Leave out --no-clobber to replace it."),
                ErrorKind::Invalid => Failure::new(shown(&to), "a directory cannot be moved into itself"),
                ErrorKind::Refused(TreeRefusal::NotDirectory) if from.inode.is_directory() => {
                    Failure::from(error).remedy("A directory can only replace an empty directory.")
                }
                _ => error.into(),
            });
            if let Err(failure) = moved {
                failure.join(&mut outcome);
            }
        }
        namespace.flush().await?;
        outcome
    })
}

fn no_directory(path: &[u8]) -> Failure {
    Failure::new(shown(path), "no such directory").remedy("`starfish mkdir -p` creates it.")
}
