//! The program `pfs2fs`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::FromStriped;
use clap::Parser;

fn main() -> ExitCode {
    let arguments = FromStriped::parse();
    applications::run("pfs2fs", || arguments.run())
}
