//! The program `pfsgrep`: see `src/grep.rs`.

use std::process::ExitCode;

use applications::grep::Arguments;

fn main() -> ExitCode {
    applications::main::<Arguments>()
}
