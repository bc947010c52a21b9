//! How one dimension of an array is dealt to the parts of a process grid, in the words of
//! High Performance Fortran.
//!
//! ```text
//!   10 records, 4 parts
//!     block       0 0 0 1 1 1 2 2 2 3        runs of ceil(10/4) = 3: the last part is short
//!     cyclic(1)   0 1 2 3 0 1 2 3 0 1
//!     cyclic(2)   0 0 1 1 2 2 3 3 0 0
//!     none        0 0 0 0 0 0 0 0 0 0        one part has it all
//! ```
//!
//! All four are the same deal: runs of records go round the parts like cards. They differ only in the
//! length of a run, and that is all the rest of the crate knows about them.

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;

/// How the records along one dimension are dealt to the parts of that dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Distribution {
    /// Not distributed: one part has them all.
    #[default]
    None,
    /// One run for each part, `ceil(length / parts)` records long; the last parts may be short or empty.
    Block,
    /// Runs of this many records, in turn; HPF's plain `CYCLIC` is `Cyclic(1)`.
    Cyclic(u64),
}

/// One dimension of an array and how it is dealt to one dimension of the process grid.
///
/// Any values are a `Dimension`; [`View`](crate::View) accepts only those that make sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dimension {
    /// Length in records (or rows, or planes).
    pub length: u64,
    /// How they are dealt.
    pub distribution: Distribution,
    /// To how many parts: the length of this side of the process grid.
    pub parts: u32,
}

impl Dimension {
    /// A dimension of which one part has everything.
    pub const fn whole(length: u64) -> Self {
        Dimension { length, distribution: Distribution::None, parts: 1 }
    }

    /// A dimension cut into `parts` equal runs.
    pub const fn block(length: u64, parts: u32) -> Self {
        Dimension { length, distribution: Distribution::Block, parts }
    }

    /// A dimension dealt record by record.
    pub const fn cyclic(length: u64, parts: u32) -> Self {
        Dimension { length, distribution: Distribution::Cyclic(1), parts }
    }

    /// The length of a run in records: how many in a row go to the same part; `parts` is not zero.
    pub(crate) fn run(&self) -> u64 {
        match self.distribution {
            _ if self.parts == 1 => self.length,
            Distribution::None => self.length,
            Distribution::Block => self.length.div_ceil(u64::from(self.parts)),
            Distribution::Cyclic(run) => run.min(self.length),
        }
    }

    /// Checks the `dimension`-th dimension by itself.
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
