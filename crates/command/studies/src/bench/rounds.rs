//! Repeated measurements, because other programs may disturb a single measurement.

use std::time::Duration;

use command_line::failure::Result;

/// Returns the median of some measurements.
///
/// # Panics
/// If `measured` is empty.
pub fn median(measured: &[f64]) -> f64 {
    statistics::median(measured).expect("at least one round")
}

/// Measures `rounds` times. Returns the measurement whose elapsed time is closest to the median.
///
/// # Panics
/// If there are no rounds.
pub fn middle_of<Measured>(
    rounds: u32,
    elapsed: impl Fn(&Measured) -> Duration,
    mut measure: impl FnMut() -> Result<Measured>,
) -> Result<Measured> {
    let all = (0..rounds).map(|_| measure()).collect::<Result<Vec<_>>>()?;
    let seconds = |measured: &Measured| elapsed(measured).as_secs_f64();
    let median = median(&all.iter().map(seconds).collect::<Vec<_>>());
    let distance = |measured: &Measured| (seconds(measured) - median).abs();
    let nearest = all.into_iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
    Ok(nearest.expect("at least one round"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_round_is_returned() {
        for (times, middle) in [(vec![7], 7), (vec![9, 1, 4], 4), (vec![1, 2, 100, 3], 2)] {
            let mut left = times.iter();
            let measured = middle_of(
                times.len() as u32,
                |&secs| Duration::from_secs(secs),
                || Ok(*left.next().expect("another")),
            );
            assert_eq!(measured.expect("nothing fails"), middle);
        }
    }
}
