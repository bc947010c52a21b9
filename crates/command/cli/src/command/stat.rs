//! `starfish stat`: shows the attributes of a file, and the locations of its stripes.

use clap::{Args, ValueEnum};
use command_line::failure::Result;
use command_line::{TextTable, counted, visible};
use namespace::{Inode, InodeKind};
use serde::Serialize;
use serde_json::json;

use crate::options::agents::AgentsArgs;
use crate::output::date;
use crate::output::row_format;
use node::Size;
use transfer::local;
use transfer::namespace::{FoundPath, Namespace, kind_name, shown};

/// Show the attributes of a file: its size, permissions and times, its blocks, and which disk has which stripe.
///
/// Each stripe is looked up on its disk. A stripe without data does not exist; it has a dash in place of the number of
/// bytes. A question mark means that the disk's agent does not answer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Path of a file, directory or link.
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  starfish stat big.dat --agents node1:7117,node2:7117
  starfish stat big.dat --format json | jq .stripes";

/// Output format of the attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines of text.
    Table,
    /// One JSON object.
    Json,
}

/// Stripe with its location, if the location is known.
#[derive(Serialize)]
struct StripeRow {
    stripe: u32,
    agent: Option<String>,
    disk: Option<u32>,
    /// Size in bytes; `None` if the stripe does not exist.
    bytes: Option<u64>,
}

impl StripeRow {
    /// Formats the stripes as a table.
    fn lines(rows: &[StripeRow]) -> Vec<String> {
        let mut table = TextTable::new(3);
        table.row(["stripe", "agent", "disk", "bytes"]);
        for StripeRow { stripe, agent, disk, bytes } in rows {
            let agent = agent.clone().unwrap_or_else(|| "?".into());
            let disk = disk.map_or_else(|| "?".into(), |disk| disk.to_string());
            let bytes = bytes.map_or_else(|| "-".into(), |bytes| bytes.to_string());
            table.row([stripe.to_string(), agent, disk, bytes]);
        }
        table.lines().collect()
    }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { name, agents, format } = arguments;
    let lines = agents.cluster()?.run_with_present(move |connection| async move {
        of_path(&Namespace::of(&connection).await?, &name, format).await
    })?;
    local::print(lines)
}

/// Returns the attributes of the file at a path.
async fn of_path(namespace: &Namespace, path: &str, format: Format) -> Result<Vec<String>> {
    let FoundPath { inode, .. } = namespace.look_at_link(path.as_bytes()).await?;
    if format == Format::Json {
        return path_as_json(namespace, path, &inode).await;
    }
    let kind = match &inode.kind {
        InodeKind::File(_) => "file".to_owned(),
        InodeKind::Directory { .. } => "directory".to_owned(),
        InodeKind::Link { target } => format!("link to {}", shown(target)),
        InodeKind::Special { device, .. } => format!("{} {device}", kind_name(&inode.kind)),
    };
    let entries = if inode.is_directory() { "entries" } else { "bytes" };
    let mut lines = vec![
        format!("path      {}", visible(path)),
        format!("kind      {kind}"),
        format!("{entries:<9} {}", inode.size),
        format!("number    {}", inode.number),
        format!("mode      {:04o}, user {}, group {}", inode.mode, inode.uid, inode.gid),
        format!("names     {}", inode.links),
        format!("modified  {}", date::of_unix(inode.modified)),
        format!("changed   {}", date::of_unix(inode.changed)),
        format!("made      {}", date::of_unix(inode.made)),
    ];
    if inode.layout().is_some() {
        let (block_bytes, stripes) = stripes(namespace, path, &inode).await?;
        lines.push(striping(block_bytes, stripes.len()));
        lines.extend(StripeRow::lines(&stripes));
    }
    Ok(lines)
}

async fn path_as_json(namespace: &Namespace, path: &str, inode: &Inode) -> Result<Vec<String>> {
    let target = match &inode.kind {
        InodeKind::Link { target } => Some(shown(target)),
        _ => None,
    };
    let (block_bytes, stripes) = match inode.layout() {
        Some(_) => stripes(namespace, path, inode).await.map(|(bytes, stripes)| (Some(bytes), stripes))?,
        None => (None, Vec::new()),
    };
    let known = json!({
        "path": path,
        "kind": kind_name(&inode.kind),
        "target": target,
        "size": inode.size,
        "number": inode.number.to_string(),
        "mode": format!("{:04o}", inode.mode),
        "user": inode.uid,
        "group": inode.gid,
        "names": inode.links,
        "modified": date::for_programs(inode.modified),
        "changed": date::for_programs(inode.changed),
        "made": date::for_programs(inode.made),
        "block_bytes": block_bytes,
        "stripes": stripes,
    });
    Ok(vec![row_format::json(&known)?])
}

/// Returns the block size of a file and the locations of its stripes. A stripe without data has no location. Agent and
/// disk are unknown if no agent that answers has the disk.
async fn stripes(namespace: &Namespace, path: &str, inode: &Inode) -> Result<(u64, Vec<StripeRow>)> {
    let connection = &namespace.connection;
    let file = connection.explained(path, namespace.tree.numbered(inode).await)?;
    let there = match connection.client.numbered_stripes(&file).await {
        // The file cannot be opened, so list its stripes.
        Err(error) if matches!(*error, fs::Error::BlockTooLarge { .. }) => {
            let listed = connection.explained(path, connection.client.list_numbered().await)?;
            let own = listed.into_iter().filter(|(_, listed)| listed.file == file.number);
            own.filter_map(|(_, listed)| listed.stripe).collect()
        }
        there => connection.explained(path, there)?,
    };
    let disks = connection.explained(path, connection.client.disks_by_identity().await)?;
    let stripes = (0..file.striping.stripe_count()).zip(&file.disks).map(|(stripe, identity)| {
        let place = disks.get(identity);
        StripeRow {
            stripe,
            agent: place.map(|(node, _)| connection.name(*node).to_owned()),
            disk: place.map(|(_, disk)| *disk),
            bytes: there.get(&stripe).copied(),
        }
    });
    Ok((file.striping.block_bytes(), stripes.collect()))
}

/// Formats the striping of a file.
fn striping(block_bytes: u64, stripes: usize) -> String {
    format!("striping  blocks of {} over {}", Size(block_bytes), counted(stripes, "stripe"))
}
