//! All of the programs, for their tests. The installed program is `starfish`, which can be called by the same names.

use std::process::ExitCode;

fn main() -> ExitCode {
    applications::called().expect("called by the name of a program")()
}
