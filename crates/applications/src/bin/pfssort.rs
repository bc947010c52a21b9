//! The program `pfssort`: see `src/sort/mod.rs`.

use std::process::ExitCode;

use applications::sort::Arguments;

fn main() -> ExitCode {
    let arguments: Arguments = command_line::parse();
    applications::run("pfssort", || arguments.run())
}
