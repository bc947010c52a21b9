//! Parsers of numbers in options.

use std::num::NonZeroU32;
use std::str::FromStr;

/// Parses a seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// Parses a number of disks, at least 1.
pub(crate) fn disk_count(text: &str) -> Result<NonZeroU32, String> {
    positive::<u32>(text).map(|count| NonZeroU32::new(count).expect("it is positive"))
}

/// Parses a number of at least 1. Unlike clap's range, its message does not include the irrelevant maximum.
pub(crate) fn positive<T: FromStr + Default + PartialEq>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number != T::default());
    number.ok_or_else(|| "expected a whole number, 1 or more".to_owned())
}
