//! `starfish stat`: what is known of a file, and where its stripes lie.

use clap::Args;
use fs::FileParts;

use crate::failure::Result;
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::store::session::{self, Session};
use crate::table::Table;
use pdiol::Size;

/// Show what is known of a file: its size, its blocks, and which disk has which stripe.
///
/// Every stripe is looked up on its disk, so this also tells whether the file is complete. What an agent that does not
/// answer would have to tell is a question mark, which is a failure.
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
    let (lines, outcome) = session::run_with_present(agents, move |session| async move {
        let parts = session.told(&arguments.name, session.client.find(&arguments.name).await)?;
        let whole = session.told(&arguments.name, parts.clone().complete(&arguments.name));
        if whole.is_err() && session.absence().is_ok() {
            return Err(whole.expect_err("just seen"));
        }
        let bytes = whole.as_ref().map_or_else(|_| "?".to_owned(), |stat| stat.bytes.to_string());
        Ok((lines(&session, &arguments.name, &bytes, &parts), whole.map(drop)))
    })?;
    local::print(lines)?;
    outcome
}

fn lines(session: &Session, name: &str, bytes: &str, parts: &FileParts) -> Vec<String> {
    let (block, stripes) = (Size(parts.striping.block_bytes()), parts.striping.stripe_count());
    let mut lines = vec![
        format!("name      {name}"),
        format!("bytes     {bytes}"),
        format!("identity  {:016x}", parts.file.0),
        format!("striping  blocks of {block} over {stripes} stripes"),
    ];
    let mut table = Table::new(3);
    table.row(["stripe", "agent", "disk", "bytes"]);
    for index in 0..stripes {
        let place = parts.stripes.get(&index);
        let [agent, disk, bytes] = place.map_or(["?", "?", "?"].map(String::from), |&(node, disk, bytes)| {
            [session.name(node).to_owned(), disk.to_string(), bytes.to_string()]
        });
        table.row([index.to_string(), agent, disk, bytes]);
    }
    lines.extend(table.lines());
    lines
}
