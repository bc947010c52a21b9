//! Statistics of an experiment with few trials.
//!
//! A [`Sample`] holds the values of the trials. It computes their mean, coefficient of variation and a confidence
//! interval of the mean, and tests if two samples differ significantly. All methods use Student's t distribution
//! instead of the normal one, because the trials are few. Use the [`median`] if some values may be outliers, for
//! example on a shared computer.
//!
//! An unknown result is absent (`None`), never NaN: one trial yields only its value.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of intervals and tests: 95 %, as in the reports.
pub const CONFIDENCE: f64 = 0.95;

/// Values of several trials, in the order of their numbers, with the statistics derived from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
}

impl Sample {
    /// Computes the statistics of these values. Returns `None` if there are no values or one is not finite.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let first = *values.first()?;
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len();
        // Sum relative to the first value, so that equal values have exactly that mean and no deviation.
        let mean = first + values.iter().map(|value| (value - first) / count as f64).sum::<f64>();
        Some(Sample { values: values.to_vec(), mean, deviation: deviation(values, mean) })
    }

    /// Returns the number of values, at least one.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Returns the mean, in the unit of the values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the population's standard deviation as estimated from the sample (divided by n - 1), in the unit of the
    /// values; 0 for one value.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns the coefficient of variation: standard deviation over mean, without unit. 0 if the values do not vary;
    /// infinite if they vary around a mean of 0.
    pub fn cv(&self) -> f64 {
        if self.deviation == 0.0 { 0.0 } else { self.deviation / self.mean.abs() }
    }

    /// Returns half the width of the 95 % confidence interval of the mean, in the unit of the values. If the values are
    /// normally distributed, the true mean is within this distance of [`Sample::mean`] with 95 % probability. `None`
    /// for one value.
    pub fn half_width(&self) -> Option<f64> {
        let freedom = self.count().checked_sub(1).filter(|&freedom| freedom > 0)?;
        Some(student(freedom as f64).inverse_cdf((1.0 + CONFIDENCE) / 2.0) * self.standard_error())
    }

    /// Tests if the means of two populations differ significantly at 95 %. The test pairs the samples trial by trial:
    /// the first value of one with the first of the other.
    ///
    /// The test is Student's t-test for paired samples, two-sided, on the differences. Trials of the same number share
    /// the seed, and with it the spindle phases and the layout; pairing removes the common effect of these. If all
    /// differences are equal, the populations differ unless the difference is 0. Returns `None` for a single trial, or
    /// if the samples differ in size.
    pub fn differs_from(&self, other: &Sample) -> Option<bool> {
        if self.count() < 2 || self.count() != other.count() {
            return None;
        }
        let differences = self.values.iter().zip(&other.values).map(|(mine, others)| mine - others);
        let differences = Sample::of(&differences.collect::<Vec<f64>>())?;
        if differences.deviation == 0.0 {
            return Some(differences.mean != 0.0);
        }
        let t = differences.mean.abs() / differences.standard_error();
        Some(2.0 * student((self.count() - 1) as f64).sf(t) < 1.0 - CONFIDENCE)
    }

    /// Returns the standard deviation of the mean.
    fn standard_error(&self) -> f64 {
        self.deviation / (self.count() as f64).sqrt()
    }
}

/// Returns the median: the middle value, or the mean of the two middle ones; `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) })
}

/// Returns the standard deviation of values with this mean, divided by n - 1.
fn deviation(values: &[f64], mean: f64) -> f64 {
    let largest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if values.len() < 2 || largest == 0.0 {
        return 0.0;
    }
    // Square in units of the largest, so that no square overflows or underflows.
    let squares: f64 = values.iter().map(|value| ((value - mean) / largest).powi(2)).sum();
    largest * (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns Student's t distribution of mean 0 and scale 1, with `freedom` degrees of freedom.
fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}
