//! d jobs on d disks: each reads from all disks except one, and writes to that one (section 4 of the report). Merges
//! placed by policy 2 work like this.
//!
//! A *depletion cycle* concerns disk D_m, which has a backlog of writes of its job P_m. In the cycle the disk serves
//! this backlog and the one waiting read of each other job. The analysis assumes the worst: the writes of the other
//! jobs in a cycle do not overlap, and P_m's reads wait for all of them. A race that the analysis finds possible need
//! not appear at once.

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
    /// If there are fewer than two disks: a job must not read from the disk it writes to.
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

    /// Returns (d - 1) b_r r in milliseconds: the time of the reads that wait at the disk with the backlog.
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

    /// Returns N* in milliseconds: the fixed point of the recurrence. A larger write demand grows if f^ > 1 (section
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

    /// Iterates over the write demands at the beginning and after each cycle, in milliseconds. The sequence is endless.
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

    /// True if a write demand, in milliseconds, starts a race: f^ > 1 and N above N* (section 4).
    pub fn races_from(&self, demand: f64) -> bool {
        self.can_race() && demand > self.threshold()
    }
}
