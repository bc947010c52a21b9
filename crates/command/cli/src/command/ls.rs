//! `starfish ls`: which files there are. Those of a namespace are listed by `ls/tree.rs`.

mod tree;

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{ArgAction, Args};
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use fs::FileParts;
use machine::Duration;
use serde::Serialize;

use crate::local;
use crate::output::date;
use crate::output::row_format::RowFormat;
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
/// permissions, user, group, size and time are shown, as ls does. All of it is known to the agent that keeps the names;
/// others need not answer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
// -h is for sizes, as it is of ls.
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Paths of files or directories, or patterns of paths; for flat names, patterns of the names to list.
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// List sizes as well, and blocks and stripes of flat files.
    #[arg(short, long)]
    long: bool,

    /// With -l, show sizes for people: 4.2 MiB.
    #[arg(short, long, requires = "long")]
    human_readable: bool,

    /// Also list names that begin with a dot.
    #[arg(short, long)]
    all: bool,

    /// Also list what is in directories within, each file by its path.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Output format. CSV and JSON have everything that -l shows, and paths as names.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    #[command(flatten)]
    agents: AgentsArgs,

    #[command(flatten)]
    flat: FlatArgs,

    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  starfish ls --agents node1:7117,node2:7117
  starfish ls -lh
  starfish ls -R results 'old/*.dat'
  starfish ls -R --format json | jq '.[] | select(.size > 1e9).path'";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let (agents, format) = (arguments.agents.find()?, arguments.format);
    let (listed, outcome) = this_node::run_with_present(agents, move |connection| async move {
        if let Some(namespace) = arguments.flat.namespace_surely(&connection).await? {
            let Arguments { names, long, human_readable, all, recursive, .. } = arguments;
            let shown = tree::Shown { long, sizes: SizeStyle::of(human_readable), all, recursive };
            let (listed, outcome) = tree::list(&namespace, &names, shown).await?;
            return Ok((Listed::Tree(listed), outcome));
        }
        let listed = connection.client.list_partly().await;
        let failure = listed.failures.first().map(|error| connection.explain("listing the files", error));
        let names = listed.found;
        let (names, missing) = meant(names, &globs::flat_names(arguments.names)?);
        let sizes = SizeStyle::of(arguments.human_readable);
        let (listed, outcome) = if arguments.long || format != RowFormat::Table {
            let (rows, outcome) = flat_rows(&connection, names).await;
            (Listed::Flat(rows, sizes), outcome)
        } else {
            (Listed::Names(names), Ok(()))
        };
        let whole = connection.incompleteness().and(failure.map_or(Ok(()), Err));
        let absence = whole.map_err(|error| Failure::from(error).also(UNLISTED));
        Ok((listed, absence.and(missing).and(outcome)))
    })?;
    match listed {
        Listed::Names(names) => local::print(names),
        Listed::Flat(rows, sizes) => format.print(&rows, |rows| lines(rows, sizes)),
        Listed::Tree(listed) => format.print(&listed.rows(), |_| listed.lines()),
    }?;
    outcome
}

/// What is listed.
enum Listed {
    /// Flat names alone.
    Names(Vec<String>),
    Flat(Vec<FlatRow>, SizeStyle),
    Tree(tree::Listing),
}

/// A file of a flat name.
#[derive(Serialize)]
struct FlatRow {
    name: String,
    state: FlatState,
    /// This and the following fields: None if unknown.
    bytes: Option<u64>,
    block_bytes: Option<u64>,
    stripes: Option<u32>,
    /// If it is unfinished.
    begun: Option<String>,
    #[serde(skip)]
    unfinished_since: Option<Duration>,
}

/// How a file of a flat name is.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FlatState {
    Whole,
    Unfinished,
    Damaged,
    /// Not all agents answer.
    Unknown,
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

/// A row for each file, and the first failure that is not a file's own.
async fn flat_rows(connection: &ConnectedNode, names: Vec<String>) -> (Vec<FlatRow>, Result<()>) {
    let (mut rows, mut outcome) = (Vec::new(), Ok(()));
    for name in names {
        match connection.client.find_all(&name).await {
            // There are none if it was removed since it was listed.
            Ok(all) => rows.extend(all.into_iter().map(|parts| FlatRow::of(connection, &name, parts))),
            Err(error) => {
                let error = connection.explain(&name, &error);
                let is_damaged = error.kind() == ErrorKind::Damaged;
                rows.push(FlatRow::without_parts(name, is_damaged));
                if !is_damaged {
                    outcome = outcome.and(Err(error.into()));
                }
            }
        }
    }
    (rows, outcome)
}

impl FlatRow {
    fn without_parts(name: String, is_damaged: bool) -> FlatRow {
        let state = if is_damaged { FlatState::Damaged } else { FlatState::Unknown };
        FlatRow {
            name,
            state,
            bytes: None,
            block_bytes: None,
            stripes: None,
            begun: None,
            unfinished_since: None,
        }
    }

    fn of(connection: &ConnectedNode, name: &str, parts: FileParts) -> FlatRow {
        let (striping, unfinished_since) = (parts.striping, parts.unfinished_since);
        let bytes = parts.complete(name).ok().map(|stat| stat.bytes);
        let state = match (unfinished_since, bytes) {
            // Its writer may have come no further than to make some of its stripes.
            (Some(_), _) => FlatState::Unfinished,
            (None, Some(_)) => FlatState::Whole,
            (None, None) if connection.incompleteness().is_err() => FlatState::Unknown,
            (None, None) => return FlatRow::without_parts(name.to_owned(), true),
        };
        FlatRow {
            name: name.to_owned(),
            state,
            bytes,
            block_bytes: Some(striping.block_bytes()),
            stripes: Some(striping.stripe_count()),
            begun: unfinished_since.map(|since| date::for_programs(since.as_nanos() as i64)),
            unfinished_since,
        }
    }
}

/// The rows for people: size, size of blocks, number of stripes, and name.
fn lines(rows: &[FlatRow], sizes: SizeStyle) -> Vec<String> {
    let mut table = TextTable::new(0);
    for row in rows {
        let bytes = match (row.bytes, row.state) {
            (Some(bytes), _) => sizes.text(bytes),
            (None, FlatState::Damaged) => "damaged".into(),
            (None, _) => "?".into(),
        };
        let block = row.block_bytes.map_or_else(|| "-".into(), |bytes| Size(bytes).to_string());
        let stripes = row.stripes.map_or_else(|| "-".into(), |stripes| stripes.to_string());
        table.row([bytes, block, stripes]);
    }
    let name = |row: &FlatRow| {
        let since = row.unfinished_since.map(|since| format!("  (unfinished since {})", date::of(since)));
        format!("{}{}", row.name, since.unwrap_or_default())
    };
    table.whole_lines().iter().zip(rows).map(|(line, row)| format!("{line}  {}", name(row))).collect()
}
