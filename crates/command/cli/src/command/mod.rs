//! The commands, one file each: its arguments, and a function `run` that does what they say.

use std::num::NonZeroU32;
use std::str::FromStr;

pub(crate) mod advise;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod bench;
pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod fsck;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod key;
pub(crate) mod ls;
pub(crate) mod machines;
pub(crate) mod merge;
pub(crate) mod mkdir;
pub(crate) mod mount;
pub(crate) mod mpi_preload;
pub(crate) mod mpi_run;
pub(crate) mod mv;
pub(crate) mod patterns;
pub(crate) mod put;
pub(crate) mod replay;
pub(crate) mod reproduce;
pub(crate) mod request_log;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod stat;
pub(crate) mod trace;
pub(crate) mod umount;
pub(crate) mod view;

/// Where all randomness comes from.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// A number of disks, of which there is at least one.
fn disk_count(text: &str) -> Result<NonZeroU32, String> {
    positive::<u32>(text).map(|count| NonZeroU32::new(count).expect("it is positive"))
}

/// A number from 1 on. clap's own range would tell of the largest number that fits, which is of no interest.
fn positive<T: FromStr + Default + PartialEq>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number != T::default());
    number.ok_or_else(|| "expected a whole number, 1 or more".to_owned())
}
