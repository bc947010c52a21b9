//! Tests that the simulated machine keeps all laws: a machine without costs, and modelled machines.

use machine::conformance::check_all;
use sim::conformance::Simulated;
use sim::{Layout, Settings};

fn check(machine: &str, layout: Layout) {
    let settings = Settings { layout, ..Settings::default() };
    check_all(&Simulated::of(machine, settings).expect("built in"));
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
