//! The program `fs2pfs`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::ToStriped;

fn main() -> ExitCode {
    applications::main::<ToStriped>()
}
