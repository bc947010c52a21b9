//! Errors in the description of a selection.
//!
//! Every message names the inconsistent numbers and the remedy.

use thiserror::Error;

use crate::error::LayoutError;
use crate::extent::FILE_BYTES_MAX;

/// Maximum depth of nested repetitions and lists.
pub const SELECTION_LEVELS_MAX: u32 = 64;

/// Maximum number of runs, repetitions and lists in a selection that is sent in a message. The largest message has
/// about ten megabytes.
pub const SELECTION_NODES_MAX: usize = 1 << 18;

/// The reason why a selection is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A part of a list begins before the end of the previous part.
    #[error(
        "part {part} (from 0) begins at byte {offset}, but the parts before it end at byte {end}: \
         give the parts in ascending order, without overlaps"
    )]
    PartOverlaps {
        /// Index of the part, from 0.
        part: usize,
        /// Start of the part, in bytes.
        offset: u64,
        /// End of the parts before it, in bytes.
        end: u64,
    },

    /// The stride is shorter than the repeated selection.
    #[error(
        "a selection that spans {bytes} bytes overlaps itself if it is repeated every {stride} bytes: \
         make the stride at least {bytes} bytes"
    )]
    RepetitionOverlaps {
        /// Length of the repeated selection from its first to its last byte, in bytes.
        bytes: u64,
        /// Stride in bytes.
        stride: u64,
    },

    /// A selected byte is beyond the end of the largest possible file.
    #[error("the selection would end beyond byte {FILE_BYTES_MAX}, the end of the largest possible file")]
    TooLong,

    /// Too many levels of nesting.
    #[error("repetitions and lists are nested more than {SELECTION_LEVELS_MAX} deep: use fewer levels")]
    TooDeep,

    /// The selection has too many runs, repetitions and lists for one message.
    #[error(
        "the selection has {nodes} runs, repetitions and lists, but a message holds at most {SELECTION_NODES_MAX}: \
         request its extents one by one"
    )]
    TooManyNodes {
        /// Number of runs, repetitions and lists.
        nodes: usize,
    },

    /// Requested indices beyond the end of a side of the array.
    #[error(
        "side {side} (from 0) has {length} indices, but {count} starting at {first} are requested: \
         request only indices below {length}"
    )]
    OutsideSide {
        /// Index of the side, from 0.
        side: usize,
        /// Number of indices of the side.
        length: u64,
        /// First requested index.
        first: u64,
        /// Number of requested indices.
        count: u64,
    },

    /// A node number outside the grid.
    #[error("there is no node {node} in a grid of {places} places: nodes are numbered from 0")]
    NoSuchNode {
        /// Requested node number.
        node: u32,
        /// Number of places in the grid: the product of its sides, saturated.
        places: u64,
    },

    /// A received message that is not a valid selection.
    #[error("invalid encoded selection: its node {node} (from 0) {defect}")]
    Encoding {
        /// Index of the run, repetition or list in the message, from 0.
        node: usize,
        /// The defect.
        defect: &'static str,
    },

    /// A text that is not a selection.
    #[error(
        "expected {expected} at byte {at} (from 0) of the selection, as in 16:8 or 0:(8+24)4000 or 0:[8,92,4]"
    )]
    Text {
        /// Position in the text, in bytes.
        at: usize,
        /// The expected text.
        expected: &'static str,
    },

    /// The shape or distribution of the array is invalid.
    #[error(transparent)]
    Array(#[from] LayoutError),
}
