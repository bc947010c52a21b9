//! Families of metrics: samples that have the same meaning.

/// Samples that have the same meaning, distinguished by their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricFamily {
    /// Name without the suffixes for unit and kind.
    pub name: &'static str,
    /// Kind of the samples.
    pub kind: MetricKind,
    /// Unit; `None` for plain numbers.
    pub unit: Option<MetricUnit>,
    /// Names of the labels that distinguish the samples.
    pub labels: &'static [&'static str],
    /// Meaning, in a sentence.
    pub help: &'static str,
}

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Number that only grows, from 0 at the start of the process.
    Counter,
    /// Current state, which may also fall.
    Gauge,
    /// Histogram of times with their count and sum. The bound of each bucket is twice that of the bucket before.
    Histogram,
    /// Constant 1; the labels carry the information.
    Info,
}

/// Unit, as in the names of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl MetricFamily {
    /// Returns a family of counters, which only grow.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Counter, unit: None, labels, help }
    }

    /// Returns a family of current values.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Gauge, unit: None, labels, help }
    }

    /// Returns a family of time histograms in seconds.
    pub const fn times(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Histogram, unit: Some(MetricUnit::Seconds), labels, help }
    }

    /// Returns a family whose labels carry the information.
    pub const fn info(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        MetricFamily { name, kind: MetricKind::Info, unit: None, labels, help }
    }

    /// Returns this family with the unit `unit`.
    pub const fn in_unit(self, unit: MetricUnit) -> Self {
        MetricFamily { unit: Some(unit), ..self }
    }

    /// Returns the name with the unit, as in the `# TYPE` line.
    pub fn name_with_unit(&self) -> String {
        match self.unit {
            Some(unit) => format!("{}_{}", self.name, unit.word()),
            None => self.name.to_owned(),
        }
    }

    /// Returns the name of the series, as in queries. For times, which have three kinds of series, the name omits the
    /// suffixes `_bucket`, `_sum` and `_count`.
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
    /// Returns Prometheus's word for the kind.
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
    /// Returns the unit's suffix in names.
    pub const fn word(self) -> &'static str {
        match self {
            MetricUnit::Bytes => "bytes",
            MetricUnit::Seconds => "seconds",
        }
    }
}
