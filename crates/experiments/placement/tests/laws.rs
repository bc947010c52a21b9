//! Laws of the analysis, for any times and any number of disks.

use placement::{BlockTimes, ManyDisks, TwoDisks};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const CYCLES: usize = 12;

fn times() -> impl Strategy<Value = BlockTimes> {
    (0.5..10.0_f64, 0.5..10.0_f64).prop_map(|(read, write)| BlockTimes { read, write })
}

/// True if the values are equal except for rounding errors. The values are differences of terms as large as `scale`.
fn close(one: f64, other: f64, scale: f64) -> bool {
    (one - other).abs() <= 1e-9 * scale
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1996), ..ProptestConfig::default() })]

    #[test]
    fn the_closed_form_of_two_disks_equals_the_iteration(
        times in times(), read_blocks in 1_u32..40, first in 0.0..1_000.0_f64,
    ) {
        let system = TwoDisks { times, read_blocks };
        let factor = times.ratio().max(1.0);
        for (cycle, demand) in system.demands(first).take(CYCLES).enumerate() {
            let scale = factor.powi(cycle as i32 + 1) * (first + system.threshold());
            let closed = system.demand_after(first, cycle as u32);
            prop_assert!(close(demand, closed, scale), "cycle {cycle}: {demand} and {closed}");
        }
    }

    #[test]
    fn the_closed_form_of_many_disks_equals_the_iteration(
        times in times(), read_blocks in 1_u32..40, disks in 2_u32..20, first in 0.0..1_000.0_f64,
    ) {
        let system = ManyDisks::new(times, read_blocks, disks);
        let factor = system.ratio().max(1.0);
        for (cycle, demand) in system.demands(first).take(CYCLES).enumerate() {
            let scale = factor.powi(cycle as i32 + 1) * (first + system.threshold());
            let closed = system.demand_after(first, cycle as u32);
            prop_assert!(close(demand, closed, scale), "cycle {cycle}: {demand} and {closed}");
        }
    }

    #[test]
    fn for_two_disks_both_analyses_have_equal_formulas(
        times in times(), read_blocks in 1_u32..40, demand in 0.0..1_000.0_f64,
    ) {
        let (two, many) = (TwoDisks { times, read_blocks }, ManyDisks::new(times, read_blocks, 2));
        let scale = (1.0 + times.ratio()) * (demand + two.threshold());
        prop_assert!(close(two.threshold(), many.threshold(), scale));
        prop_assert!(close(two.next_demand(demand), many.next_demand(demand), scale));
        prop_assert_eq!(two.can_race(), many.can_race());
    }

    /// The threshold is a fixed point. A larger demand grows if a race is possible, and shrinks otherwise.
    #[test]
    fn the_threshold_separates_growing_from_shrinking_demands(
        times in times(), read_blocks in 1_u32..40, disks in 2_u32..20, above in 1.01..4.0_f64,
    ) {
        let system = ManyDisks::new(times, read_blocks, disks);
        prop_assume!((system.ratio() - 1.0).abs() > 1e-3);
        let threshold = system.threshold();
        let scale = threshold * system.ratio().max(1.0);
        prop_assert!(close(system.next_demand(threshold), threshold, scale));
        let more = threshold * above;
        prop_assert_eq!(system.next_demand(more) > more, system.can_race());
        prop_assert_eq!(system.races_from(more), system.can_race());
        let less = threshold / above;
        prop_assert_eq!(system.next_demand(less) < less, system.can_race());
        prop_assert!(!system.races_from(less));
    }

    #[test]
    fn two_disks_race_above_the_threshold(
        times in times(), read_blocks in 1_u32..40, above in 1.01..4.0_f64,
    ) {
        let system = TwoDisks { times, read_blocks };
        prop_assume!((times.ratio() - 1.0).abs() > 1e-3);
        let more = system.threshold() * above;
        prop_assert_eq!(system.races_from(more), system.can_race());
        prop_assert_eq!(system.next_demand(more) > more, system.can_race());
        prop_assert!(!system.races_from(system.threshold() / above));
        prop_assert!(system.growth().is_none_or(|growth| growth > 0.0));
    }
}
