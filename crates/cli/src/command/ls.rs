//! `starfish ls`: which files there are. Those of a namespace are listed by `ls/tree.rs`.

mod tree;

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use fs::FileParts;

use crate::date;
use crate::local;
use crate::store::agents::{AgentsArgs, FlatArgs};
use crate::store::globs;
use crate::this_node;
use node::{ConnectedNode, ErrorKind, Size};

/// List the files that the agents keep.
///
/// Lists every name that any agent has a stripe of. With `-l`, files with missing, foreign or damaged stripes are
/// marked as damaged; `starfish stat` shows the cause. Files that are being written, or whose writer was stopped,
/// are marked as unfinished, with the time they were begun; their size is that of the part written. If an agent
/// does not answer, which is a failure, the size of a file with a stripe there is a question mark.
///
/// With a namespace, lists what is in the directories that are named, or in the root. Directories end with /. With -l,
/// permissions, user, group, size and time are shown, as ls does.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Paths of files or directories, or patterns of paths; of flat names, patterns of those to list.
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// List sizes as well, and blocks and stripes of flat files.
    #[arg(short, long)]
    long: bool,

    /// With -l, sizes for people: 4.2 MiB.
    #[arg(long, requires = "long")]
    human_readable: bool,

    /// List names that begin with a dot.
    #[arg(short, long)]
    all: bool,

    /// List what is in directories within, each by its path.
    #[arg(short = 'R', long)]
    recursive: bool,

    #[command(flatten)]
    agents: AgentsArgs,

    #[command(flatten)]
    flat: FlatArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish ls --agents node1:7117,node2:7117
  starfish ls -l --human-readable
  starfish ls -R results 'old/*.dat'";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    let (lines, outcome) = this_node::run_with_present(agents, move |connection| async move {
        if let Some(namespace) = arguments.flat.namespace_surely(&connection).await? {
            let Arguments { names, long, human_readable, all, recursive, .. } = arguments;
            let shown = tree::Shown { long, sizes: SizeStyle::of(human_readable), all, recursive };
            return tree::list(&namespace, &names, shown).await;
        }
        let names = connection.told("listing the files", connection.client.list().await)?;
        let (names, missing) = meant(names, &globs::flat_names(arguments.names)?);
        let sizes = SizeStyle::of(arguments.human_readable);
        let (lines, outcome) =
            if arguments.long { long(&connection, names, sizes).await } else { (names, Ok(())) };
        let absence = connection.absence().map_err(|error| Failure::from(error).also(UNLISTED));
        Ok((lines, absence.and(missing).and(outcome)))
    })?;
    local::print(lines)?;
    outcome
}

/// How sizes are written.
#[derive(Clone, Copy)]
enum SizeStyle {
    /// As numbers of bytes.
    Bytes,
    /// For people.
    Rounded,
}

impl SizeStyle {
    fn of(human_readable: bool) -> SizeStyle {
        if human_readable { SizeStyle::Rounded } else { SizeStyle::Bytes }
    }

    fn text(self, bytes: u64) -> String {
        match self {
            SizeStyle::Bytes => bytes.to_string(),
            SizeStyle::Rounded => Size(bytes).rounded(),
        }
    }
}

/// Those of flat names that are asked for, and the first failure to find one; the other failures are printed.
fn meant(all: Vec<String>, asked: &[String]) -> (Vec<String>, Result<()>) {
    if asked.is_empty() {
        return (all, Ok(()));
    }
    let (mut names, mut outcome) = (BTreeSet::new(), Ok(()));
    for text in asked {
        match globs::of_flat(&all, text) {
            Ok(meant) => names.extend(meant),
            Err(failure) => failure.join(&mut outcome),
        }
    }
    (names.into_iter().collect(), outcome)
}

const UNLISTED: &str = "Files that have no stripe anywhere else are not listed.";

/// A line for each file, and the first failure that is not a file's own.
async fn long(connection: &ConnectedNode, names: Vec<String>, sizes: SizeStyle) -> (Vec<String>, Result<()>) {
    let mut table = TextTable::new(0);
    let (mut last_column, mut outcome) = (Vec::new(), Ok(()));
    for name in names {
        match connection.client.find_all(&name).await {
            // There are none if it was removed since it was listed.
            Ok(all) => {
                for parts in all {
                    let since = parts.unfinished_since.map(date::of);
                    table.row(row(connection, &name, parts, sizes));
                    let mark =
                        since.map_or_else(String::new, |since| format!("  (unfinished since {since})"));
                    last_column.push(format!("{name}{mark}"));
                }
            }
            Err(error) => {
                let error = connection.explain(&name, &error);
                let is_damaged = error.kind() == ErrorKind::Damaged;
                table.row([if is_damaged { "damaged" } else { "?" }, "-", "-"]);
                if !is_damaged {
                    outcome = outcome.and(Err(error.into()));
                }
                last_column.push(name);
            }
        }
    }
    (
        table.whole_lines().iter().zip(last_column).map(|(line, name)| format!("{line}  {name}")).collect(),
        outcome,
    )
}

/// The size of a file, of its blocks, and its number of stripes, as far as they are known.
fn row(connection: &ConnectedNode, name: &str, parts: FileParts, sizes: SizeStyle) -> [String; 3] {
    let (block, stripes) = (Size(parts.striping.block_bytes()), parts.striping.stripe_count());
    let unfinished = parts.unfinished_since.is_some();
    let bytes = match parts.complete(name) {
        Ok(stat) => sizes.text(stat.bytes),
        // Its writer may have come no further than to make some of its stripes.
        Err(_) if unfinished => "?".into(),
        Err(_) if connection.absence().is_err() => "?".into(),
        Err(_) => return ["damaged", "-", "-"].map(Into::into),
    };
    [bytes, block.to_string(), stripes.to_string()]
}
