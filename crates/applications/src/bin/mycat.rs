//! The program `mycat`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::Cat;

fn main() -> ExitCode {
    let arguments: Cat = command_line::parse();
    applications::run("mycat", || arguments.run())
}
