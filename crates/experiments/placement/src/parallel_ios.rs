//! Counts of parallel I/Os: each moves one block of every disk at most (section 1 of the report).

/// Parallel I/Os in which jobs on `d` disks exchange their runs of N blocks, if one scheduler directs all disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelIos {
    /// The lower bound, 2 N (d - 1): every block of d (d - 1) runs is read once and written once, by d disks.
    pub least: u64,
    /// Those of jobs in lock-step: 2 N for two jobs that copy two disks onto each other (section 3), (2 d - 1) N for an
    /// interleave of more (section 4).
    pub lock_step: u64,
}

impl ParallelIos {
    /// Of an exchange among `disks` disks, two at least, of runs of `blocks` blocks.
    pub fn of_exchange(disks: u64, blocks: u64) -> ParallelIos {
        let lock_step = if disks == 2 { 2 * blocks } else { (2 * disks - 1) * blocks };
        ParallelIos { least: 2 * blocks * (disks - 1), lock_step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_report() {
        assert_eq!(ParallelIos::of_exchange(2, 1000), ParallelIos { least: 2000, lock_step: 2000 });
        assert_eq!(ParallelIos::of_exchange(5, 1000), ParallelIos { least: 8000, lock_step: 9000 });
    }
}
