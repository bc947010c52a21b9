//! One executable with all the programs, for tests. Users call `starfish`, which is installed under the same names.

use std::process::ExitCode;

fn main() -> ExitCode {
    applications::called().expect("called by the name of a program")()
}
