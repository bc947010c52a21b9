//! What options name, and what they can be given.
//!
//! - `described.rs`: machines and disks; `study.rs`: studies
//! - `fields.rs`: fields of a case as options
//! - `values.rs`: what a shell offers as values

pub(crate) mod described;
pub(crate) mod fields;
pub(crate) mod study;
pub(crate) mod values;
