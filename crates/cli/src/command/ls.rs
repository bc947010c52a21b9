//! `starfish ls`: which files there are.

use clap::Args;

use crate::failure::Result;
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::store::session::{self, Session};
use crate::table::Table;
use pdiol::{ErrorKind, Size};

/// List the files that the agents keep.
///
/// Every name is listed that any agent has a stripe of. With `-l`, files of which stripes are missing, foreign or
/// damaged are marked as damaged; `starfish stat` says what is wrong. Of those that an agent cannot tell about now, which
/// is a failure, there is a question mark.
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
    let (lines, outcome) = session::run(agents, move |session| async move {
        let names = session.told("listing the files", session.client.list().await)?;
        Ok(if arguments.long { long(&session, names).await } else { (names, Ok(())) })
    })?;
    local::print(lines)?;
    outcome
}

/// A line for each file, and the first failure that is not a file's own.
async fn long(session: &Session, names: Vec<String>) -> (Vec<String>, Result<()>) {
    let mut table = Table::new(0);
    let (mut last_column, mut outcome) = (Vec::new(), Ok(()));
    for name in names {
        match session.client.stat(&name).await {
            Ok(stat) => {
                let (block, stripes) = (Size(stat.striping.block_bytes()), stat.striping.stripe_count());
                table.row([stat.bytes.to_string(), block.to_string(), stripes.to_string()]);
            }
            // Removed since it was listed.
            Err(error) if matches!(*error, fs::Error::NotFound { .. }) => continue,
            Err(error) => {
                let error = session.explain(&name, &error);
                let is_damaged = error.kind() == ErrorKind::Damaged;
                table.row([if is_damaged { "damaged" } else { "?" }, "-", "-"]);
                if !is_damaged {
                    outcome = outcome.and(Err(error.into()));
                }
            }
        }
        last_column.push(name);
    }
    (table.lines().zip(last_column).map(|(line, name)| format!("{line}  {name}")).collect(), outcome)
}
