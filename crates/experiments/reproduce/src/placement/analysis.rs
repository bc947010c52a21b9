//! The analysis of a cell with the crate `placement`, from the measured times r and w.

use placement::{BlockTimes, ManyDisks, TwoDisks};
use plan::{PlacedJob, PlacementCase};

use super::{Placed, PlacedCell, mean};

/// Returns the measured times of a block, as means over the trials.
pub(super) fn times(cell: &PlacedCell<'_>) -> BlockTimes {
    let of = |time: fn(&plan::PlacedMeasurement) -> u64| {
        mean(cell.placed().map(|placed| time(placed) as f64 / 1e6))
    };
    BlockTimes { read: of(|placed| placed.read_ns), write: of(|placed| placed.write_ns) }
}

/// Returns the analysis of d disks for a cell; `None` for a copy, or for a single disk.
pub(super) fn many_disks(cell: &PlacedCell<'_>) -> Option<ManyDisks> {
    let case = &cell.cell.case;
    let is_of_many = case.options.kind != PlacedJob::Copy && case.options.disks >= 2;
    is_of_many.then(|| ManyDisks::new(times(cell), case.options.read_blocks as u32, case.options.disks))
}

/// Returns the analysis of two disks for a copy.
pub(super) fn two_disks(cell: &PlacedCell<'_>) -> TwoDisks {
    TwoDisks { times: times(cell), read_blocks: cell.options().read_blocks as u32 }
}

/// Returns 1/r - 1/w: the growth rate of a copy's queue during a race, in blocks per second.
pub(super) fn growth(cell: &PlacedCell<'_>) -> f64 {
    let times = times(cell);
    1000.0 / times.read - 1000.0 / times.write
}

/// True if a race is possible: there are several jobs, their placement permits races, and writing is slow enough.
pub(super) fn can_race(cell: &PlacedCell<'_>) -> bool {
    let case = &cell.cell.case;
    let slow = match case.options.kind {
        PlacedJob::Copy => times(cell).ratio() > 1.0,
        PlacedJob::Merge | PlacedJob::Interleave => many_disks(cell).is_some_and(|many| many.can_race()),
    };
    case.can_race() && slow
}

/// Returns the least time in seconds that the busiest disk needs for its blocks: a lower bound of the time of all jobs.
pub(super) fn load(cell: &PlacedCell<'_>) -> f64 {
    let times = times(cell);
    let blocks = disk_blocks(&cell.cell.case);
    let busy = |(read, written): &(u64, u64)| *read as f64 * times.read + *written as f64 * times.write;
    blocks.iter().map(busy).fold(0.0, f64::max) / 1000.0
}

/// Returns the numbers of blocks read from and written to each disk.
fn disk_blocks(case: &PlacementCase) -> Vec<(u64, u64)> {
    let mut blocks = vec![(0, 0); case.options.disks as usize];
    for placed in case.placements().unwrap_or_default() {
        placed.input.iter().for_each(|&disk| blocks[disk].0 += case.options.run_blocks);
        blocks[placed.output].1 += case.job_blocks();
    }
    blocks
}
