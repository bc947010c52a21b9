//! The program `mycat`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::Cat;

fn main() -> ExitCode {
    applications::main::<Cat>()
}
