//! Numbers formatted for people: a few digits, and a typographic minus sign.

use plan::Quantity;

/// Returns the unit of a value.
pub(super) fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "MiB/s",
        Quantity::Movements => "disk movements",
        Quantity::Time => "s",
    }
}

/// Formats a value of a table, in its unit.
pub(super) fn value(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Movements => format!("{value:.0}"),
        Quantity::Throughput | Quantity::Time => page::number(value),
    }
}

/// Formats a published value with its printed digits.
pub(super) fn published(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Movements => format!("{value:.0}"),
        Quantity::Throughput | Quantity::Time => format!("{value:.1}"),
    }
}

/// Formats half the width of a confidence interval, in the unit of the value, or a dash if the width is unknown.
pub(super) fn half_width(quantity: Quantity, width: Option<f64>) -> String {
    match (width, quantity) {
        (Some(width), Quantity::Movements) => format!("{width:.1}"),
        (width, _) => page::half_width(width),
    }
}

/// Formats a relative error: 0.0213 is `+2.1 %`.
pub(super) fn error(error: f64) -> String {
    let percent = 100.0 * error;
    let digits = usize::from(percent.abs() < 99.95);
    let text = format!("{:.digits$}", percent.abs());
    let sign = match percent {
        _ if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) => "",
        percent if percent < 0.0 => "\u{2212}",
        _ => "+",
    };
    format!("{sign}{text}\u{a0}%")
}

/// Formats the size of an error without a sign: 0.0213 is `2.1 %`.
pub(super) fn size(size: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * size)
}

/// Formats a share of a whole: 0.955 is `95.5 %`, and 1 is `100 %`.
pub(super) fn share(share: f64) -> String {
    let tenths = (1000.0 * share).round();
    let digits = usize::from(tenths % 10.0 != 0.0);
    format!("{:.digits$}\u{a0}%", tenths / 10.0)
}

/// Formats a number with a noun: `1 cell`, `2 cells`.
pub(crate) fn count(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_formatted_for_readers() {
        assert_eq!(value(Quantity::Throughput, 499.72), "499.7");
        assert_eq!(value(Quantity::Throughput, 31.214), "31.21");
        assert_eq!(value(Quantity::Movements, 144.2), "144");
        assert_eq!(error(0.0213), "+2.1\u{a0}%");
        assert_eq!(error(-0.0213), "\u{2212}2.1\u{a0}%");
        assert_eq!(error(-0.0001), "0.0\u{a0}%");
        assert_eq!(error(1.5), "+150\u{a0}%");
        assert_eq!((size(0.0), size(0.0213)), ("0.0\u{a0}%".into(), "2.1\u{a0}%".into()));
        assert_eq!((share(0.5), share(2.0 / 3.0)), ("50\u{a0}%".into(), "66.7\u{a0}%".into()));
        assert_eq!((count(1, "cell"), count(2, "cell")), ("1 cell".into(), "2 cells".into()));
    }
}
