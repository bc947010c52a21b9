//! The program `pfsgrep`: see `src/grep.rs`.

use std::process::ExitCode;

use applications::grep::Arguments;

fn main() -> ExitCode {
    let arguments: Arguments = command_line::parse();
    applications::run("pfsgrep", || arguments.run())
}
