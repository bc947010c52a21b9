//! Dates and ages as people read and write them.

use std::time::SystemTime;

use jiff::{Timestamp, tz::TimeZone};
use machine::Duration;

/// A date in the zone that `TZ` names, otherwise in that of this computer, to the second; `at` is the time since 1970
/// began.
pub(crate) fn of(at: Duration) -> String {
    let date = Timestamp::from_nanosecond(i128::from(at.as_nanos()));
    let date = date.map(|date| date.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string());
    date.unwrap_or_else(|_| "a date that is none".to_owned())
}

/// A date as programs read it, so many nanoseconds after 1970 began, or before it.
pub(crate) fn for_programs(at: i64) -> String {
    Timestamp::from_nanosecond(at.into()).expect("300 years at most").to_string()
}

/// How long ago a date is; nothing if it is in the future.
#[expect(
    clippy::disallowed_methods,
    reason = "the date that another computer wrote down is compared with ours"
)]
pub(crate) fn age(at: Duration) -> std::time::Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(std::time::Duration::from_nanos(at.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_future_has_no_age() {
        assert_eq!(age(Duration::from_nanos(u64::MAX)), std::time::Duration::ZERO);
        assert!(age(Duration::from_nanos(0)).as_secs() > 1_700_000_000);
    }
}
