//! Usual programs over ordinary and striped files alike: cat, grep, sort, bzip2, and copying between both kinds.
//!
//! A name that begins with `pfs:` is that of a striped file, `-` is standard input or output, and any other name is an
//! ordinary file's; the same in all programs. So a local run and a striped one compare: they differ in where the bytes
//! come from and go to, and in nothing else.
//!
//! Map of the code, in reading order:
//!
//! - `name.rs`, `store.rs`, `files.rs`: names, and opening what they stand for
//! - `ahead.rs`, `behind.rs`: threads that read and write while others compute
//! - `copy.rs`, `grep.rs`, `sort/`, `bzip2.rs`: the programs; `bin/` has a `main` for each;
//!   `placed_sort.rs`: which disks a sort's runs and output lie on
//! - `program.rs`: their `main`; `usage.rs`: the time a program took, and on what; `failure.rs`: how it says what went
//!   wrong
//!
//! What is not here, on purpose: prefetching and caching of striped files, which `pdiol` does.

mod ahead;
mod behind;
pub mod bzip2;
pub mod copy;
mod failure;
mod files;
pub mod grep;
mod name;
mod placed_sort;
mod program;
pub mod sort;
mod store;
mod usage;

pub use failure::{Failure, Result};
pub use files::{Files, FilesArgs};
pub use name::FileName;
pub use program::{FileProgram, main};
pub use store::{Output, Storage, Temporary};
pub use usage::{Stopwatch, Usage};

use clap::{Command, CommandFactory};

/// What the command lines of all the programs look like.
pub fn commands() -> [Command; 6] {
    [
        copy::Cat::command(),
        copy::ToStriped::command(),
        copy::FromStriped::command(),
        grep::Arguments::command(),
        sort::Arguments::command(),
        bzip2::Arguments::command(),
    ]
}
