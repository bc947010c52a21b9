//! `starfish mkdir`: creates directories.

use clap::Args;
use command_line::failure::{Failure, Result};
use node::ErrorKind;
use transfer::namespace::Namespace;

use crate::options::agents::AgentsArgs;

/// Make directories.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Paths of the directories.
    #[arg(value_name = "PATH", required = true)]
    names: Vec<String>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Make missing parent directories as well, and accept directories that exist.
    #[arg(short, long)]
    parents: bool,
}

const EXAMPLES: &str = "\
Examples:
  starfish mkdir results --agents node1:7117,node2:7117
  starfish mkdir -p results/2026/november";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    arguments.agents.cluster()?.run_with_present(move |connection| async move {
        let namespace = Namespace::of(&connection).await?;
        let mut outcome = Ok(());
        for path in &arguments.names {
            let made = match arguments.parents {
                true => namespace.make_directories(path.as_bytes()).await,
                false => namespace.make_directory(path.as_bytes()).await,
            };
            if let Err(error) = made {
                let failure = match error.kind() {
                    ErrorKind::Exists if !arguments.parents => {
                        Failure::from(error).remedy("With -p, mkdir accepts existing directories.")
                    }
                    ErrorKind::NotFound if !arguments.parents => {
                        Failure::from(error).remedy("With -p, mkdir also creates missing parent directories.")
                    }
                    _ => error.into(),
                };
                failure.join(&mut outcome);
            }
        }
        namespace.flush().await?;
        outcome
    })
}
