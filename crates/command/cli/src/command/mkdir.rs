//! `starfish mkdir`: directories, and with the first of them a namespace.

use clap::Args;
use command_line::failure::{Failure, Result};
use namespace::check_name;
use node::{ConnectedNode, ErrorKind};

use crate::local;
use crate::store::agents::AgentsArgs;
use crate::store::namespace::Namespace;
use crate::this_node;

/// Make directories. The first begins the namespace, if the agents have none.
///
/// One of the agents keeps the namespace, so all agents of the set must be named, and answer, when it is begun. From
/// then on names are paths, for all commands and programs. Files that were put before keep their flat names; `get`,
/// `cat`, `ls`, `stat` and `rm` find them with --flat.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directories' paths.
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
    let agents = arguments.agents.find()?;
    let lines = this_node::run_with_present(agents, move |connection| async move {
        check_first(&connection, &arguments).await?;
        let (namespace, lines) = Namespace::find_or_begin(&connection).await?;
        let mut outcome = Ok(());
        for path in &arguments.names {
            let made = match arguments.parents {
                true => namespace.make_directories(path.as_bytes()).await,
                false => namespace.make_directory(path.as_bytes()).await,
            };
            if let Err(error) = made {
                let failure = match error.kind() {
                    ErrorKind::Exists if !arguments.parents => {
                        Failure::from(error).remedy("With -p, a directory that exists is accepted.")
                    }
                    ErrorKind::NotFound if !arguments.parents => {
                        Failure::from(error).remedy("With -p, missing parent directories are made as well.")
                    }
                    _ => error.into(),
                };
                failure.join(&mut outcome);
            }
        }
        namespace.flush().await?;
        Ok((lines, outcome))
    });
    let (lines, outcome) = lines?;
    local::print(lines)?;
    outcome
}

/// Refuses to begin a namespace with a directory that could not be made in it.
async fn check_first(connection: &ConnectedNode, arguments: &Arguments) -> Result<()> {
    let first = &arguments.names[0];
    let can_be_made = arguments.parents || check_name(first.trim_matches('/').as_bytes()).is_ok();
    if can_be_made || Namespace::find(connection).await?.is_some() {
        return Ok(());
    }
    let failure = Failure::new(first, "the agents have no namespace, so there are no directories");
    Err(failure.remedy(format!("`starfish mkdir -p {first}` begins one.")))
}
