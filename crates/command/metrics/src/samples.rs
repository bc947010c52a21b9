//! Values at one moment, and their text form.

use std::fmt;

use fs::TimeHistogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::family::{MetricFamily, MetricKind, MetricUnit};

/// Values of several families.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    families: Vec<(&'static MetricFamily, Vec<Sample>)>,
}

#[derive(Clone, Debug)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: MetricValue,
}

/// Value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// Integer.
    Count(u64),
    /// Seconds.
    Seconds(f64),
    /// Histogram of times.
    Times(Box<TimeHistogram>),
    /// No value: the labels carry the information.
    Info,
}

impl From<u64> for MetricValue {
    fn from(count: u64) -> Self {
        MetricValue::Count(count)
    }
}

impl From<&TimeHistogram> for MetricValue {
    fn from(times: &TimeHistogram) -> Self {
        MetricValue::Times(Box::new(times.clone()))
    }
}

impl Samples {
    /// Adds a family without samples. Even an empty family appears in the text, so that users find its description.
    pub fn add_family(&mut self, family: &'static MetricFamily) {
        self.families.push((family, Vec::new()));
    }

    /// Adds a sample to a family, with a value for each label, in order.
    ///
    /// # Panics
    /// If the family has not been added, or has other labels.
    pub fn add<const N: usize>(
        &mut self,
        family: &'static MetricFamily,
        labels: [&str; N],
        value: impl Into<MetricValue>,
    ) {
        assert_eq!(family.labels.len(), N, "{} has other labels", family.name);
        let labels = family.labels.iter().zip(labels).map(|(&label, value)| (label, value.to_owned()));
        let sample = Sample { labels: labels.collect(), value: value.into() };
        let of_it = self.families.iter_mut().find(|(other, _)| other.name == family.name);
        of_it.expect("the family has been added").1.push(sample);
    }

    /// Returns all families and samples as OpenMetrics text.
    pub fn into_text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a text takes everything");
        text
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (family, samples) in &self.families {
            let unit = family.unit.map(|unit| match unit {
                MetricUnit::Bytes => Unit::Bytes,
                MetricUnit::Seconds => Unit::Seconds,
            });
            let kind = match family.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
                MetricKind::Info => MetricType::Info,
            };
            let mut of_family = encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
            for Sample { labels, value } in samples {
                if family.kind == MetricKind::Info {
                    of_family.encode_info(labels)?;
                } else if labels.is_empty() {
                    encode_number(&mut of_family, family.kind, value)?;
                } else {
                    encode_number(&mut of_family.encode_family(labels)?, family.kind, value)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_number(encoder: &mut MetricEncoder, kind: MetricKind, value: &MetricValue) -> fmt::Result {
    match (kind, value) {
        (MetricKind::Counter, MetricValue::Count(count)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(count, None)
        }
        (MetricKind::Counter, MetricValue::Seconds(seconds)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(seconds, None)
        }
        (MetricKind::Gauge, MetricValue::Count(count)) => encoder.encode_gauge(count),
        (MetricKind::Gauge, MetricValue::Seconds(seconds)) => encoder.encode_gauge(seconds),
        (MetricKind::Histogram, MetricValue::Times(times)) => {
            let bounds = (0..TimeHistogram::STEPS).map(|step| seconds(TimeHistogram::bound(step)));
            let bounds = bounds.chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(times.counts().iter().copied()).collect();
            encoder.encode_histogram::<NoLabelSet>(seconds(times.sum()), times.count(), &buckets, None)
        }
        (kind, value) => panic!("{value:?} is no number of a {}", kind.word()),
    }
}

fn seconds(time: machine::Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}
