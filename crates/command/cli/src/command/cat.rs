//! `starfish cat`: prints files to standard output.

use std::path::Path;

use clap::Args;
use command_line::failure::Result;
use command_line::progress::{Progress, Show};
use node::sparse::Dense;
use node::whole_file::Method;
use transfer::local::{self, Hashing, STANDARD};
use transfer::namespace::Namespace;
use transfer::one_file;

use crate::options::agents::AgentsArgs;

/// Print files to standard output, one after the other.
///
/// Data are prefetched from the disks while the output is consumed, into a bounded amount of memory. A file that cannot
/// be read is reported, and the other files are printed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Paths of the files.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    #[command(flatten)]
    agents: AgentsArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish cat notes.txt --agents node1:7117,node2:7117
  starfish cat part1 part2 part3 | sort | uniq -c";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let cluster = arguments.agents.cluster()?;
    cluster.run_with_present(move |connection| async move {
        let namespace = Namespace::of(&connection).await?;
        let mut outcome = Ok(());
        for name in &arguments.names {
            match print(&namespace, name).await {
                Ok(()) => {}
                Err(failure) if failure.kind().is_some() => failure.join(&mut outcome),
                // Standard output has failed, so stop.
                Err(failure) => return outcome.and(Err(failure)),
            }
        }
        outcome
    })
}

/// Prints one file.
async fn print(namespace: &Namespace, name: &str) -> Result<()> {
    let (_, output) = local::create(Path::new(STANDARD), name, false)?;
    let (output, progress) = (Hashing::new(Dense(output), false), Progress::bytes(Show::Never, name));
    one_file::get(namespace, name, Method::Traditional, output, &progress).await.map(drop)
}
