//! Errors in the description of a selection.
//!
//! Every message names the inconsistent numbers and the remedy.

use thiserror::Error;

use crate::error::LayoutError;
use crate::extent::FILE_BYTES_MAX;

/// Maximum depth of nested repetitions and lists.
pub const SELECTION_LEVELS_MAX: u32 = 64;

/// Maximum number of runs, repetitions and lists in a selection that is sent: about ten megabytes.
pub const SELECTION_NODES_MAX: usize = 1 << 18;

/// The reason why a selection is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A part of a list begins before the end of the previous part.
    #[error(
        "part {part} (from 0) begins at byte {offset}, and the parts before it end at byte {end}: \
         give parts in ascending order that do not overlap"
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
        "{bytes} bytes from first to last, repeated every {stride} bytes, overlap: \
         make the stride at least {bytes} bytes"
    )]
    RepetitionOverlaps {
        /// Length of the repeated selection from its first to its last byte, in bytes.
        bytes: u64,
        /// Stride in bytes.
        stride: u64,
    },

    /// A byte beyond the largest file.
    #[error("the selection would end beyond byte {FILE_BYTES_MAX}, where the largest file ends")]
    TooLong,

    /// Too many levels of nesting.
    #[error(
        "repetitions and lists nested more than {SELECTION_LEVELS_MAX} deep: describe the selection with fewer levels"
    )]
    TooDeep,

    /// Too many nodes to send.
    #[error(
        "a selection of {nodes} runs, repetitions and lists: at most {SELECTION_NODES_MAX} travel at once; \
         select it extent by extent"
    )]
    TooManyNodes {
        /// Number of nodes.
        nodes: usize,
    },

    /// A part of a side that is not within the side.
    #[error(
        "side {side} (from 0) has {length} indices, and {count} from {first} on are wanted: stay within the side"
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
    #[error("node {node} of a grid of {places} places (numbered from 0)")]
    NoSuchNode {
        /// Requested node number.
        node: u32,
        /// Number of places in the grid: the product of its sides, saturated.
        places: u64,
    },

    /// A received message that is not a valid selection.
    #[error("node {node} (from 0) of an encoded selection {defect}")]
    Encoding {
        /// Index of the node, from 0.
        node: usize,
        /// The defect.
        defect: &'static str,
    },

    /// A text that is not a selection.
    #[error(
        "at byte {at} (from 0) of a selection {expected} is expected, as in 16:8 or 0:(8+24)4000 or 0:[8,92,4]"
    )]
    Text {
        /// Position in the text, in bytes.
        at: usize,
        /// The expected text.
        expected: &'static str,
    },

    /// The array is impossible.
    #[error(transparent)]
    Array(#[from] LayoutError),
}
