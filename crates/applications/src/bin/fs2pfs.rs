//! The program `fs2pfs`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::ToStriped;

fn main() -> ExitCode {
    let arguments: ToStriped = command_line::parse();
    applications::run("fs2pfs", || arguments.run())
}
