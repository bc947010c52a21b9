//! The rules of the house that neither the compiler nor the linter can see.
//!
//! A rule is a function from the [`Tree`] of all texts to a list of complaints. `tests/tidy.rs` applies each to
//! the project itself; the tests beside a rule show, on a tree made up for it, that it bites.
//!
//! - `tree.rs`: the texts of the project
//! - `crates.rs`: who may depend on whom; `circles.rs`: the same among the files of a crate
//! - `names.rs`: types, each with a name of its own
//! - `promises.rs`: what is promised, checked everywhere
//! - `sources.rs`: what may stand in a source file, and what it may be called
//! - `contents.rs`: comments that list what there is
//! - `documents.rs`: decision records, and links that lead somewhere
//! - `language.rs`: habits of language, counted
//!
//! Nothing of the product depends on this crate, and it depends on nothing of the product.

pub mod circles;
pub mod contents;
pub mod crates;
pub mod documents;
pub mod language;
pub mod names;
pub mod promises;
pub mod sources;
mod tree;

pub use tree::{Text, Tree};
