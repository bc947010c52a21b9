//! Simulated machines drawn from seeds.

use description::{Description, MachineDescription};
use machine::Duration;
use sim::conformance::Simulated;
use sim::{Layout, Settings};

use crate::draw::Draw;

/// Machines that differ in the operations that take time: none, messages, disks.
const MACHINES: [&str; 4] = ["golden", "cluster-switch", "starfish-1996", "pdiol-2003"];

/// Limit in simulated time; a longer run counts as endless. Other runs take minutes at most, on the slowest of disks.
pub(crate) const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Unit in bytes of space allocation on a disk.
pub(crate) const BLOCK: u64 = 512;

/// Draws one of the machines with another processor speed, so that operations interleave differently.
pub(crate) fn drawn_machine(draw: &mut Draw) -> MachineDescription {
    let mut description = MachineDescription::load(draw.one_of(&MACHINES)).expect("built in");
    let hertz = &mut description.processor.clock.value.0;
    *hertz = *hertz / 8 * (1 << draw.below(7));
    description
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
