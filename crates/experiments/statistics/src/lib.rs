//! What can be said of an experiment from a few trials of it.
//!
//! A [`Sample`] keeps the values that the trials gave. From it come the mean, the coefficient of variation, a
//! confidence interval of the mean, and whether two samples differ significantly. All of it is for few trials:
//! Student's t distribution, not the normal one. Where some values may be far off, as those of a computer that others
//! use, there is the [`median`].
//!
//! What cannot be known is `None`, never NaN: nothing follows from one trial but its value.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// How sure one wants to be: that of the reports, 95 %.
pub const CONFIDENCE: f64 = 0.95;

/// The values of several trials, in the order of their numbers, and what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
}

impl Sample {
    /// The sample of these values; `None` if there are none, or one is not finite.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let first = *values.first()?;
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len();
        // Relative to the first value, so that equal values have exactly that mean and no deviation.
        let mean = first + values.iter().map(|value| (value - first) / count as f64).sum::<f64>();
        Some(Sample { values: values.to_vec(), mean, deviation: deviation(values, mean) })
    }

    /// The number of values, at least one.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The mean, in the unit of the values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of the population as this sample lets us guess it (divided by n - 1), in the unit
    /// of the values; 0 for one value.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// The coefficient of variation: standard deviation over mean, without unit. 0 if the values do not vary,
    /// and infinite if they do around a mean of 0.
    pub fn cv(&self) -> f64 {
        if self.deviation == 0.0 { 0.0 } else { self.deviation / self.mean.abs() }
    }

    /// Half the width of the 95 % confidence interval of the mean, in the unit of the values: with that
    /// probability the true mean is no further from [`Sample::mean`], if the values are normally distributed.
    /// `None` for one value, from which nothing follows.
    pub fn half_width(&self) -> Option<f64> {
        let freedom = self.count().checked_sub(1).filter(|&freedom| freedom > 0)?;
        Some(student(freedom as f64).inverse_cdf((1.0 + CONFIDENCE) / 2.0) * self.standard_error())
    }

    /// Whether the means of two populations differ significantly at 95 %, judged by these samples of them: trial by
    /// trial, the first of one against the first of the other.
    ///
    /// The test is Student's t-test for paired samples, two-sided, on the differences. Trials of the same number have
    /// the same seed, and so the same spindle phases and the same layout; what that does to both is not a difference
    /// between them. If the differences do not vary, the populations differ unless they are 0. `None` for a single
    /// trial, or if one sample has more trials than the other.
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

    /// The standard deviation of the mean.
    fn standard_error(&self) -> f64 {
        self.deviation / (self.count() as f64).sqrt()
    }
}

/// The median: the middle value, or the mean of the two middle ones; `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) })
}

/// The standard deviation of values with this mean, divided by n - 1.
fn deviation(values: &[f64], mean: f64) -> f64 {
    let largest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if values.len() < 2 || largest == 0.0 {
        return 0.0;
    }
    // In units of the largest, so that no square leaves the range of numbers.
    let squares: f64 = values.iter().map(|value| ((value - mean) / largest).powi(2)).sum();
    largest * (squares / (values.len() - 1) as f64).sqrt()
}

/// Student's t distribution, of mean 0 and scale 1.
fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}
