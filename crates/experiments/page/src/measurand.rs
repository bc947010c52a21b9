//! The measured quantity of a chart, and its numbers as text with a few digits.

/// A measured quantity: on the vertical axis of a figure, or as the length of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurand {
    /// Name of the quantity, as it appears within a sentence.
    pub name: &'static str,
    /// Unit of the quantity.
    pub unit: &'static str,
}

impl Measurand {
    /// Throughput.
    pub const THROUGHPUT: Measurand = Measurand { name: "throughput", unit: "MiB/s" };

    /// Returns the name and unit as the beginning of a sentence.
    pub(crate) fn sentence(self) -> String {
        let (first, rest) = self.name.split_at(1);
        format!("{}{rest} in {}", first.to_uppercase(), self.unit)
    }
}

/// Formats a value, such as a throughput in MiB/s, with as many digits as are meaningful to readers.
pub fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

/// Formats half the width of the confidence interval of such a value, or a dash if the width is unknown.
pub fn half_width(width: Option<f64>) -> String {
    width.map_or_else(|| "\u{2013}".to_owned(), |width| format!("{width:.2}"))
}
