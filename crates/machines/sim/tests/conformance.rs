//! Tests that the simulated machine keeps all laws: a machine without costs, and modelled machines.

use machine::{conformance, for_all_laws};
use sim::conformance::Simulated;
use sim::{Layout, Settings};

fn simulated(machine: &str, layout: Layout) -> Simulated {
    let settings = Settings { layout, ..Settings::default() };
    Simulated::of(machine, settings).expect("built in")
}

macro_rules! tests {
    ($($law:ident,)*) => {
        mod a_machine_without_costs {
            $(
                #[test]
                fn $law() {
                    super::conformance::$law(&super::simulated("golden", super::Layout::default()));
                }
            )*
        }

        mod the_starfish_machine {
            $(
                #[test]
                fn $law() {
                    for layout in [super::Layout::default(), super::Layout::Random] {
                        super::conformance::$law(&super::simulated("starfish-1996", layout));
                    }
                }
            )*
        }

        mod a_cluster {
            $(
                #[test]
                fn $law() {
                    super::conformance::$law(&super::simulated("cluster-switch", super::Layout::Random));
                }
            )*
        }
    };
}

for_all_laws!(tests);
