//! The program `mycat`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::Cat;
use clap::Parser;

fn main() -> ExitCode {
    let arguments = Cat::parse();
    applications::run("mycat", || arguments.run())
}
