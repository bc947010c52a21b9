//! `starfish stat`: what is known of a file, and where its stripes lie.

use clap::Args;

use crate::failure::Result;
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::store::session;
use crate::table::Table;
use pdiol::Size;

/// Show what is known of a file: its size, its blocks, and which disk has which stripe.
///
/// Every stripe is looked up on its disk, so this also tells whether the file is complete.
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
    let lines = session::run(agents, move |session| async move {
        let stat = session.stat(&arguments.name).await?;
        let (block, stripes) = (Size(stat.striping.block_bytes()), stat.striping.stripe_count());
        let mut lines = vec![
            format!("name      {}", arguments.name),
            format!("bytes     {}", stat.bytes),
            format!("identity  {:016x}", stat.file.0),
            format!("striping  blocks of {block} over {stripes} stripes"),
        ];
        let mut table = Table::new(3);
        table.row(["stripe", "agent", "disk", "bytes"]);
        for (index, (node, disk, bytes)) in stat.stripes.iter().enumerate() {
            table.row([index.to_string(), session.name(*node).into(), disk.to_string(), bytes.to_string()]);
        }
        lines.extend(table.lines());
        Ok(lines)
    })?;
    local::print(lines)
}
