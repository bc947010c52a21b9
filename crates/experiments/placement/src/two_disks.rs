//! Two jobs that copy two disks onto each other (section 3 of the report).
//!
//! D_1 is the disk with the longer queue. A *cycle* is the time in which D_1 serves all requests that are in its queue
//! at the start of the cycle. The *write demand* N is the service time of the writes in this queue: the write time per
//! block times the number of pending write blocks. The analysis assumes fixed times of reads and writes. It also
//! assumes that the writes that the other job makes in a cycle are served within this cycle.

use crate::BlockTimes;

/// Two disks and two jobs: each job reads from one disk, b_r blocks at a time, and writes to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoDisks {
    /// Times per block.
    pub times: BlockTimes,
    /// b_r: number of blocks of a read.
    pub read_blocks: u32,
}

impl TwoDisks {
    /// Returns w b_r in milliseconds: the write demand that one read creates, and the fixed point of the recurrence
    /// (section 3.2). If f > 1, a larger demand grows without bound.
    pub fn threshold(&self) -> f64 {
        self.times.write * f64::from(self.read_blocks)
    }

    /// Returns the write demand after one more cycle, in milliseconds (equation 1.1):
    ///
    /// ```text
    /// N_1 = f N_0 + w b_r (1 - f)
    /// ```
    pub fn next_demand(&self, demand: f64) -> f64 {
        let f = self.times.ratio();
        f * demand + self.threshold() * (1.0 - f)
    }

    /// Iterates over the write demands in milliseconds: the first one, and then the demand after each cycle. The
    /// sequence is endless.
    pub fn demands(&self, first: f64) -> impl Iterator<Item = f64> {
        let system = *self;
        std::iter::successors(Some(first), move |&demand| Some(system.next_demand(demand)))
    }

    /// Returns the write demand after `cycles` cycles, in milliseconds (equation 1.4):
    ///
    /// ```text
    /// N_i = w b_r + f^i (N_0 - w b_r)
    /// ```
    pub fn demand_after(&self, first: f64, cycles: u32) -> f64 {
        let threshold = self.threshold();
        threshold + self.times.ratio().powf(f64::from(cycles)) * (first - threshold)
    }

    /// True if a race is possible: f > 1 (section 3.2).
    pub fn can_race(&self) -> bool {
        self.times.ratio() > 1.0
    }

    /// True if a race begins at this write demand, in milliseconds: f > 1 and the demand is above w b_r (equation 1.3).
    pub fn races_from(&self, demand: f64) -> bool {
        self.can_race() && demand > self.threshold()
    }

    /// Returns the growth rate of pending writes during a race, in blocks per millisecond. In a race one disk only
    /// reads for the leading job, and the other only writes for it (section 3.2, figure 4).
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
