//! The program `pfssort`: see `src/sort/mod.rs`.

use std::process::ExitCode;

use applications::sort::Arguments;

fn main() -> ExitCode {
    applications::main::<Arguments>()
}
