//! `starfish trace start`: starts recordings on agents.

use clap::Args;
use command_line::failure::Result;
use transfer::local;
use transfer::recordings;

use crate::options::agents::AgentsArgs;

/// Start recording the work of all agents, until `starfish trace stop`.
///
/// Each agent keeps its last 262144 events in memory, about 40 MB. Agents that are already recording restart their
/// recording. An agent that was started with --trace writes its own trace; if there is such an agent in the set, no
/// recording starts.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish trace start
  starfish trace start --agents node1:7117,node2:7117";

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let cluster = arguments.agents.cluster()?;
    let names = recordings::start(&cluster, true)?;
    local::print(names.iter().map(|name| format!("{name} is recording")))
}
