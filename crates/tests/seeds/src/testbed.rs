//! Simulated machines drawn from seeds.

use description::{Description, MachineDescription};
use machine::Duration;
use sim::conformance::Simulated;
use sim::{Layout, Settings};

use crate::draw::Draw;

/// Machines that differ in what takes time: nothing, messages, disks.
const MACHINES: [&str; 4] = ["golden", "cluster-switch", "starfish-1996", "pdiol-2003"];

/// A run that takes longer, in simulated time, goes on for ever. Those that come to an end take minutes at most: on the
/// slowest of disks.
pub(crate) const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The unit in which objects get space on a disk.
pub(crate) const BLOCK: u64 = 512;

/// One of the machines, with processors of another speed, so that what is at once on one is in turn on another.
pub(crate) fn drawn_machine(draw: &mut Draw) -> MachineDescription {
    let mut description = MachineDescription::load(draw.one_of(&MACHINES)).expect("built in");
    let hertz = &mut description.processor.clock.value.0;
    *hertz = *hertz / 8 * (1 << draw.below(7));
    description
}

/// How objects lie on its disks.
pub(crate) fn drawn_settings(draw: &mut Draw, seed: u64) -> Settings {
    let layout = draw.one_of(&[Layout::default(), Layout::Random]);
    Settings { layout, block_bytes: BLOCK, seed, ..Settings::default() }
}

/// A machine drawn from a seed.
pub(crate) fn drawn_testbed(seed: u64) -> Simulated {
    // Not the stream that the operations are drawn from.
    let mut draw = Draw::of(!seed);
    let description = drawn_machine(&mut draw);
    Simulated { description, settings: drawn_settings(&mut draw, seed), limit: Some(LIMIT) }
}
