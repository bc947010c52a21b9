//! The program `pfsbzip2`: see `src/bzip2.rs`.

use std::process::ExitCode;

use applications::bzip2::Arguments;

fn main() -> ExitCode {
    let arguments: Arguments = command_line::parse();
    applications::run("pfsbzip2", || arguments.run())
}
