//! `starfish ls`: which files there are.

use clap::Args;

use crate::failure::Result;
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::store::session::{self, Session};
use crate::table::Table;
use pdiol::Size;

/// List the files that the agents keep.
///
/// Every name is listed that any agent has a stripe of. With `-l`, files of which stripes are missing are
/// marked as damaged.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// List sizes, blocks and stripes as well.
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    agents: AgentsArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish ls --agents node1:7117,node2:7117
  starfish ls -l";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    let lines = session::run(agents, move |session| async move {
        let names = session.told("listing the files", session.client.list().await)?;
        Ok(if arguments.long { long(&session, names).await } else { names })
    })?;
    local::print(lines)
}

async fn long(session: &Session, names: Vec<String>) -> Vec<String> {
    let mut table = Table::new(0);
    let mut last_column = Vec::new();
    for name in names {
        match session.client.stat(&name).await {
            Ok(stat) => {
                let (block, stripes) = (Size(stat.striping.block_bytes()), stat.striping.stripe_count());
                table.row([stat.bytes.to_string(), block.to_string(), stripes.to_string()]);
            }
            Err(error) => match *error {
                fs::Error::MissingStripe { .. } | fs::Error::ForeignStripe { .. } => {
                    table.row(["damaged", "-", "-"])
                }
                // Removed since it was listed, or an agent that is gone: the next one will tell.
                _ => table.row(["?", "-", "-"]),
            },
        }
        last_column.push(name);
    }
    table.lines().zip(last_column).map(|(line, name)| format!("{line}  {name}")).collect()
}
