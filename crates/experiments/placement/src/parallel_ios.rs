//! Numbers of parallel I/Os. A parallel I/O moves at most one block of every disk (section 1 of the report).

/// Numbers of parallel I/Os for jobs on `d` disks that exchange runs of N blocks, with one scheduler for all disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelIos {
    /// Lower bound, 2 N (d - 1): d disks read each block of d (d - 1) runs once and write it once.
    pub least: u64,
    /// Number for jobs in lock-step: 2 N for two jobs that copy two disks onto each other (section 3), and (2 d - 1) N
    /// for an interleave by more jobs (section 4).
    pub lock_step: u64,
}

impl ParallelIos {
    /// Computes the numbers for an exchange of runs of `blocks` blocks among `disks` disks, at least two.
    pub fn of_exchange(disks: u64, blocks: u64) -> ParallelIos {
        let lock_step = if disks == 2 { 2 * blocks } else { (2 * disks - 1) * blocks };
        ParallelIos { least: 2 * blocks * (disks - 1), lock_step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_io_counts_are_those_of_the_report() {
        assert_eq!(ParallelIos::of_exchange(2, 1000), ParallelIos { least: 2000, lock_step: 2000 });
        assert_eq!(ParallelIos::of_exchange(5, 1000), ParallelIos { least: 8000, lock_step: 9000 });
    }
}
