//! `starfish trace start`: agents record what they do.

use clap::Args;
use command_line::failure::{Failure, Result};
use node::ErrorKind;

use crate::local;
use crate::store::agents::AgentsArgs;
use crate::this_node;

/// Have all agents record what they do from now on, until `starfish trace stop`.
///
/// Each keeps its last 262144 events in memory, about 40 MB. Those that record already begin anew. An agent that was
/// started with --trace writes a trace of its own; then nothing is begun.
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

const WHAT: &str = "recording";

const REMEDY: &str = "An agent that was started with --trace FILE or STARFISH_TRACE adds to that file when it ends; \
                      start it without to record on demand.";

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    let names = this_node::run(agents, |connection| async move {
        let started = connection.told(WHAT, connection.client.start_recording().await);
        started.map_err(|error| match error.kind() {
            ErrorKind::Invalid => Failure::from(error).remedy(REMEDY),
            _ => error.into(),
        })?;
        Ok(connection.present().map(str::to_owned).collect::<Vec<String>>())
    })?;
    local::print(names.iter().map(|name| format!("{name} records what it does")))
}
