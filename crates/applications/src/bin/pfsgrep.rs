//! The program `pfsgrep`: see `src/grep.rs`.

use std::process::ExitCode;

use applications::grep::Arguments;
use clap::Parser;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    applications::run("pfsgrep", || arguments.run())
}
