//! Properties of every sample.

use proptest::collection::vec;
use proptest::prelude::*;
use statistics::Sample;

/// Generates values of similar magnitude, or of very different magnitudes.
fn values() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![vec(1.0..500.0, 1..12), vec(-1e300..1e300, 1..6), vec(-1e-300..1e-300, 1..6)]
}

fn sample(values: &[f64]) -> Sample {
    Sample::of(values).expect("finite values")
}

proptest! {
    #[test]
    fn statistics_are_never_nan(first in values(), second in values()) {
        let (first, second) = (sample(&first), sample(&second));
        prop_assert!(first.mean().is_finite() && first.deviation() >= 0.0 && first.cv() >= 0.0);
        prop_assert_eq!(first.half_width().is_some(), first.count() > 1);
        prop_assert!(first.half_width().is_none_or(|width| width >= 0.0));
        let paired = first.count() == second.count() && first.count() > 1;
        prop_assert_eq!(first.differs_from(&second).is_some(), paired);
    }

    #[test]
    fn the_mean_lies_between_the_extremes(values in vec(1.0..500.0, 1..12)) {
        let mean = sample(&values).mean();
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
        prop_assert!(least - 1e-9 <= mean && mean <= most + 1e-9);
    }

    #[test]
    fn the_order_of_trials_changes_only_the_rounding(values in vec(1.0..500.0, 1..12)) {
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        let (one, other) = (sample(&values), sample(&reversed));
        prop_assert!((one.mean() - other.mean()).abs() < 1e-9);
        prop_assert!((one.deviation() - other.deviation()).abs() < 1e-9);
    }

    #[test]
    fn difference_is_symmetric_and_irreflexive(first in vec(1.0..500.0, 5..=5), second in vec(1.0..500.0, 5..=5)) {
        let (first, second) = (sample(&first), sample(&second));
        prop_assert_eq!(first.differs_from(&second), second.differs_from(&first));
        prop_assert_eq!(first.differs_from(&first), Some(false));
    }

    #[test]
    fn a_change_of_unit_does_not_change_results(first in vec(1.0..500.0, 5..=5), second in vec(1.0..500.0, 5..=5)) {
        // Multiplication by a power of two is exact.
        let scaled = |values: &[f64]| sample(&values.iter().map(|value| value * 1024.0).collect::<Vec<_>>());
        let (one, other) = (sample(&first), sample(&second));
        prop_assert_eq!(one.differs_from(&other), scaled(&first).differs_from(&scaled(&second)));
        prop_assert_eq!(one.cv(), scaled(&first).cv());
    }

    #[test]
    fn equal_values_do_not_vary(value in 0.001..500.0, count in 1_usize..12) {
        let sample = sample(&vec![value; count]);
        prop_assert_eq!((sample.mean(), sample.deviation()), (value, 0.0));
    }

    #[test]
    fn samples_with_disjoint_intervals_differ(first in vec(1.0..500.0, 5..=5), second in vec(1.0..500.0, 5..=5)) {
        let (first, second) = (sample(&first), sample(&second));
        let widths = first.half_width().unwrap_or(0.0) + second.half_width().unwrap_or(0.0);
        if (first.mean() - second.mean()).abs() > widths {
            prop_assert_eq!(first.differs_from(&second), Some(true));
        }
    }
}
