//! Dates and ages as people read and write them.

use std::time::SystemTime;

use jiff::{Span, SpanRelativeTo, Timestamp, tz::TimeZone};
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

/// An age as people write it: `90s`, `2h 30m`, `7d`. A day has 24 hours here.
pub(crate) fn parse_age(text: &str) -> Result<std::time::Duration, String> {
    let age = text.parse::<Span>().ok().and_then(|span| {
        let exact = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        std::time::Duration::try_from(exact).ok()
    });
    age.ok_or_else(|| "write an age such as 90s, 30m, 2h or 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_as_people_write_them() {
        for (text, seconds) in [("90s", 90), ("0s", 0), ("30m", 1800), ("2h 30m", 9000), ("7d", 604_800)] {
            assert_eq!(parse_age(text), Ok(std::time::Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "7", "-3h", "yesterday", "1 month", "99999999999999999999h"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_in_the_future_has_no_age() {
        assert_eq!(age(Duration::from_nanos(u64::MAX)), std::time::Duration::ZERO);
        assert!(age(Duration::from_nanos(0)).as_secs() > 1_700_000_000);
    }
}
