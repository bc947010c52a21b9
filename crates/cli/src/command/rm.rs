//! `starfish rm`: files go.

use clap::Args;

use crate::failure::Result;
use crate::store::agents::AgentsArgs;
use crate::store::session;

/// Remove files from the agents, also damaged ones.
///
/// What can be removed is removed, even if a name among the others cannot. A file that has a stripe on an agent that
/// does not answer cannot.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The files' names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    #[command(flatten)]
    agents: AgentsArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish rm big.dat --agents node1:7117,node2:7117
  starfish rm part1 part2 part3";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    session::run_with_present(agents, move |session| async move {
        let mut outcome = Ok(());
        for name in &arguments.names {
            let removed = session.unlink(name).await;
            match (&outcome, removed) {
                (Ok(()), removed) => outcome = removed,
                (Err(_), Err(failure)) => eprintln!("{failure}"),
                (Err(_), Ok(())) => {}
            }
        }
        outcome
    })
}
