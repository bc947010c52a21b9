//! Dates and ages in readable form.

use std::time::SystemTime;

use jiff::{Timestamp, tz::TimeZone};
use machine::Duration;
use namespace::UnixTime;

/// Formats a date to the second. `at` is the time since 1970. The time zone is that of `TZ`, or else of this computer.
pub(crate) fn of(at: Duration) -> String {
    in_zone(i128::from(at.as_nanos()))
}

/// Formats a date like [`of`]. `at` is in nanoseconds since 1970, and may be negative.
pub(crate) fn of_unix(at: UnixTime) -> String {
    in_zone(at.into())
}

fn in_zone(nanoseconds: i128) -> String {
    let date = Timestamp::from_nanosecond(nanoseconds);
    let date = date.map(|date| date.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string());
    date.unwrap_or_else(|_| "an invalid date".to_owned())
}

/// Formats a date for programs (RFC 3339). `at` is in nanoseconds since 1970, and may be negative.
pub(crate) fn for_programs(at: UnixTime) -> String {
    Timestamp::from_nanosecond(at.into()).expect("the range of nanoseconds is small enough").to_string()
}

/// Returns the age of a date, or zero if it is in the future.
#[expect(
    clippy::disallowed_methods,
    reason = "the date from another computer is compared with the clock of this one"
)]
pub(crate) fn age(at: Duration) -> std::time::Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(std::time::Duration::from_nanos(at.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_before_1970_are_formatted() {
        assert_eq!(of_unix(86_400_000_000_000), of(Duration::from_nanos(86_400_000_000_000)));
        assert!(
            of_unix(-200_000_000_000_000_000).starts_with("1963-"),
            "{}",
            of_unix(-200_000_000_000_000_000)
        );
        assert_eq!(for_programs(-1_500_000_000), "1969-12-31T23:59:58.5Z");
    }

    #[test]
    fn a_time_in_the_future_has_age_zero() {
        assert_eq!(age(Duration::from_nanos(u64::MAX)), std::time::Duration::ZERO);
        assert!(age(Duration::from_nanos(0)).as_secs() > 1_700_000_000);
    }
}
