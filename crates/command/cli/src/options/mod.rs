//! What options name, and what they can be given.
//!
//! - `agents.rs`: where agents are
//! - `described.rs`: machines and disks; `study.rs`: studies
//! - `fields.rs`: fields of a case as options
//! - `method.rs`: by which method a file is moved
//! - `values.rs`: what a shell offers as values

pub(crate) mod agents;
pub(crate) mod described;
pub(crate) mod fields;
pub(crate) mod method;
pub(crate) mod study;
pub(crate) mod values;
