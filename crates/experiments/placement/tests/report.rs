//! Tests of the formulas against numbers computed by hand for the disk of the report: 8.33 ms of latency, 1.024 ms per
//! block, no seeks. The tests compare all printed digits.

use placement::{BlockTimes, ManyDisks, TwoDisks};

fn times(read_blocks: u32, write_blocks: u32) -> BlockTimes {
    BlockTimes::without_seeks(8.33, 1.024, read_blocks, write_blocks)
}

fn two_disks(read_blocks: u32, write_blocks: u32) -> TwoDisks {
    TwoDisks { times: times(read_blocks, write_blocks), read_blocks }
}

fn five_disks(read_blocks: u32, write_blocks: u32) -> ManyDisks {
    ManyDisks::new(times(read_blocks, write_blocks), read_blocks, 5)
}

fn to_the_microsecond(times: BlockTimes) -> BlockTimes {
    let rounded = |milliseconds: f64| (milliseconds * 1e3).round() / 1e3;
    BlockTimes { read: rounded(times.read), write: rounded(times.write) }
}

/// Asserts that the value rounds to `printed`, which has `decimals` digits after the point.
fn assert_prints(value: f64, decimals: usize, printed: f64, what: &str) {
    let half = 0.5 * 10_f64.powi(-(decimals as i32));
    assert!((value - printed).abs() <= half * 1.000_001, "{what}: {value}, not {printed}");
}

#[test]
fn a_block_takes_longer_in_smaller_batches() {
    for (blocks, milliseconds) in [
        (1, 9.354),
        (2, 5.189),
        (3, 3.801),
        (4, 3.107),
        (5, 2.690),
        (6, 2.412),
        (8, 2.065),
        (10, 1.857),
        (12, 1.718),
        (16, 1.545),
        (20, 1.441),
        (24, 1.371),
        (40, 1.232),
    ] {
        assert_prints(times(blocks, 1).read, 3, milliseconds, "r");
        assert_prints(times(1, blocks).write, 3, milliseconds, "w");
    }
}

/// For b_r = 8: f, the bound for 10,000 blocks in seconds, the threshold in ms, and the growth in blocks per second.
#[test]
fn two_disks_have_the_thresholds_computed_by_hand() {
    for (write_blocks, ratio, bound, threshold, growth) in [
        (1, 4.53, 114.2, 74.8, Some(377.0)),
        (2, 2.51, 72.5, 41.5, Some(292.0)),
        (3, 1.84, 58.7, 30.4, Some(221.0)),
        (4, 1.50, 51.7, 24.9, Some(162.0)),
        (5, 1.30, 47.6, 21.5, Some(113.0)),
        (6, 1.17, 44.8, 19.3, Some(70.0)),
        (8, 1.00, 41.3, 16.5, None),
        (10, 0.90, 39.2, 14.9, None),
        (12, 0.83, 37.8, 13.7, None),
        (16, 0.75, 36.1, 12.4, None),
        (20, 0.70, 35.1, 11.5, None),
        (40, 0.60, 33.0, 9.9, None),
    ] {
        let (system, what) = (two_disks(8, write_blocks), format!("b_w = {write_blocks}"));
        assert_prints(system.times.ratio(), 2, ratio, &what);
        assert_prints(system.times.bound(10_000.0) / 1e3, 1, bound, &what);
        assert_prints(system.threshold(), 1, threshold, &what);
        assert_eq!(system.can_race(), growth.is_some(), "{what}");
        assert_eq!(system.growth().is_some(), growth.is_some(), "{what}");
        // Computed from r and w as printed above. Without rounding, b_w = 2 would yield 291.49.
        let rounded = TwoDisks { times: to_the_microsecond(system.times), ..system };
        if let (Some(found), Some(growth)) = (rounded.growth(), growth) {
            assert_prints(found * 1e3, 0, growth, &what);
        }
    }
    let four = two_disks(4, 1);
    assert_prints(four.times.ratio(), 2, 3.01, "b_r = 4");
    assert_prints(four.growth().expect("a race") * 1e3, 0, 215.0, "b_r = 4");
}

#[test]
fn the_bound_of_the_copy_is_115_seconds_as_in_the_report() {
    let bound = two_disks(8, 1).times.bound(10_000.0) / 1e3;
    assert!((bound - 115.0).abs() < 1.0, "{bound}");
}

