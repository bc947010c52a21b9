//! The program `fs2pfs`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::ToStriped;
use clap::Parser;

fn main() -> ExitCode {
    let arguments = ToStriped::parse();
    applications::run("fs2pfs", || arguments.run())
}
