//! `starfish umount`: a directory is as it was before `starfish mount`.

use std::path::PathBuf;

use clap::Args;
use command_line::failure::Result;

/// Unmount what `starfish mount` has mounted in a directory.
///
/// All that was written and closed is with the agents already; the program that mounted it brings it onto the disks
/// and ends.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directory.
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,

    /// If it is in use, take it away now, and unmount it when nobody uses it any more.
    #[arg(long)]
    lazy: bool,
}

const EXAMPLES: &str = "\
Examples:
  starfish umount ~/files
  starfish umount --lazy ~/files";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    Ok(mount::unmount(&arguments.directory, arguments.lazy)?)
}
