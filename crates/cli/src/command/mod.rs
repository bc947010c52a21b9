//! The commands, one file each: its arguments, and a function `run` that does what they say.

pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod bench;
pub(crate) mod bench_pdiol;
pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod get;
pub(crate) mod ls;
pub(crate) mod machines;
pub(crate) mod put;
pub(crate) mod reproduce;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod stat;
