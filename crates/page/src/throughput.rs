//! Throughputs for people: a few digits.

/// A throughput in MiB/s, with the digits that people read.
pub fn throughput(value: f64) -> String {
    if value >= 100.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

/// Half the width of a confidence interval of a throughput, in MiB/s; a dash if nothing is known of it.
pub fn half_width(width: Option<f64>) -> String {
    width.map_or_else(|| "\u{2013}".to_owned(), |width| format!("{width:.2}"))
}
