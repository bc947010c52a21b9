//! A histogram of times: counts in steps that double, in memory of constant size.

use machine::Duration;

/// Times of a frequent event, each counted in the step that it falls into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeHistogram {
    /// One count for each step, and one for longer times.
    counts: [u64; Self::STEPS + 1],
    sum: u64,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        TimeHistogram { counts: [0; Self::STEPS + 1], sum: 0 }
    }
}

impl TimeHistogram {
    /// Number of steps: up to 16.8 seconds, which is longer than a client waits for an agent.
    pub const STEPS: usize = 25;

    /// Returns the longest time of a step: a microsecond for the first, and twice that of the previous step
    /// for the others.
    ///
    /// # Panics
    /// If there is no such step.
    pub const fn bound(step: usize) -> Duration {
        assert!(step < Self::STEPS, "there are not so many steps");
        Duration::from_micros(1 << step)
    }

    /// Counts one time.
    #[inline]
    pub fn add(&mut self, time: Duration) {
        let nanoseconds = time.as_nanos();
        let microseconds = nanoseconds.div_ceil(1000).max(1);
        let step = (u64::BITS - (microseconds - 1).leading_zeros()) as usize;
        self.counts[step.min(Self::STEPS)] += 1;
        self.sum = self.sum.saturating_add(nanoseconds);
    }

    /// Returns the count of each step, followed by the count of longer times.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of counted times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all times.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_counted_in_the_first_step_that_is_not_shorter() {
        for (nanoseconds, step) in
            [(0, 0), (1, 0), (1000, 0), (1001, 1), (2000, 1), (2001, 2), (1 << 40, TimeHistogram::STEPS)]
        {
            let mut histogram = TimeHistogram::default();
            histogram.add(Duration::from_nanos(nanoseconds));
            let at = histogram.counts().iter().position(|&count| count == 1);
            assert_eq!(at, Some(step), "{nanoseconds} ns");
        }
    }

    proptest! {
        #[test]
        fn each_time_is_counted_once_within_its_bounds(times in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut histogram = TimeHistogram::default();
            for &time in &times {
                histogram.add(Duration::from_nanos(time));
            }
            prop_assert_eq!(histogram.count(), times.len() as u64);
            let sum = times.iter().fold(0_u64, |sum, &time| sum.saturating_add(time));
            prop_assert_eq!(histogram.sum().as_nanos(), sum);
            let mut within = 0;
            for step in 0..TimeHistogram::STEPS {
                within += histogram.counts()[step];
                let bound = TimeHistogram::bound(step).as_nanos();
                prop_assert_eq!(within, times.iter().filter(|&&time| time <= bound).count() as u64);
            }
        }
    }
}
