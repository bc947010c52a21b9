//! Rules of the code base that neither the compiler nor the linter can check.
//!
//! A rule is a function from the [`Tree`] of all texts to a list of complaints. `tests/tidy.rs` applies each to the
//! project itself. The unit tests of a rule show, on a small example tree, that the rule finds violations.
//!
//! - `tree.rs`: texts of the project
//! - `crates.rs`: dependencies among crates; `circles.rs`: the same among the files of a crate
//! - `names.rs`: each type name has one meaning
//! - `promises.rs`: each promise is checked on all machines
//! - `sources.rs`: contents and names of source files
//! - `contents.rs`: lists of modules in comments
//! - `documents.rs`: decision records, links and named sources
//! - `language.rs`: counts of bad habits of language
//!
//! This crate and the product do not depend on each other.

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
