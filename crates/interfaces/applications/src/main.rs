//! All of the programs, for their tests. What is installed is `starfish`, which answers to the same names.

use std::process::ExitCode;

fn main() -> ExitCode {
    applications::called().expect("called by the name of a program")()
}
