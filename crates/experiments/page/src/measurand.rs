//! What charts measure, and its numbers for people: a few digits.

/// What is measured along the vertical axis of a figure, or by the length of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurand {
    /// What it is, as it stands within a sentence.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
}

impl Measurand {
    /// Throughput.
    pub const THROUGHPUT: Measurand = Measurand { name: "throughput", unit: "MiB/s" };

    /// What it is and its unit, as a sentence begins.
    pub(crate) fn sentence(self) -> String {
        let (first, rest) = self.name.split_at(1);
        format!("{}{rest} in {}", first.to_uppercase(), self.unit)
    }
}

/// A throughput in MiB/s, or a value of another kind, with the digits that people read.
pub fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

/// Half the width of a confidence interval of such a value; a dash if nothing is known of it.
pub fn half_width(width: Option<f64>) -> String {
    width.map_or_else(|| "\u{2013}".to_owned(), |width| format!("{width:.2}"))
}
