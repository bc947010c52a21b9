//! d jobs on d disks. Each job writes to one disk and reads from all others (section 4 of the report). Policy 2 places
//! merges in this way.
//!
//! A *depletion cycle* concerns disk D_m, which has a backlog of writes of its job P_m. In the cycle, D_m serves this
//! backlog and the one waiting read of each other job. The analysis assumes the worst case: the writes of the other
//! jobs in a cycle do not overlap, and P_m's reads wait for all of them. Even if the analysis finds a race possible,
//! none may occur for some time.

use crate::BlockTimes;

/// A system of d disks and d jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManyDisks {
    /// Times per block.
    pub times: BlockTimes,
    /// b_r: number of blocks of a read.
    pub read_blocks: u32,
    disks: u32,
}

impl ManyDisks {
    /// Creates a system of `disks` disks and jobs.
    ///
    /// # Panics
    /// If there are fewer than two disks, because a job must not read from the disk that it writes to.
    pub fn new(times: BlockTimes, read_blocks: u32, disks: u32) -> Self {
        assert!(disks >= 2, "{disks} disks, of which a job writes to one and reads from the others");
        ManyDisks { times, read_blocks, disks }
    }

    /// Returns d: the number of disks and of jobs.
    pub fn disks(&self) -> u32 {
        self.disks
    }

    /// Returns d - 1: the number of disks that a job reads from.
    fn inputs(&self) -> f64 {
        f64::from(self.disks - 1)
    }

    /// Returns (d - 1) b_r r in milliseconds: the service time of the reads that wait at the disk with the backlog.
    fn read_demand(&self) -> f64 {
        self.inputs() * f64::from(self.read_blocks) * self.times.read
    }

    /// Returns f^ = f (d - 1), without unit: the time of a write relative to reading from all input disks at once
    /// (section 4).
    pub fn ratio(&self) -> f64 {
        self.times.ratio() * self.inputs()
    }

    /// Returns 1 / (d - 1), without unit: a race is possible if f exceeds it (section 4, where f^ > 1).
    pub fn critical_ratio(&self) -> f64 {
        1.0 / self.inputs()
    }

    /// True if a race is possible: f^ > 1 (section 4).
    pub fn can_race(&self) -> bool {
        self.ratio() > 1.0
    }

    /// Returns N* in milliseconds: the fixed point of the recurrence. If f^ > 1, a write demand above N* grows (section
    /// 4):
    ///
    /// ```text
    /// N* = (d - 1) b_r r f^ = (d - 1)^2 b_r w
    /// ```
    pub fn threshold(&self) -> f64 {
        self.threshold_blocks() as f64 * self.times.write
    }

    /// Returns N* in blocks: (d - 1)^2 b_r writes of one block each.
    pub fn threshold_blocks(&self) -> u64 {
        let inputs = u64::from(self.disks - 1);
        inputs * inputs * u64::from(self.read_blocks)
    }

    /// Returns t_1 in milliseconds: the duration of a cycle that begins with the write demand `demand` (section 4):
    ///
    /// ```text
    /// t_1 = N_0 + (d - 1) b_r r
    /// ```
    pub fn cycle(&self, demand: f64) -> f64 {
        demand + self.read_demand()
    }

    /// Returns the write demand after one more depletion cycle, in milliseconds (section 4):
    ///
    /// ```text
    /// N_1 = f^ [ N_0 + (d - 1) b_r r (1 - f^) ]
    /// ```
    pub fn next_demand(&self, demand: f64) -> f64 {
        let ratio = self.ratio();
        ratio * (demand + self.read_demand() * (1.0 - ratio))
    }

    /// Iterates over the write demands in milliseconds: the first one, and then the demand after each cycle. The
    /// sequence is endless.
    pub fn demands(&self, first: f64) -> impl Iterator<Item = f64> {
        let system = *self;
        std::iter::successors(Some(first), move |&demand| Some(system.next_demand(demand)))
    }

    /// Returns the write demand after `cycles` cycles, in milliseconds: the solution of the recurrence of section 4:
    ///
    /// ```text
    /// N_i = N* + f^^i (N_0 - N*)
    /// ```
    pub fn demand_after(&self, first: f64, cycles: u32) -> f64 {
        let threshold = self.threshold();
        threshold + self.ratio().powf(f64::from(cycles)) * (first - threshold)
    }

    /// True if a race begins at this write demand, in milliseconds: f^ > 1 and the demand is above N* (section 4).
    pub fn races_from(&self, demand: f64) -> bool {
        self.can_race() && demand > self.threshold()
    }
}
