//! Code that the command lines of all programs share.
//!
//! - `width.rs`: how wide help and tables may be; [`TextTable`] in `table.rs`
//! - [`failure`]: what went wrong, why, and what can be done; [`progress`]: how far a command has come
//! - `say.rs`: [`say!`], a line on standard error
//! - `completion.rs`, `bash.rs`, `stored.rs`: completion by Tab; in bash; of names of striped files
//! - `manual.rs`: manual pages
//! - `words.rs`: [`visible`] text of others, bytes in [`mib`]; [`counted`] things

mod bash;
mod completion;
pub mod failure;
pub mod manual;
pub mod progress;
mod say;
mod stored;
mod table;
mod width;
mod words;

pub use node::counted;

pub use completion::{SHELLS, Values, complete, fixed, or_path, registration};
pub use say::say_line;
pub use stored::{STRIPED, agents, file_or_stored, stored};
pub use table::TextTable;
pub use width::{fitted, of_terminal};
pub use words::{mib, visible};

use clap::Parser;

/// Parses the command line, or ends the program with the error in it. If a shell asks how the line could go on, the
/// program answers and ends.
pub fn parse<P: Parser>() -> P {
    complete(P::command);
    let matches = fitted(P::command()).get_matches();
    P::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut P::command()).exit())
}
