//! d jobs on d disks: each reads from all disks but one and writes to that one (section 4 of the report), as merges do
//! that are placed by policy 2.
//!
//! A *depletion cycle* is the time in which disk D_m, which has a backlog of its job P_m's writes, serves that and the
//! one read that waits there of each other job. The analysis assumes the worst: that the writes which the other jobs
//! make in a cycle do not overlap, and that P_m's reads wait for all of them. So a race is possible where it says so,
//! and need not be seen at once.

use crate::BlockTimes;

/// d disks and as many jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManyDisks {
    /// The times per block.
    pub times: BlockTimes,
    /// b_r: the blocks of a read.
    pub read_blocks: u32,
    disks: u32,
}

impl ManyDisks {
    /// The system of `disks` disks and jobs.
    ///
    /// # Panics
    /// If there are fewer than two disks: a job reads from another disk than it writes to.
    pub fn new(times: BlockTimes, read_blocks: u32, disks: u32) -> Self {
        assert!(disks >= 2, "{disks} disks, of which a job writes to one and reads from the others");
        ManyDisks { times, read_blocks, disks }
    }

    /// d: the disks, and the jobs.
    pub fn disks(&self) -> u32 {
        self.disks
    }

    /// d - 1: the disks that a job reads from.
    fn inputs(&self) -> f64 {
        f64::from(self.disks - 1)
    }

    /// (d - 1) b_r r, in milliseconds: the reads that wait at the disk with the backlog.
    fn read_demand(&self) -> f64 {
        self.inputs() * f64::from(self.read_blocks) * self.times.read
    }

    /// f^ = f (d - 1), without unit: how much slower writing is than reading from all input disks at once (section 4).
    pub fn ratio(&self) -> f64 {
        self.times.ratio() * self.inputs()
    }

    /// 1 / (d - 1), without unit: a race is possible if f is above it (section 4, where f^ > 1).
    pub fn critical_ratio(&self) -> f64 {
        1.0 / self.inputs()
    }

    /// Whether a race is possible: f^ > 1 (section 4).
    pub fn can_race(&self) -> bool {
        self.ratio() > 1.0
    }

    /// N* in milliseconds: the fixed point of the recurrence, from which on a write demand grows if f^ > 1 (section 4):
    ///
    /// ```text
    /// N* = (d - 1) b_r r f^ = (d - 1)^2 b_r w
    /// ```
    pub fn threshold(&self) -> f64 {
        self.threshold_blocks() as f64 * self.times.write
    }

    /// N* in blocks: (d - 1)^2 b_r writes of one block each.
    pub fn threshold_blocks(&self) -> u64 {
        let inputs = u64::from(self.disks - 1);
        inputs * inputs * u64::from(self.read_blocks)
    }

    /// t_1, in milliseconds: how long a cycle lasts that begins with the write demand `demand` (section 4):
    ///
    /// ```text
    /// t_1 = N_0 + (d - 1) b_r r
    /// ```
    pub fn cycle(&self, demand: f64) -> f64 {
        demand + self.read_demand()
    }

    /// The write demand after one more depletion cycle, in milliseconds (section 4):
    ///
    /// ```text
    /// N_1 = f^ [ N_0 + (d - 1) b_r r (1 - f^) ]
    /// ```
    pub fn next_demand(&self, demand: f64) -> f64 {
        let ratio = self.ratio();
        ratio * (demand + self.read_demand() * (1.0 - ratio))
    }

    /// The write demands at the beginning and after each cycle, in milliseconds, one from the other. Endless.
    pub fn demands(&self, first: f64) -> impl Iterator<Item = f64> {
        let system = *self;
        std::iter::successors(Some(first), move |&demand| Some(system.next_demand(demand)))
    }

    /// The write demand after `cycles` cycles, in milliseconds, which solves the recurrence of section 4:
    ///
    /// ```text
    /// N_i = N* + f^^i (N_0 - N*)
    /// ```
    pub fn demand_after(&self, first: f64, cycles: u32) -> f64 {
        let threshold = self.threshold();
        threshold + self.ratio().powf(f64::from(cycles)) * (first - threshold)
    }

    /// Whether a write demand, in milliseconds, is the beginning of a race: f^ > 1 and N above N* (section 4).
    pub fn races_from(&self, demand: f64) -> bool {
        self.can_race() && demand > self.threshold()
    }
}
