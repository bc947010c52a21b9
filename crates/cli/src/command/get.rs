//! `starfish get`: a file in stripes becomes a local file.

use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use layout::Extent;

use crate::local::{self, Hashing, STANDARD};
use crate::store::agents::AgentsArgs;
use crate::store::transfer::{self, Get, MethodArgs};

/// Get a file from the agents, reading all their disks at once.
///
/// The local file appears under its name only when it is complete; until then its name is `.starfish-` and some
/// letters. That file is removed if the command fails or is interrupted, but not if it is killed.
///
/// An unfinished file, whose writer was killed or is still writing, is refused.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Name of the file on the agents.
    #[arg(value_name = "NAME")]
    name: String,

    /// Destination: a file, a directory, or `-` for standard output. Without this: its name, in this directory.
    #[arg(value_name = "LOCAL")]
    local: Option<PathBuf>,

    #[command(flatten)]
    agents: AgentsArgs,

    #[command(flatten)]
    method: MethodArgs,

    /// Read the unfinished file of that name, if there is one. Bytes not written read as zeros.
    #[arg(long)]
    unfinished: bool,

    /// Replace an existing local file.
    #[arg(long, short)]
    force: bool,

    /// Get the readable parts of a damaged file, with zeros for the rest, and report which bytes those are. Exit
    /// code 1 means that there are some.
    #[arg(long)]
    skip_damaged: bool,

    /// Print the blake3 hash of the file, as b3sum does; on standard error if the file goes to standard output.
    #[arg(long)]
    hash: bool,

    /// Whether to show progress.
    #[arg(long, value_enum, default_value_t = Show::Auto, value_name = "WHEN")]
    progress: Show,
}

const EXAMPLES: &str = "\
Examples:
  starfish get big.dat --agents node1:7117,node2:7117
  starfish get results/today.dat /tmp --force --hash
  starfish get directory.tar - | tar x
  starfish get big.dat --method disk-directed --compute-nodes 8
  starfish get hurt.dat rest.dat --skip-damaged";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let name = &arguments.name;
    let local = arguments.local.unwrap_or_else(|| local::last_part(name).into());
    let agents = arguments.agents.find()?;
    let (target, output) = local::create(&local, name, arguments.force)?;
    let progress = Progress::bytes(arguments.progress, name);
    let output = Hashing::new(output, arguments.hash);
    let (hash, lost) = if arguments.skip_damaged {
        transfer::salvage(&agents, name, arguments.method, output, &progress)?
    } else {
        let get = Get { method: arguments.method, unfinished: arguments.unfinished };
        let done = transfer::get(&agents, name, get, output, &progress)?;
        (done.hash, Vec::new())
    };
    progress.finish();
    target.complete()?;
    match hash {
        Some(hash) if local == Path::new(STANDARD) => eprintln!("{hash}  {name}"),
        Some(hash) => local::print([format!("{hash}  {name}")])?,
        None => {}
    }
    tell_of_lost(name, &lost)
}

/// Fails if bytes could not be read, after all of them have been named.
fn tell_of_lost(name: &str, lost: &[Extent]) -> Result<()> {
    for extent in lost {
        eprintln!("{name}: bytes {} could not be read", local::range(*extent));
    }
    let bytes: u64 = lost.iter().map(|extent| extent.bytes).sum();
    if bytes == 0 {
        return Ok(());
    }
    let why = format!("{bytes} of its bytes could not be read; there are zeros in their place");
    Err(Failure::new(name, why).remedy("`starfish fsck` tells which disks they are on."))
}
