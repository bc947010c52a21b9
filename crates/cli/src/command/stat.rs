//! `starfish stat`: what is known of a file, and where its stripes lie.

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use fs::FileParts;
use machine::Duration;
use namespace::{Inode, InodeKind, UnixTime};

use crate::date;
use crate::local;
use crate::store::agents::{AgentsArgs, FlatArgs};
use crate::store::namespace::{FoundPath, Namespace, shown};
use crate::this_node;
use node::{ConnectedNode, Size};

/// Show the size of a file, its blocks, and which disk has which stripe.
///
/// Every stripe is looked up on its disk, so this also shows whether the file is complete, and whether it is
/// unfinished: being written, or left by a writer that was stopped. If an agent does not answer, which is a
/// failure, a question mark stands for what it alone knows.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file's name.
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    agents: AgentsArgs,

    #[command(flatten)]
    flat: FlatArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish stat big.dat --agents node1:7117,node2:7117";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    let (lines, outcome) = this_node::run_with_present(agents, move |connection| async move {
        if let Some(namespace) = arguments.flat.namespace(&connection).await? {
            return Ok((of_path(&namespace, &arguments.name).await?, Ok(())));
        }
        let mut all = connection.told(&arguments.name, connection.client.find_all(&arguments.name).await)?;
        let parts = match all.is_empty() {
            // That there is none is for the file system to say.
            true => connection.told(&arguments.name, connection.client.find(&arguments.name).await)?,
            false => all.remove(0),
        };
        let whole =
            connection.told(&arguments.name, parts.clone().complete(&arguments.name)).map_err(Failure::from);
        if whole.is_err() && connection.absence().is_ok() && parts.unfinished_since.is_none() {
            return Err(whole.expect_err("just seen"));
        }
        let bytes = whole.as_ref().map_or_else(|_| "?".to_owned(), |stat| stat.bytes.to_string());
        let mut lines = lines(&connection, &arguments.name, &bytes, &parts);
        lines.extend(all.iter().filter_map(|other| other.unfinished_since).map(|since| {
            format!("Another file of this name is unfinished: it was begun {}.", date::of(since))
        }));
        let is_unfinished = parts.unfinished_since.is_some();
        Ok((lines, if is_unfinished { Ok(()) } else { whole.map(drop) }))
    })?;
    local::print(lines)?;
    outcome
}

/// What is known of what a path leads to.
async fn of_path(namespace: &Namespace, path: &str) -> Result<Vec<String>> {
    let FoundPath { inode, .. } = namespace.look_at_link(path.as_bytes()).await?;
    let time = |at: UnixTime| date::of(Duration::from_nanos(at.max(0) as u64));
    let kind = match &inode.kind {
        InodeKind::File(_) => "file".to_owned(),
        InodeKind::Directory { .. } => "directory".to_owned(),
        InodeKind::Link { target } => format!("link to {}", shown(target)),
        InodeKind::Special { kind, device } => format!("{kind:?} {device}").to_lowercase(),
    };
    let entries = if inode.is_directory() { "entries" } else { "bytes" };
    let mut lines = vec![
        format!("path      {path}"),
        format!("kind      {kind}"),
        format!("{entries:<9} {}", inode.size),
        format!("number    {:016x}", inode.number.0),
        format!("mode      {:04o}, user {}, group {}", inode.mode, inode.uid, inode.gid),
        format!("names     {}", inode.links),
        format!("modified  {}", time(inode.modified)),
        format!("changed   {}", time(inode.changed)),
        format!("made      {}", time(inode.made)),
    ];
    if inode.layout().is_some() {
        lines.extend(stripes(namespace, path, &inode).await?);
    }
    Ok(lines)
}

/// Where the stripes of a file of a namespace are. Those that were never written to are nowhere, and `?` are the agent
/// and the disk where none of the agents that answer has the disk.
async fn stripes(namespace: &Namespace, path: &str, inode: &Inode) -> Result<Vec<String>> {
    let connection = &namespace.connection;
    let file = connection.told(path, namespace.tree.numbered(inode).await)?;
    let there = connection.told(path, connection.client.numbered_stripes(&file).await)?;
    let disks = connection.told(path, connection.client.disks_by_identity().await)?;
    let (block, count) = (Size(file.striping.block_bytes()), file.striping.stripe_count());
    let mut table = TextTable::new(3);
    table.row(["stripe", "agent", "disk", "bytes"]);
    for (stripe, identity) in (0..count).zip(&file.disks) {
        let (agent, disk) = disks.get(identity).map_or(("?".into(), "?".into()), |(node, disk)| {
            (connection.name(*node).to_owned(), disk.to_string())
        });
        let bytes = there.get(&stripe).map_or_else(|| "-".into(), u64::to_string);
        table.row([stripe.to_string(), agent, disk, bytes]);
    }
    let striping = format!("striping  blocks of {block} over {count} stripes");
    Ok(std::iter::once(striping).chain(table.lines()).collect())
}

const UNFINISHED: &str = "it is being written, or its writer was stopped";

fn lines(connection: &ConnectedNode, name: &str, bytes: &str, parts: &FileParts) -> Vec<String> {
    let (block, stripes) = (Size(parts.striping.block_bytes()), parts.striping.stripe_count());
    let mut lines = vec![
        format!("name      {name}"),
        format!("bytes     {bytes}"),
        format!("identity  {:016x}", parts.file.0),
        format!("striping  blocks of {block} over {stripes} stripes"),
    ];
    if let Some(since) = parts.unfinished_since {
        lines.push(format!("unfinished since {}: {UNFINISHED}", date::of(since)));
    }
    let mut table = TextTable::new(3);
    table.row(["stripe", "agent", "disk", "bytes"]);
    for index in 0..stripes {
        let place = parts.stripes.get(&index);
        let [agent, disk, bytes] = place.map_or(["?", "?", "?"].map(String::from), |&(node, disk, bytes)| {
            [connection.name(node).to_owned(), disk.to_string(), bytes.to_string()]
        });
        table.row([index.to_string(), agent, disk, bytes]);
    }
    lines.extend(table.lines());
    lines
}
