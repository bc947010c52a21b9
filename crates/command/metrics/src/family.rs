//! Families of metrics: numbers of one meaning.

/// Numbers of one meaning, told apart by their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricFamily {
    /// The name, without the unit and what the kind adds to it.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// The unit; none of a mere number.
    pub unit: Option<MetricUnit>,
    /// The labels that tell its numbers apart.
    pub labels: &'static [&'static str],
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// A kind of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, from 0 at the start of the process.
    Counter,
    /// It shows the present state, and can fall.
    Gauge,
    /// Times, counted by steps that double, with their number and sum.
    Histogram,
    /// Always 1: the labels are what is told.
    Info,
}

/// A unit, as it is in names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl MetricFamily {
    /// A number that only grows.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Counter, unit: None, labels, help }
    }

    /// A number of what is there now.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Gauge, unit: None, labels, help }
    }

    /// Times.
    pub const fn times(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Histogram, unit: Some(MetricUnit::Seconds), labels, help }
    }

    /// Labels that are told.
    pub const fn info(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Info, unit: None, labels, help }
    }

    /// This family in the unit `unit`.
    pub const fn in_unit(self, unit: MetricUnit) -> Self {
        MetricFamily { unit: Some(unit), ..self }
    }

    /// The name with the unit, as the line of its type has it.
    pub fn name_with_unit(&self) -> String {
        match self.unit {
            Some(unit) => format!("{}_{}", self.name, unit.word()),
            None => self.name.to_owned(),
        }
    }

    /// The name of its series, as queries have it; of times, that of the three kinds of series without their ends
    /// `_bucket`, `_sum` and `_count`.
    pub fn series(&self) -> String {
        let name = self.name_with_unit();
        match self.kind {
            MetricKind::Counter => format!("{name}_total"),
            MetricKind::Info => format!("{name}_info"),
            MetricKind::Gauge | MetricKind::Histogram => name,
        }
    }
}

impl MetricKind {
    /// Its name, as Prometheus has it.
    pub const fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::Info => "info",
        }
    }
}

impl MetricUnit {
    /// Its word in names.
    pub const fn word(self) -> &'static str {
        match self {
            MetricUnit::Bytes => "bytes",
            MetricUnit::Seconds => "seconds",
        }
    }
}
