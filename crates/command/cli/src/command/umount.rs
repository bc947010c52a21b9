//! `starfish umount`: unmounts a directory of `starfish mount`.

use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::Result;
use command_line::say;

use doctor::mounts;

/// Unmount a directory of `starfish mount`.
///
/// The command flushes all written data to the disks of the agents. If the flush fails, it still unmounts the
/// directory, and fails with the reason.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Mount point.
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,

    /// Detach the directory now, even if it is in use. It is unmounted, and the last data are written to the disks,
    /// when the last process leaves it.
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

/// Blocks until all written data are on the disks. If the mount does not answer, prints a notice and waits, because the
/// process of the mount may be resumed.
fn sync(directory: &Path) -> node::Result<()> {
    if let Some(silence) = mounts::silence(directory) {
        say!("starfish: {}", silence.also("This command waits for it."));
    }
    mount::sync(directory)
}
