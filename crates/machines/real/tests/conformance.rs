//! Runs the conformance tests of the machine interface on real nodes, with each driver.

mod common;
mod testbed;

use common::drivers;
use machine::{conformance, for_all_laws};
use testbed::Loopback;

macro_rules! tests {
    ($($law:ident,)*) => {
        $(
            #[test]
            fn $law() {
                for driver in drivers() {
                    conformance::$law(&Loopback { driver });
                }
            }
        )*
    };
}

for_all_laws!(tests);
