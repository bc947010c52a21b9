//! `starfish machines`: lists and prints the built-in machines and disks.

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::{TextTable, counted};
use description::{Description, DiskDescription, MachineDescription};
use serde::Serialize;
use transfer::local;

use crate::output::row_format::RowFormat;

/// List the machines that can be simulated and the disk models, or print one of them.
///
/// A description is a TOML file in which every number states its source. To describe your own machine, print a
/// description, change it, and use the name of this file in place of a machine or disk.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Machine or disk to print.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Output format of the list.
    #[arg(long, value_enum, default_value_t = RowFormat::Table, conflicts_with = "name")]
    format: RowFormat,
}

const EXAMPLES: &str = "\
Examples:
  starfish machines
  starfish machines --format json | jq -r '.[].name'
  starfish machines starfish-1996 > mine.toml
  starfish simulate --machine mine.toml --pattern rb";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Some(name) = arguments.name else { return arguments.format.print(&list()?, lines) };
    let mut all = MachineDescription::BUILT_IN.iter().chain(DiskDescription::BUILT_IN);
    match all.find(|(known, _)| *known == name) {
        Some((_, text)) => local::print(text.lines().map(str::to_owned)),
        None => {
            Err(Failure::usage(name, "no machine or disk of this name")
                .remedy("`starfish machines` lists them."))
        }
    }
}

/// Built-in description.
#[derive(Serialize)]
struct Row {
    kind: &'static str,
    /// Name in options.
    name: &'static str,
    /// Title in the description.
    title: String,
    /// Number of compute nodes. A disk has neither this field nor the following ones.
    compute_nodes: Option<u32>,
    io_nodes: Option<u32>,
    disks_per_io_node: Option<u32>,
    disk_model: Option<String>,
}

fn list() -> Result<Vec<Row>> {
    let failed = |error: description::Error| Failure::new("cannot read a built-in description", error);
    let machine = |name: &'static str| {
        let MachineDescription { name: title, nodes, disks, .. } = MachineDescription::load(name)?;
        Ok(Row {
            kind: "machine",
            name,
            title,
            compute_nodes: Some(nodes.compute.value),
            io_nodes: Some(nodes.io.value),
            disks_per_io_node: Some(disks.per_io_node.value),
            disk_model: Some(disks.model.value),
        })
    };
    let disk = |name: &'static str| {
        Ok(Row {
            kind: "disk",
            name,
            title: DiskDescription::load(name)?.name().to_owned(),
            compute_nodes: None,
            io_nodes: None,
            disks_per_io_node: None,
            disk_model: None,
        })
    };
    let machines = MachineDescription::BUILT_IN.iter().map(|(name, _)| machine(name));
    let disks = DiskDescription::BUILT_IN.iter().map(|(name, _)| disk(name));
    machines.chain(disks).collect::<std::result::Result<_, _>>().map_err(failed)
}

/// Formats the rows as a table.
fn lines(rows: &[Row]) -> Vec<String> {
    let mut table = TextTable::new(3);
    for row in rows {
        let nodes = |count: Option<u32>, kind: &str| Some(counted(count?, &format!("{kind} node")));
        let machine = nodes(row.compute_nodes, "compute").zip(nodes(row.io_nodes, "I/O"));
        let what = match (machine, row.disks_per_io_node, &row.disk_model) {
            (Some((compute, io)), Some(each), Some(model)) => {
                format!("{}: {compute}, {io}, {each} x {model} each", row.title)
            }
            _ => row.title.clone(),
        };
        table.row([row.kind, row.name, &what]);
    }
    table.lines().collect()
}
