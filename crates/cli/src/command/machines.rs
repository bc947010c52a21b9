//! `starfish machines`: the machines and disks that are part of the program.

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use description::{Description, DiskDescription, MachineDescription};

use crate::local;

/// List the machines that can be simulated and the disk models, or print one of them.
///
/// A description is a TOML file in which every number says where it comes from. To describe a machine of your
/// own, print one, change it, and give the file's name where a machine or disk is asked for.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The machine or disk to print.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  starfish machines
  starfish machines starfish-1996 > mine.toml
  starfish simulate --machine mine.toml --pattern rb";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Some(name) = arguments.name else { return local::print(list()?) };
    let mut all = MachineDescription::BUILT_IN.iter().chain(DiskDescription::BUILT_IN);
    match all.find(|(known, _)| *known == name) {
        Some((_, text)) => local::print(text.lines().map(str::to_owned)),
        None => {
            Err(Failure::usage(name, "no machine or disk of this name")
                .remedy("`starfish machines` lists them."))
        }
    }
}

fn list() -> Result<Vec<String>> {
    let failed = |error: description::Error| Failure::new("reading a built-in description", error);
    let mut table = TextTable::new(3);
    for (name, _) in MachineDescription::BUILT_IN {
        let machine = MachineDescription::load(name).map_err(failed)?;
        let (nodes, disks) = (&machine.nodes, &machine.disks);
        let (compute, io, each) = (nodes.compute.value, nodes.io.value, disks.per_io_node.value);
        let nodes =
            |count: u32, kind: &str| format!("{count} {kind} node{}", if count == 1 { "" } else { "s" });
        let (compute, io) = (nodes(compute, "compute"), nodes(io, "I/O"));
        let what = format!("{}: {compute}, {io}, {each} x {} each", machine.name, disks.model.value);
        table.row(["machine", name, &what]);
    }
    for (name, _) in DiskDescription::BUILT_IN {
        let disk = DiskDescription::load(name).map_err(failed)?;
        table.row(["disk", name, disk.name()]);
    }
    Ok(table.lines().collect())
}
