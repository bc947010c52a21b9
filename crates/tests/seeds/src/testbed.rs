//! Simulated machines drawn from seeds.

use description::{Description, MachineDescription, Topology};
use machine::Duration;
use sim::conformance::Simulated;
use sim::{Layout, Settings};

use crate::draw::Draw;

/// Machines that differ in the operations that take time: none, messages, disks.
pub(crate) const MACHINES: [&str; 4] = ["golden", "cluster-switch", "starfish-1996", "pdiol-2003"];

/// Limit in simulated time; a longer run counts as endless. Other runs take minutes at most, on the slowest of disks.
pub(crate) const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Unit in bytes of space allocation on a disk.
pub(crate) const BLOCK: u64 = 512;

/// Draws one of the machines with another processor speed, so that operations interleave differently.
pub(crate) fn drawn_machine(draw: &mut Draw) -> MachineDescription {
    machine_of(draw.one_of(&MACHINES), draw.below(7) as u32)
}

/// Returns a built-in machine. The speed of its processors is 2^`speed` eighths of the described one.
pub(crate) fn machine_of(name: &str, speed: u32) -> MachineDescription {
    let mut description = MachineDescription::load(name).expect("built in");
    let hertz = &mut description.processor.clock.value.0;
    *hertz = *hertz / 8 * (1 << speed);
    description
}

/// Extends a torus to a router for each node.
pub(crate) fn make_room(description: &mut MachineDescription) {
    let nodes = description.node_count();
    if let Topology::Torus(torus) = &mut description.network.topology {
        let rows = (torus.first_router.value + nodes).div_ceil(torus.columns.value);
        torus.rows.value = torus.rows.value.max(rows);
    }
}

/// Draws the layout of objects on disks.
pub(crate) fn drawn_settings(draw: &mut Draw, seed: u64) -> Settings {
    let layout = draw.one_of(&[Layout::default(), Layout::Random]);
    Settings { layout, block_bytes: BLOCK, seed, ..Settings::default() }
}

/// Draws a machine from a seed.
pub(crate) fn drawn_testbed(seed: u64) -> Simulated {
    // Another stream than that of the operations.
    let mut draw = Draw::of(!seed);
    let description = drawn_machine(&mut draw);
    Simulated { description, settings: drawn_settings(&mut draw, seed), limit: Some(LIMIT) }
}
