//! `starfish stat`: what is known of a file, and where its stripes lie.

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use fs::FileParts;

use crate::date;
use crate::local;
use crate::store::agents::AgentsArgs;
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
}

const EXAMPLES: &str = "\
Examples:
  starfish stat big.dat --agents node1:7117,node2:7117";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    let (lines, outcome) = this_node::run_with_present(agents, move |connection| async move {
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
