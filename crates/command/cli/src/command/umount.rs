//! `starfish umount`: a directory is as it was before `starfish mount`.

use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::Result;
use command_line::say;

use doctor::mounts;

/// Unmount what `starfish mount` has mounted in a directory.
///
/// When it returns, all that was written is on the disks of the agents. If that is impossible, the directory is
/// unmounted all the same, and the error says so.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directory.
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,

    /// Detach it now even if it is in use, and unmount it when nobody uses it any more; what was written reaches the
    /// disks then.
    #[arg(long)]
    lazy: bool,
}

const EXAMPLES: &str = "\
Examples:
  starfish umount ~/files
  starfish umount --lazy ~/files";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { directory, lazy } = arguments;
    let synced = if lazy { Ok(()) } else { sync(&directory) };
    mount::unmount(&directory, lazy)?;
    Ok(synced?)
}

/// Waits until all that was written is on the disks, also for a mount that does not answer: whoever has stopped it may
/// let it go on. That it does not is told.
fn sync(directory: &Path) -> node::Result<()> {
    if let Some(silence) = mounts::silence(directory) {
        say!("starfish: {}", silence.also("This command waits for it."));
    }
    mount::sync(directory)
}
