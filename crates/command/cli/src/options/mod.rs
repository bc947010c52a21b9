//! Options shared by several commands, and their values.
//!
//! - `agents.rs`: agents, cluster key and trace
//! - `study.rs`: studies
//! - `fields.rs`: the fields of a case
//! - `method.rs`: the access method of a transfer
//! - `request_log.rs`: reading a request log
//! - `experiment.rs`: options common to commands that simulate or measure, such as seed, rounds and progress
//! - `numbers.rs`: parsers of numbers; `values.rs`: values for completion

pub(crate) mod agents;
pub(crate) mod experiment;
pub(crate) mod fields;
pub(crate) mod method;
pub(crate) mod numbers;
pub(crate) mod request_log;
pub(crate) mod study;
pub(crate) mod values;
