//! The program `pfsbzip2`: see `src/bzip2.rs`.

use std::process::ExitCode;

use applications::bzip2::Arguments;

fn main() -> ExitCode {
    applications::main::<Arguments>()
}
