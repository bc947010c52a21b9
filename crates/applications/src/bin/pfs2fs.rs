//! The program `pfs2fs`: see `src/copy.rs`.

use std::process::ExitCode;

use applications::copy::FromStriped;

fn main() -> ExitCode {
    let arguments: FromStriped = command_line::parse();
    applications::run("pfs2fs", || arguments.run())
}
