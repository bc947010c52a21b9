//! `starfish cat`: files one after the other on standard output.

use std::path::Path;

use clap::Args;
use command_line::failure::Result;
use command_line::progress::{Progress, Show};
use node::sparse::Dense;
use transfer::local::{self, Hashing, STANDARD};
use transfer::one_file::{self, Movers};

use crate::options::agents::AgentsArgs;

/// Print files to standard output, one after the other.
///
/// Data are prefetched from the disks while the output is consumed, in a bounded window of memory. A file that cannot
/// be read is reported, and the others are printed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The files' paths.
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
    let method = Movers::ALONE;
    let mut outcome = Ok(());
    for name in &arguments.names {
        let (_, output) = local::create(Path::new(STANDARD), name, false)?;
        let progress = Progress::bytes(Show::Never, name);
        match one_file::get(&cluster, name, method, Hashing::new(Dense(output), false), &progress) {
            Ok(_) => {}
            Err(failure) if failure.kind().is_some() => failure.join(&mut outcome),
            // Nothing more can be printed.
            Err(failure) => return outcome.and(Err(failure)),
        }
    }
    outcome
}
