//! `starfish convert`: converts the files of an older version to files of the namespace; uses the crate `conversion`.

use std::path::PathBuf;

use clap::Args;
use command_line::counted;
use command_line::failure::{Failure, Result};
use conversion::{ConversionCounts, OldSet, convert};
use node::Size;
use transfer::local;

use super::agent::{NAMESPACE_VARIABLE, metadata_place, postgres_address};
use crate::options::experiment::ProgressArgs;

/// Convert a set of an older version: its files with flat names become files of the namespace.
///
/// Name the directories of all disks of the set. Disks of other computers must be mounted on this one. No agent may be
/// running on any of these disks. The path of each new file is its old name. Old stripes are removed only when the new
/// file is on the disks, so there must be space for a second copy of the largest file. The command can be interrupted
/// or killed at any time, and repeated. Files that cannot be converted are reported and left unchanged.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directories of all disks of the set.
    #[arg(value_name = "DIR", required = true, value_hint = clap::ValueHint::DirPath)]
    directories: Vec<PathBuf>,

    /// Convert the file NAME to the path PATH instead of NAME; can be repeated.
    #[arg(long, value_names = ["NAME", "PATH"], num_args = 2)]
    rename: Vec<String>,

    /// Remove unfinished files. Their programs were killed while they wrote them.
    #[arg(long)]
    remove_unfinished: bool,

    /// List the planned changes, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// PostgreSQL database with the namespace, as for `starfish agent`.
    #[arg(long, value_name = "URL", env = NAMESPACE_VARIABLE, hide_env_values = true,
        value_parser = postgres_address)]
    namespace: Option<String>,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish convert /disk1 /disk2 --dry-run
  starfish convert /disk1 /disk2
  starfish convert /disk1 /disk2 --rename results results/all.dat
  starfish convert ~/.local/state/starfish/*/disk             those of `agents up --local`";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { directories, rename, remove_unfinished, dry_run, namespace, progress } = arguments;
    let mut set = OldSet::new(directories, &rename)?;
    set.metadata = metadata_place(namespace.as_deref(), set.directories())?;
    (set.remove_unfinished, set.is_dry) = (remove_unfinished, dry_run);
    let tally = convert(set, progress.show)?;
    print(tally, dry_run)?;
    outcome(tally.left, dry_run)
}

fn print(tally: ConversionCounts, is_dry: bool) -> Result<()> {
    let ConversionCounts { converted, bytes, removed, left } = tally;
    let mut lines = Vec::new();
    if converted > 0 {
        let done = if is_dry { "Would convert" } else { "Converted" };
        lines.push(format!("{done}: {}, {}.", counted(converted, "file"), Size(bytes).rounded()));
    }
    if removed > 0 {
        let done = if is_dry { "Would remove" } else { "Removed" };
        lines.push(format!("{done}: {}.", counted(removed, "unfinished file")));
    }
    if converted + removed + left == 0 {
        lines.push("There are no files of an older version on these disks.".to_owned());
    }
    local::print(lines)
}

/// Fails if old files were not converted.
fn outcome(left: usize, is_dry: bool) -> Result<()> {
    let are_left = match (left, is_dry) {
        (0, _) => return Ok(()),
        (1, false) => "is left",
        (_, false) => "are left",
        (_, true) => "would be left",
    };
    let files = counted(left, "file");
    let why = format!("{files} of an older version {are_left}, see above");
    Err(Failure::new("convert", why))
}
