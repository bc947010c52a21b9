//! Distribution of one dimension of an array over the parts of a process grid, in the terms of High Performance
//! Fortran.
//!
//! ```text
//!   10 records, 4 parts
//!     block       0 0 0 1 1 1 2 2 2 3        runs of ceil(10/4) = 3: the last part is short
//!     cyclic(1)   0 1 2 3 0 1 2 3 0 1
//!     cyclic(2)   0 0 1 1 2 2 3 3 0 0
//!     none        0 0 0 0 0 0 0 0 0 0        one part has all records
//! ```
//!
//! All four work alike: runs of records are dealt to the parts in turn, like cards. They differ only in the length of a
//! run, and the rest of the crate knows only that length.

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;

/// Distribution of the records along one dimension over the parts of that dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Distribution {
    /// Not distributed: one part has all records.
    #[default]
    None,
    /// One run for each part, `ceil(length / parts)` records long; the last parts may be short or empty.
    Block,
    /// Runs of this many records, assigned to the parts in turn; HPF's plain `CYCLIC` is `Cyclic(1)`.
    Cyclic(u64),
}

/// One dimension of an array and its distribution over one dimension of the process grid.
///
/// A `Dimension` can hold any values; [`View`](crate::View) rejects inconsistent ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dimension {
    /// Length in records (or rows, or planes).
    pub length: u64,
    /// Distribution of the records.
    pub distribution: Distribution,
    /// Number of parts: the length of this side of the process grid.
    pub parts: u32,
}

impl Dimension {
    /// Returns a dimension with a single part.
    pub const fn whole(length: u64) -> Self {
        Dimension { length, distribution: Distribution::None, parts: 1 }
    }

    /// Returns a dimension divided into `parts` equal runs.
    pub const fn block(length: u64, parts: u32) -> Self {
        Dimension { length, distribution: Distribution::Block, parts }
    }

    /// Returns a dimension whose records are assigned to the parts one by one, in turn.
    pub const fn cyclic(length: u64, parts: u32) -> Self {
        Dimension { length, distribution: Distribution::Cyclic(1), parts }
    }

    /// Returns the length of a run: the number of consecutive records of a part. `parts` must not be zero.
    pub(crate) fn run(&self) -> u64 {
        match self.distribution {
            _ if self.parts == 1 => self.length,
            Distribution::None => self.length,
            Distribution::Block => self.length.div_ceil(u64::from(self.parts)),
            Distribution::Cyclic(run) => run.min(self.length),
        }
    }

    /// Checks the dimension with index `dimension`, without regard to the others.
    pub(crate) fn check(&self, dimension: usize) -> Result<(), LayoutError> {
        let parts = self.parts;
        if self.length == 0 {
            return Err(LayoutError::EmptyDimension { dimension });
        }
        match self.distribution {
            _ if parts == 0 => Err(LayoutError::NoParts { dimension }),
            Distribution::None if parts > 1 => Err(LayoutError::PartsOfWhole { dimension, parts }),
            Distribution::Cyclic(0) => Err(LayoutError::EmptyRun { dimension }),
            _ => Ok(()),
        }
    }
}
