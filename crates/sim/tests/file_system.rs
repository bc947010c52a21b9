//! The file system keeps its promises on the simulated machine, whatever that is a model of.

mod testbed;

use description::{Description, MachineDescription};
use fs::conformance::{check_all, demand_is_served_before_background};
use sim::{Layout, Settings};
use testbed::Simulated;

fn check(machine: &str, layout: Layout) {
    let description = MachineDescription::load(machine).expect("built in");
    check_all(&Simulated {
        description,
        settings: Settings { layout, block_bytes: 512, ..Settings::default() },
    });
}

#[test]
fn promises_are_kept_on_a_machine_without_costs() {
    check("golden", Layout::default());
}

#[test]
fn promises_are_kept_on_the_starfish_machine() {
    check("starfish-1996", Layout::default());
    check("starfish-1996", Layout::Random);
}

#[test]
fn promises_are_kept_on_a_cluster() {
    check("cluster-switch", Layout::Random);
}

#[test]
fn demand_overtakes_background_where_disks_take_time() {
    for machine in ["starfish-1996", "cluster-switch"] {
        let description = MachineDescription::load(machine).expect("built in");
        let settings = Settings { block_bytes: 512, ..Settings::default() };
        demand_is_served_before_background(&Simulated { description, settings });
    }
}
