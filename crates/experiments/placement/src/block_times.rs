//! Time to read or write a block, as a share of a larger request.

/// Mean time to read and to write a block as part of a job's requests, in milliseconds: r and w of the report (section
/// 2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockTimes {
    /// r: time to read a block.
    pub read: f64,
    /// w: time to write a block.
    pub write: f64,
}

impl BlockTimes {
    /// Computes the times for a disk without seeks, which waits for the rotation once in each request of b consecutive
    /// blocks:
    ///
    /// ```text
    /// r = (latency + transfer * b_r) / b_r        w = (latency + transfer * b_w) / b_w
    /// ```
    ///
    /// `latency` is the mean rotational latency and `transfer` the time of a block under the head, both in milliseconds
    /// (8.33 and 1.024 in section 2.1). b_r and b_w are the blocking factors, in blocks.
    ///
    /// # Panics
    /// If a blocking factor is 0.
    pub fn without_seeks(latency: f64, transfer: f64, read_blocks: u32, write_blocks: u32) -> Self {
        assert!(read_blocks > 0 && write_blocks > 0, "requests of {read_blocks} and {write_blocks} blocks");
        let per_block = |blocks: u32| latency / f64::from(blocks) + transfer;
        BlockTimes { read: per_block(read_blocks), write: per_block(write_blocks) }
    }

    /// Returns f = w / r, without unit: the time of a write relative to a read (section 3.2).
    pub fn ratio(&self) -> f64 {
        self.write / self.read
    }

    /// Returns N (r + w) in milliseconds: the minimum time that a disk needs to read `blocks` blocks and to write the
    /// same number (section 3). This is a lower bound for copying two disks onto each other.
    pub fn bound(&self, blocks: f64) -> f64 {
        blocks * (self.read + self.write)
    }
}
