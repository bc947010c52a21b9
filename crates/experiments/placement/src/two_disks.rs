//! Two jobs that copy two disks onto each other (section 3 of the report).
//!
//! A *cycle* is the time in which the disk with the longer queue, D_1, serves everything that stood in its queue at
//! the beginning. The *write demand* N is the time that the writes in that queue take: write time per block times
//! pending write blocks. The analysis takes the times of reads and writes as fixed, and assumes that the other job's
//! writes of a cycle are served within it.

use crate::BlockTimes;

/// Two disks and two jobs: each reads from one disk, b_r blocks at a time, and writes to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoDisks {
    /// The times per block.
    pub times: BlockTimes,
    /// b_r: the blocks of a read.
    pub read_blocks: u32,
}

impl TwoDisks {
    /// w b_r, in milliseconds: the write demand that one read makes, and the fixed point of the recurrence (section
    /// 3.2). With f > 1 a demand above it grows without bound.
    pub fn threshold(&self) -> f64 {
        self.times.write * f64::from(self.read_blocks)
    }

    /// The write demand after one more cycle, in milliseconds (equation 1.1):
    ///
    /// ```text
    /// N_1 = f N_0 + w b_r (1 - f)
    /// ```
    pub fn next_demand(&self, demand: f64) -> f64 {
        let f = self.times.ratio();
        f * demand + self.threshold() * (1.0 - f)
    }

    /// The write demands at the beginning and after each cycle, in milliseconds, one from the other. Endless.
    pub fn demands(&self, first: f64) -> impl Iterator<Item = f64> {
        let system = *self;
        std::iter::successors(Some(first), move |&demand| Some(system.next_demand(demand)))
    }

    /// The write demand after `cycles` cycles, in milliseconds (equation 1.4):
    ///
    /// ```text
    /// N_i = w b_r + f^i (N_0 - w b_r)
    /// ```
    pub fn demand_after(&self, first: f64, cycles: u32) -> f64 {
        let threshold = self.threshold();
        threshold + self.times.ratio().powf(f64::from(cycles)) * (first - threshold)
    }

    /// Whether a race is possible: f > 1 (section 3.2).
    pub fn can_race(&self) -> bool {
        self.times.ratio() > 1.0
    }

    /// Whether a write demand, in milliseconds, is the beginning of a race: f > 1 and N above w b_r (equation 1.3).
    pub fn races_from(&self, demand: f64) -> bool {
        self.can_race() && demand > self.threshold()
    }

    /// How fast pending writes grow while a race lasts, in blocks per millisecond: one disk does nothing but read for
    /// the job that is ahead, the other nothing but write for it (section 3.2, figure 4).
    ///
    /// ```text
    /// 1 / r - 1 / w
    /// ```
    ///
    /// `None` if no race is possible.
    pub fn growth(&self) -> Option<f64> {
        self.can_race().then(|| 1.0 / self.times.read - 1.0 / self.times.write)
    }
}
