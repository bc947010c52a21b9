//! Tests of statistics against printed tables of Student's t distribution, and values computed by hand.

use statistics::{Sample, median};

fn sample(values: &[f64]) -> Sample {
    Sample::of(values).expect("values")
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-6 * expected.abs()
}

#[test]
fn deviation_and_cv_divide_by_the_count_minus_one() {
    let four = sample(&[2.0, 4.0, 4.0, 6.0]);
    assert_eq!((four.count(), four.mean()), (4, 4.0));
    assert!(close(four.deviation(), (8.0_f64 / 3.0).sqrt()));
    assert!(close(four.cv(), four.deviation() / 4.0));
}

#[test]
fn half_widths_equal_those_of_printed_tables() {
    // The 97.5 % points of t for n - 1 degrees of freedom, to six digits.
    for (n, t) in [(2, 12.706_205), (3, 4.302_653), (5, 2.776_445), (10, 2.262_157), (31, 2.042_272)] {
        let values: Vec<f64> = (0..n).map(f64::from).collect();
        let sample = sample(&values);
        let expected = t * sample.deviation() / f64::from(n).sqrt();
        assert!(close(sample.half_width().expect("several"), expected), "{n}");
    }
}

#[test]
fn pairs_differ_if_t_exceeds_the_tabulated_bound() {
    // Five pairs: 4 degrees of freedom, whose 97.5 % point is 2.776445.
    let base = [31.0, 4.5, 400.0, 7.25, 29.0];
    let noise = [-2.0, -1.0, 0.0, 1.0, 2.0];
    let error = 0.5_f64.sqrt();
    let moved = |by: f64| sample(&std::array::from_fn::<f64, 5, _>(|i| base[i] + noise[i] + by * error));
    assert_eq!(sample(&base).differs_from(&moved(2.7764)), Some(false));
    assert_eq!(sample(&base).differs_from(&moved(2.7765)), Some(true));
    assert_eq!(sample(&base).differs_from(&moved(-2.7765)), Some(true));
}

#[test]
fn samples_are_compared_pair_by_pair() {
    // Without pairing, the samples would hardly differ.
    let (slow, fast) = ([10.0, 20.0, 30.0, 40.0], [10.1, 20.2, 30.1, 40.2]);
    assert_eq!(sample(&slow).differs_from(&sample(&fast)), Some(true));
    assert_eq!(sample(&slow).differs_from(&sample(&[20.2, 10.1, 40.2, 30.1])), Some(false));
}

#[test]
fn constant_samples_differ_if_their_values_do() {
    let (one, same, other) = (sample(&[0.1; 5]), sample(&[0.1; 5]), sample(&[0.1 + 1e-16; 5]));
    assert_eq!(one.differs_from(&same), Some(false));
    assert_eq!(one.differs_from(&other), Some(true));
    assert_eq!((one.cv(), one.half_width()), (0.0, Some(0.0)));
}

#[test]
fn one_value_has_no_interval_and_no_difference() {
    let one = sample(&[31.4]);
    assert_eq!((one.mean(), one.deviation(), one.cv(), one.half_width()), (31.4, 0.0, 0.0, None));
    assert_eq!(one.differs_from(&sample(&[1.0, 2.0])), None);
    assert_eq!(one.differs_from(&sample(&[31.5])), None);
    assert_eq!(sample(&[1.0, 1.0]).differs_from(&sample(&[1.0; 3])), None);
}

#[test]
fn a_sample_needs_finite_values() {
    for values in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY]] {
        assert_eq!(Sample::of(values), None);
    }
}

#[test]
fn values_around_zero_have_an_infinite_cv() {
    assert_eq!(sample(&[-1.0, 1.0]).cv(), f64::INFINITY);
    assert_eq!(sample(&[0.0, 0.0]).cv(), 0.0);
}

#[test]
fn a_median_is_in_the_middle_of_the_values() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 100.0, 3.0]), Some(3.5));
    assert_eq!(median(&[]), None);
}
