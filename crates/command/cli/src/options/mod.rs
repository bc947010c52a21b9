//! What options name, and what they can be given.
//!
//! - `agents.rs`: where agents are
//! - `study.rs`: studies
//! - `fields.rs`: fields of a case as options
//! - `method.rs`: by which method a file is moved
//! - `request_log.rs`: how a request log is read
//! - `experiment.rs`: what commands that simulate or measure have in common, such as seed, rounds and progress
//! - `numbers.rs`: numbers that options are given; `values.rs`: what a shell offers as values

pub(crate) mod agents;
pub(crate) mod experiment;
pub(crate) mod fields;
pub(crate) mod method;
pub(crate) mod numbers;
pub(crate) mod request_log;
pub(crate) mod study;
pub(crate) mod values;
