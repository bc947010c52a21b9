//! Numbers that options are given.

use std::num::NonZeroU32;
use std::str::FromStr;

/// A seed of all randomness.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// A number of disks, of which there is at least one.
pub(crate) fn disk_count(text: &str) -> Result<NonZeroU32, String> {
    positive::<u32>(text).map(|count| NonZeroU32::new(count).expect("it is positive"))
}

/// A number from 1 on. clap's own range would tell of the largest number that fits, which is of no interest.
pub(crate) fn positive<T: FromStr + Default + PartialEq>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number != T::default());
    number.ok_or_else(|| "expected a whole number, 1 or more".to_owned())
}
