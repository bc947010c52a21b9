//! Statistics of an experiment with few trials.
//!
//! A [`Sample`] holds the values of the trials. It computes their mean, their coefficient of variation and a confidence
//! interval of the mean, and tests two samples for a significant difference. Because there are few trials, all methods
//! use Student's t distribution instead of the normal distribution. Use the [`median`] if some values may be outliers,
//! for example on a shared computer.
//!
//! Functions return `None` for an unknown result, and never NaN: with a single trial only the value itself is known.

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
    /// Computes the statistics of these values. Returns `None` if there are no values or if a value is not finite.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let first = *values.first()?;
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len();
        // Sum the differences from the first value. Then the mean of equal values is exactly this value, and their
        // deviation is 0.
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

    /// Returns the standard deviation of the population, estimated from the sample (with divisor n - 1), in the unit of
    /// the values; 0 for a single value.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns the coefficient of variation: the standard deviation divided by the mean, without unit. 0 if the values
    /// do not vary; infinite if they vary and their mean is 0.
    pub fn cv(&self) -> f64 {
        if self.deviation == 0.0 { 0.0 } else { self.deviation / self.mean.abs() }
    }

    /// Returns half the width of the 95 % confidence interval of the mean, in the unit of the values. If the values are
    /// normally distributed, the true mean is within this distance of [`Sample::mean`] with 95 % probability. `None`
    /// for a single value.
    pub fn half_width(&self) -> Option<f64> {
        let freedom = self.count().checked_sub(1).filter(|&freedom| freedom > 0)?;
        Some(student(freedom as f64).inverse_cdf((1.0 + CONFIDENCE) / 2.0) * self.standard_error())
    }

    /// Tests the means of two populations for a significant difference (confidence level 95 %). Each trial of one
    /// sample is paired with the trial of the same number of the other.
    ///
    /// The test is Student's two-sided t-test for paired samples, applied to the differences of the pairs. Trials of
    /// the same number share the seed, and so the spindle phases and the layout; pairing removes the effect of these on
    /// both samples. If all differences are equal, the populations differ unless the difference is 0. Returns `None`
    /// for a single trial, or if the samples have different sizes.
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

    /// Returns the standard error of the mean, in the unit of the values.
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

/// Returns the standard deviation (with divisor n - 1) of values with this mean.
fn deviation(values: &[f64], mean: f64) -> f64 {
    let largest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if values.len() < 2 || largest == 0.0 {
        return 0.0;
    }
    // Divide by the largest difference before squaring, so that no square overflows or underflows.
    let squares: f64 = values.iter().map(|value| ((value - mean) / largest).powi(2)).sum();
    largest * (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns Student's t distribution of mean 0 and scale 1, with `freedom` degrees of freedom.
fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}
