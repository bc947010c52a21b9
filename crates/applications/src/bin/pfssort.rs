//! The program `pfssort`: see `src/sort/mod.rs`.

use std::process::ExitCode;

use applications::sort::Arguments;
use clap::Parser;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    applications::run("pfssort", || arguments.run())
}
