//! Machines and disks that options specify by name or path.

use description::{Description, DiskDescription, MachineDescription};

use command_line::failure::{Failure, Result};

/// Name of the machine that models nodes as processes of one computer.
pub const LOOPBACK: &str = "loopback";

/// Reads a machine by name or path, and replaces the values in `set`.
pub fn load_machine(name: &str, set: &[String]) -> Result<MachineDescription> {
    let overrides = overrides(set)?;
    MachineDescription::load_with(name, &overrides).map_err(|error| {
        if DiskDescription::load(name).is_ok() {
            let failure = Failure::usage("--machine", format!("{name} describes a disk, not a machine"));
            return failure.remedy(format!("Use a machine with these disks: --set disks.model={name}."));
        }
        not_loaded(error)
    })
}

/// Returns the keys and values of options `--set`.
pub fn overrides(set: &[String]) -> Result<Vec<(&str, &str)>> {
    let split = set.iter().map(|text| {
        text.split_once('=').map(|(key, value)| (key.trim(), value.trim())).ok_or_else(|| {
            let failure = Failure::usage(format!("--set {text}"), "expected KEY=VALUE");
            failure.remedy("For example: --set nodes.io=8 or --set \"disks.model=streaming-20\".")
        })
    });
    split.collect()
}

/// Returns the failure for a machine that could not be loaded, with the option that caused it and a remedy.
pub fn not_loaded(error: description::Error) -> Failure {
    let failure = match error {
        description::Error::Override { overrides, message } => {
            Failure::usage(format!("--set {overrides}"), message)
        }
        error => Failure::usage("--machine", error),
    };
    failure
        .remedy("`starfish machines` lists the machines; `starfish machines NAME` prints one with its keys.")
}

/// Loads a machine. Gives it a compute node for each client, and an I/O node with `disks` disks for each agent. `set`
/// replaces any values of the machine, including these numbers.
pub fn load_machine_of_agents(
    name: &str,
    clients: u32,
    agents: usize,
    disks: u32,
    set: &[String],
) -> Result<MachineDescription> {
    let mut changes = vec![
        format!("nodes.compute={clients}"),
        format!("nodes.io={agents}"),
        format!("disks.per_io_node={disks}"),
    ];
    if load_machine(name, &[])?.buses.is_some_and(|buses| buses.per_io_node.value > disks) {
        // There must not be more buses than disks.
        changes.push(format!("buses.per_io_node={disks}"));
    }
    changes.extend_from_slice(set);
    load_machine(name, &changes)
}

/// Returns the settings with which the machine `loopback` models this computer, with disks of this model: agents and
/// programs share its processors.
pub fn this_computer(disk_model: &str) -> [String; 2] {
    [format!("disks.model={disk_model}"), format!("processor.shared={}", plan::threads_here())]
}

/// Reads a disk model by name or path.
pub fn load_model(name: &str) -> Result<DiskDescription> {
    let model = DiskDescription::load(name);
    model.map_err(|error| {
        Failure::usage("--disk-model", error).remedy("`starfish machines` lists the models.")
    })
}

/// Reads a model of a streaming disk by name or path. Returns also its transfer rate in bytes per second.
pub fn load_streaming_model(name: &str) -> Result<(DiskDescription, u64)> {
    let model = load_model(name)?;
    let DiskDescription::Streaming(disk) = &model else {
        let failure = Failure::usage("--disk-model", "a disk that seeks has no single rate");
        return Err(failure.remedy("Choose a streaming disk."));
    };
    let rate = disk.rate.value.0;
    Ok((model, rate))
}
