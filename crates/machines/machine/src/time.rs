//! Time on a machine, always in integer nanoseconds.
//!
//! Each machine counts from its own start, so an [`Instant`] is valid only on the machine that returned it. The
//! operations of these types round costs up to whole nanoseconds. So small transfers on a fast device never cost 0.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Point in time: nanoseconds since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// Length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// Start of the machine.
    pub const START: Instant = Instant(0);

    /// Returns the instant `nanoseconds` after the machine started.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Instant(nanoseconds)
    }

    /// Returns the nanoseconds since the machine started.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the machine started, for people to read.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time from `earlier` until this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero duration.
    pub const ZERO: Duration = Duration(0);

    /// Returns a duration of `nanoseconds`.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Duration(nanoseconds)
    }

    /// Returns a duration of `microseconds`.
    pub const fn from_micros(microseconds: u64) -> Self {
        Duration(microseconds * 1_000)
    }

    /// Returns a duration of `milliseconds`.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Duration(milliseconds * 1_000_000)
    }

    /// Returns a duration of `seconds`.
    pub const fn from_secs(seconds: u64) -> Self {
        Duration(seconds * 1_000_000_000)
    }

    /// Returns a duration of `seconds`, rounded up to a whole nanosecond.
    ///
    /// # Panics
    /// If `seconds` is negative, not a number, or more than 584 years.
    pub fn from_secs_f64(seconds: f64) -> Self {
        let nanoseconds = (seconds * 1e9).ceil();
        assert!((0.0..u64::MAX as f64).contains(&nanoseconds), "{seconds} s is not a duration");
        Duration(nanoseconds as u64)
    }

    /// Returns the transfer time of `bytes` at `bytes_per_second`, rounded up to a whole nanosecond.
    ///
    /// # Panics
    /// If `bytes_per_second` is zero.
    pub fn of_transfer(bytes: u64, bytes_per_second: u64) -> Self {
        let nanoseconds = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
        Duration(u64::try_from(nanoseconds).expect("the transfer takes less than 584 years"))
    }

    /// Returns the duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration in seconds, for people to read.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns true if the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + duration.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration.0;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, count: u64) -> Duration {
        Duration(self.0 * count)
    }
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Duration(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        std::time::Duration::from_nanos(duration.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&std::time::Duration::from(*self), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_rounded_up_and_never_free() {
        assert_eq!(Duration::of_transfer(8192, 10_000_000), Duration::from_nanos(819_200));
        assert_eq!(Duration::of_transfer(1, 3_000_000_000), Duration::from_nanos(1));
        assert_eq!(Duration::of_transfer(0, 1), Duration::ZERO);
    }

    #[test]
    fn since_is_zero_for_a_later_instant() {
        let (early, late) = (Instant::from_nanos(3), Instant::from_nanos(5));
        assert_eq!(late.since(early), Duration::from_nanos(2));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
