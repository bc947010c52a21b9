//! `starfish rm`: files go. Those of a namespace are removed by `rm/tree.rs`.

mod tree;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use command_line::failure::{Failure, Result};
use fs::FileParts;
use node::{ConnectedNode, ErrorKind};

use crate::local;
use crate::output::date;
use crate::output::durations;
use crate::store::agents::{AgentsArgs, FlatArgs};
use crate::store::globs::flat_names;
use crate::store::namespace::no_namespace;
use crate::this_node;

/// Remove files from the agents, even damaged ones.
///
/// If one of the names cannot be removed, the others still are. A file with a flat name cannot be removed while an
/// agent that has a stripe of it does not answer. With a namespace the name is removed, and the stripes on an agent
/// that does not answer are removed when it is back, by the next `rm`, `fsck --repair` or mount.
///
/// With `--unfinished`, only files that were begun and never finished are removed; finished files of the same names
/// stay. Files that are being written now are left alone.
///
/// With a namespace names are paths, or patterns of paths, and -r removes directories with everything in them.
/// --unfinished removes what interrupted commands have left under hidden names, if it was begun at least an hour ago;
/// --older-than sets another age.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The files' names. Without any, `--unfinished` removes all unfinished files.
    #[arg(value_name = "NAME", required_unless_present = "unfinished")]
    names: Vec<OsString>,

    #[command(flatten)]
    agents: AgentsArgs,

    #[command(flatten)]
    flat: FlatArgs,

    /// Remove directories with everything in them.
    #[arg(short, long, conflicts_with = "unfinished")]
    recursive: bool,

    /// Ignore files that do not exist.
    #[arg(short, long, conflicts_with = "unfinished")]
    force: bool,

    /// Remove unfinished files, and list them.
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

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    this_node::run_with_present(agents, move |connection| async move {
        if let Some(namespace) = arguments.flat.namespace(&connection).await? {
            return match arguments.unfinished {
                true => tree::remove_hidden(&namespace, &arguments.names, arguments.older_than).await,
                false => {
                    let Arguments { names, recursive, force, .. } = &arguments;
                    tree::remove(&namespace, names, *recursive, *force).await
                }
            };
        }
        if arguments.recursive {
            return Err(no_namespace(&connection, &flat_names(arguments.names)?.join(" ")));
        }
        let is_of_all = arguments.names.is_empty();
        let names = match is_of_all {
            true => connection.explained("listing the files", connection.client.list().await)?,
            false => flat_names(arguments.names)?,
        };
        let mut outcome = if is_of_all { connection.incompleteness().map_err(Failure::from) } else { Ok(()) };
        for name in &names {
            let removed = match arguments.unfinished {
                true => remove_unfinished(&connection, name, arguments.older_than, is_of_all).await,
                false => connection.unlink(name).await.map_err(Failure::from),
            };
            match removed {
                Err(failure) if !is_forgiven(&failure, arguments.force) => failure.join(&mut outcome),
                _ => {}
            }
        }
        outcome
    })
}

/// What is not there is no failure if that is `forced`.
fn is_forgiven(failure: &Failure, forced: bool) -> bool {
    forced && failure.kind() == Some(ErrorKind::NotFound)
}

/// Removes what is unfinished of a name, if it is old enough. If it is not the user who has named it, it may be that
/// there is nothing, or that somebody is writing it.
async fn remove_unfinished(
    connection: &ConnectedNode,
    name: &str,
    older_than: Option<Duration>,
    is_one_of_all: bool,
) -> Result<()> {
    let all = match connection.client.find_all(name).await {
        // What cannot be told apart is not collected by the way.
        Err(_) if is_one_of_all => return Ok(()),
        all => connection.explained(name, all)?,
    };
    let since = all.iter().filter_map(|parts: &FileParts| parts.unfinished_since).max();
    let is_old_enough = |since| older_than.is_none_or(|age| date::age(since) >= age);
    match since {
        Some(since) if is_old_enough(since) => {
            let removed = connection.explained(name, connection.client.unlink_unfinished(name).await);
            match removed {
                Err(error) if is_one_of_all && error.kind() == ErrorKind::BeingWritten => Ok(()),
                removed => {
                    removed?;
                    local::print([format!("{name}  (unfinished since {})", date::of(since))])
                }
            }
        }
        None if !is_one_of_all => {
            connection.explained(name, connection.client.find_unfinished(name).await)?;
            Ok(())
        }
        _ => Ok(()),
    }
}
