//! Code shared by the command lines of all programs.
//!
//! - `width.rs`: widths of help and tables; [`TextTable`] in `table.rs`
//! - [`failure`]: failures with reason and remedy; [`progress`]: progress of a command
//! - `say.rs`: [`say!`], a line on standard error
//! - `completion.rs`, `bash.rs`, `striped_names.rs`: completion by Tab; in bash; of names of striped files
//! - `manual.rs`: manual pages
//! - [`durations`]: durations, parsed and formatted
//! - `words.rs`: [`visible`] text from other sources, bytes in [`mib`]; [`counted`] things

mod bash;
mod completion;
pub mod durations;
pub mod failure;
pub mod manual;
pub mod progress;
mod say;
mod striped_names;
mod table;
mod width;
mod words;

pub use node::counted;

pub use completion::{SHELLS, Values, complete, fixed, or_path, registration};
pub use say::say_line;
pub use striped_names::{STRIPED, agents, file_or_stored, stored};
pub use table::TextTable;
pub use width::{fitted, of_terminal};
pub use words::{mib, visible};

use std::ffi::OsString;

use clap::Parser;

/// Parses these arguments; the first is the name of the program.
pub fn try_parse<P: Parser>(arguments: Vec<OsString>) -> clap::error::Result<P> {
    let matches = fitted(P::command()).try_get_matches_from(arguments)?;
    P::from_arg_matches(&matches).map_err(|error| error.format(&mut P::command()))
}