/// For d = 5: r, w, f, f^, N* in ms and in blocks, the duration of a cycle at N*, and true if all jobs keep pace.
#[test]
fn five_disks_have_the_thresholds_computed_by_hand() {
    for (read_blocks, write_blocks, ratio, of_all, threshold, blocks, cycle, stable) in [
        (1, 8, (0.221, 3), (0.883, 3), (33.0, 1), 16, (70.5, 1), true),
        (1, 4, (0.332, 3), (1.328, 3), (49.7, 1), 16, (87.1, 1), false),
        (1, 2, (0.555, 3), (2.219, 3), (83.0, 1), 16, (120.4, 1), false),
        (2, 4, (0.599, 3), (2.395, 3), (99.4, 1), 32, (140.9, 1), false),
        (1, 1, (1.000, 3), (4.000, 3), (149.7, 1), 16, (187.1, 1), false),
        (4, 4, (1.000, 3), (4.000, 3), (198.8, 1), 64, (248.5, 1), false),
        (12, 40, (0.717, 3), (2.869, 3), (236.6, 1), 192, (319.1, 1), false),
        (12, 4, (1.808, 3), (7.232, 3), (596.4, 1), 192, (678.9, 1), false),
        (12, 1, (5.444, 3), (21.78, 2), (1_796.0, 0), 192, (1_878.0, 0), false),
    ] {
        let (system, what) =
            (five_disks(read_blocks, write_blocks), format!("{read_blocks}, {write_blocks}"));
        assert_prints(system.times.ratio(), ratio.1, ratio.0, &what);
        assert_prints(system.ratio(), of_all.1, of_all.0, &what);
        assert_prints(system.threshold(), threshold.1, threshold.0, &what);
        assert_eq!(system.threshold_blocks(), blocks, "{what}");
        assert_prints(system.cycle(system.threshold()), cycle.1, cycle.0, &what);
        assert_eq!(system.can_race(), !stable, "{what}");
    }
}

#[test]
fn a_race_is_possible_above_a_quarter_for_five_disks_and_a_half_for_three() {
    for (disks, critical) in [(2, 1.0), (3, 0.5), (5, 0.25)] {
        let system = |f| ManyDisks::new(BlockTimes { read: 2.0, write: 2.0 * f }, 4, disks);
        assert!((system(1.0).critical_ratio() - critical).abs() < 1e-12);
        assert!(!system(critical * 0.999).can_race() && system(critical * 1.001).can_race());
    }
}

/// Asserts that the demands equal the numbers computed by hand, each with its number of decimals.
fn assert_follows(demands: impl Iterator<Item = f64>, worked: &[(f64, usize)]) {
    for (demand, &(printed, decimals)) in demands.zip(worked) {
        assert_prints(demand, decimals, printed, "a demand");
    }
}

#[test]
fn the_demands_of_two_disks_equal_those_computed_by_hand() {
    let racing = two_disks(8, 1);
    let worked = [(112.2, 1), (244.3, 1), (842.4, 1), (3_551.0, 0), (15_820.0, 0)];
    assert_follows(racing.demands(racing.threshold() * 1.5), &worked);
    let stable = two_disks(8, 40);
    let worked = [(78.9, 1), (51.0, 1), (34.4, 1), (24.5, 1), (18.6, 1), (15.1, 1)];
    assert_follows(stable.demands(stable.threshold() * 8.0), &worked);
}

#[test]
fn the_demands_of_five_disks_equal_those_computed_by_hand() {
    let racing = five_disks(4, 4);
    let worked = [(298.2, 1), (596.4, 1), (1_789.0, 0), (6_561.0, 0), (25_647.0, 0)];
    assert_follows(racing.demands(racing.threshold() * 1.5), &worked);
    let slowly = five_disks(1, 4);
    let worked = [(74.6, 1), (82.7, 1), (93.6, 1), (108.0, 1), (127.1, 1)];
    assert_follows(slowly.demands(slowly.threshold() * 1.5), &worked);
    let stable = five_disks(1, 8);
    let worked = [(66.1, 1), (62.2, 1), (58.8, 1), (55.8, 1), (53.1, 1)];
    assert_follows(stable.demands(stable.threshold() * 2.0), &worked);
}
