//! Latencies of requests. Percentiles have a known maximum error, and the memory does not grow with the number of
//! requests.

use std::fmt;

use hdrhistogram::Histogram;
use machine::Duration;

/// Number of correct decimal digits of a percentile. It is too large by at most a thousandth.
const DIGITS: u8 = 3;

/// Statistics of the latencies of many requests.
#[derive(Clone, PartialEq)]
pub struct Latencies {
    /// Latencies in nanoseconds. The width of each step is at most a thousandth of the latency.
    histogram: Histogram<u64>,
    /// Sum of all latencies, in nanoseconds.
    sum: u128,
    longest: Duration,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new(DIGITS).expect("the histogram supports this number of digits");
        Latencies { histogram, sum: 0, longest: Duration::ZERO }
    }
}

impl Latencies {
    /// Adds one latency.
    pub fn record(&mut self, latency: Duration) {
        self.histogram.record(latency.as_nanos()).expect("the histogram grows as needed");
        self.sum += u128::from(latency.as_nanos());
        self.longest = self.longest.max(latency);
    }

    /// Adds all latencies of `other`.
    pub fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("the histogram grows as needed");
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the mean, rounded down to a nanosecond; `None` if there are no latencies.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count()))?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// Returns the latency that `percent` % of all latencies do not exceed. The result is too large by at most a
    /// thousandth. `None` if there are no latencies.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let value = (self.count() > 0).then(|| self.histogram.value_at_percentile(percent))?;
        // The upper bound of a step may exceed the longest latency.
        Some(Duration::from_nanos(value).min(self.longest))
    }

    /// Returns the longest latency, exact to the nanosecond; `None` if there are no latencies.
    pub fn longest(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.longest)
    }
}

impl fmt::Debug for Latencies {
    /// Writes a summary instead of all fields, because the histogram has thousands of counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, mean, longest) = (self.count(), self.mean(), self.longest());
        f.debug_struct("Latencies")
            .field("count", &count)
            .field("mean", &mean)
            .field("longest", &longest)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::mix;

    /// Draws latencies from a microsecond to about ten seconds, with a distribution as skewed as that of real
    /// latencies.
    fn drawn(count: u64) -> Vec<u64> {
        let nanoseconds =
            |index| (1000.0 * 10_f64.powf((mix(index) >> 40) as f64 / (1 << 24) as f64 * 7.0)) as u64;
        (0..count).map(nanoseconds).collect()
    }

    fn of(values: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        values.iter().for_each(|&value| latencies.record(Duration::from_nanos(value)));
        latencies
    }

    #[test]
    fn percentiles_are_exact_within_a_thousandth() {
        let mut values = drawn(20_000);
        let latencies = of(&values);
        values.sort_unstable();
        for percent in [0.1, 50.0, 99.0, 99.9, 100.0] {
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            let exact = values[rank.max(1) - 1] as f64;
            let found = latencies.percentile(percent).expect("there are some").as_nanos() as f64;
            assert!((0.999..=1.001).contains(&(found / exact)), "{percent} %: {found} for {exact}");
        }
        let mean = values.iter().sum::<u64>() / 20_000;
        assert_eq!(latencies.mean(), Some(Duration::from_nanos(mean)));
        assert_eq!(latencies.longest(), Some(Duration::from_nanos(*values.last().expect("some"))));
        assert_eq!(latencies.percentile(100.0), latencies.longest());
    }

    #[test]
    fn latencies_added_in_parts_equal_all_latencies() {
        let values = drawn(3000);
        let mut sum = Latencies::default();
        values.chunks(700).for_each(|part| sum.add(&of(part)));
        assert_eq!(sum, of(&values));
        assert_eq!(sum.count(), 3000);
    }

    #[test]
    fn no_values_have_no_mean_and_no_percentile() {
        let none = Latencies::default();
        assert_eq!((none.count(), none.mean(), none.percentile(50.0), none.longest()), (0, None, None, None));
    }

    #[test]
    fn memory_is_bounded() {
        let latencies = of(&[0, 1, 3_600_000_000_000, u64::MAX >> 1]);
        assert!(latencies.histogram.distinct_values() * 8 < 512 << 10);
    }
}
