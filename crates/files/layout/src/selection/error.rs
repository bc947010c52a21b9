//! Errors in the description of a selection.
//!
//! Every message names the numbers that do not fit and says what would.

use thiserror::Error;

use crate::error::LayoutError;
use crate::extent::FILE_BYTES_MAX;

/// The most levels of repetitions and lists within each other.
pub const SELECTION_LEVELS_MAX: u32 = 64;

/// The most runs, repetitions and lists of a selection that travels: some ten megabytes.
pub const SELECTION_NODES_MAX: usize = 1 << 18;

/// Why there is no such selection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A part of a list begins before the end of the one before it.
    #[error(
        "part {part} (from 0) begins at byte {offset}, and the parts before it end at byte {end}: \
         give parts in ascending order that do not overlap"
    )]
    PartOverlaps {
        /// Which part, counted from 0.
        part: usize,
        /// Where it begins, in bytes.
        offset: u64,
        /// Where the parts before it end, in bytes.
        end: u64,
    },

    /// Repetitions come closer than what is repeated is long.
    #[error(
        "{bytes} bytes from first to last, repeated every {stride} bytes, overlap: \
         make the stride at least {bytes} bytes"
    )]
    RepetitionOverlaps {
        /// From the first selected byte to the last, in bytes.
        bytes: u64,
        /// From one repetition to the next, in bytes.
        stride: u64,
    },

    /// A byte beyond the largest file.
    #[error("the selection would end beyond byte {FILE_BYTES_MAX}, where the largest file ends")]
    TooLong,

    /// Too many levels.
    #[error(
        "repetitions and lists nested more than {SELECTION_LEVELS_MAX} deep: describe the selection with fewer levels"
    )]
    TooDeep,

    /// Too many nodes to travel.
    #[error(
        "a selection of {nodes} runs, repetitions and lists: at most {SELECTION_NODES_MAX} travel at once; \
         select it extent by extent"
    )]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
    },

    /// Part of a side that is not within it.
    #[error(
        "side {side} (from 0) has {length} indices, and {count} from {first} on are wanted: stay within the side"
    )]
    OutsideSide {
        /// Which side, counted from 0.
        side: usize,
        /// Indices of the side.
        length: u64,
        /// The first index wanted.
        first: u64,
        /// How many are wanted.
        count: u64,
    },

    /// A node that has no place in the grid.
    #[error("node {node} of a grid of {places} places (numbered from 0)")]
    NoSuchNode {
        /// The number asked for.
        node: u32,
        /// Places of the grid: the product of its sides, saturated.
        places: u64,
    },

    /// What arrived is not what a selection looks like when it is sent.
    #[error("node {node} (from 0) of an encoded selection {defect}")]
    Encoding {
        /// Which node, counted from 0.
        node: usize,
        /// What is wrong with it.
        defect: &'static str,
    },

    /// A text is no selection.
    #[error(
        "at byte {at} (from 0) of a selection {expected} is expected, as in 16:8 or 0:(8+24)4000 or 0:[8,92,4]"
    )]
    Text {
        /// Where in the text, in bytes.
        at: usize,
        /// What should be there.
        expected: &'static str,
    },

    /// The array itself is impossible.
    #[error(transparent)]
    Array(#[from] LayoutError),
}
