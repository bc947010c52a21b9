//! The simulated machine keeps the laws of the seam, on a machine without costs and on modelled ones.

mod testbed;

use description::{Description, MachineDescription};
use machine::conformance::check_all;
use sim::{Layout, Settings};
use testbed::Simulated;

fn check(machine: &str, layout: Layout) {
    let description = MachineDescription::load(machine).expect("built in");
    check_all(&Simulated { description, settings: Settings { layout, ..Settings::default() } });
}

#[test]
fn a_machine_without_costs_keeps_the_laws() {
    check("golden", Layout::default());
}

#[test]
fn the_starfish_machine_keeps_the_laws() {
    check("starfish-1996", Layout::default());
    check("starfish-1996", Layout::Random);
}

#[test]
fn a_cluster_keeps_the_laws() {
    check("cluster-switch", Layout::Random);
}
