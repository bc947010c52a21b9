//! Durations: one form for all options, one for all tables.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// End of the error message for an invalid duration.
const EXPECTED: &str = "expected a time such as 500ms, 90s, 2h 30m or 7d";

/// Parses a duration with units. A day has 24 hours.
pub fn parse(text: &str) -> Result<Duration, String> {
    let time = text.parse::<Span>().ok().and_then(|span| {
        let exact = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        Duration::try_from(exact).ok()
    });
    time.ok_or_else(|| EXPECTED.to_owned())
}

/// Parses a duration, or a plain number as seconds. Earlier versions of some options accepted only seconds.
pub fn parse_or_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| EXPECTED.to_owned()),
        Err(_) => parse(text),
    }
}

/// Formats a duration in the form that options accept.
pub fn in_words(time: Duration) -> String {
    SignedDuration::try_from(time).map_or_else(|_| format!("{time:?}"), |time| format!("{time:#}"))
}

/// Formats seconds with a unit and three digits, or more for whole seconds.
pub fn shown(seconds: f64) -> String {
    // The bounds are the values that three digits would round to 1000, so that the next unit applies.
    let (value, unit) = match seconds {
        0.0 => return "0 s".to_owned(),
        ..999.5e-9 => (seconds * 1e9, "ns"),
        ..999.5e-6 => (seconds * 1e6, "us"),
        ..999.5e-3 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_their_units() {
        let texts = [("90s", 90), ("0s", 0), ("0 ms", 0), ("30m", 1800), ("2h 30m", 9000), ("7d", 604_800)];
        for (text, seconds) in texts {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
            assert_eq!(parse_or_seconds(text), parse(text));
            assert_eq!(parse(&in_words(Duration::from_secs(seconds))), parse(text), "{text}");
        }
        assert_eq!(parse("1500us"), Ok(Duration::from_micros(1500)));
        assert_eq!(parse("2.2 ms"), Ok(Duration::from_micros(2200)));
        for text in ["", "7", "-3h", "yesterday", "1 month", "99999999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_can_be_in_seconds() {
        assert_eq!(parse_or_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_or_seconds("300"), parse("5m"));
        for text in ["-1", "soon", "inf", "1e30"] {
            assert!(parse_or_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_with_three_digits_and_a_fitting_unit() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (1e-9, "1.00 ns"),
            (999.4e-9, "999 ns"),
            (999.6e-9, "1.00 us"),
            (3e-6, "3.00 us"),
            (0.0125, "12.5 ms"),
            (0.099_96, "100 ms"),
            (0.667, "667 ms"),
            (0.9996, "1.00 s"),
            (2.5, "2.50 s"),
            (12.345, "12.3 s"),
            (1234.5, "1234 s"),
        ] {
            assert_eq!(shown(seconds), text);
        }
    }
}
