//! The program `pfs2fs`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::FromStriped;

fn main() -> ExitCode {
    applications::main::<FromStriped>()
}
