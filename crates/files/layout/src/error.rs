//! Errors in a request for a layout.
//!
//! Every message names the numbers that do not fit and says what would.

use thiserror::Error;

use crate::extent::FILE_BYTES_MAX;
use crate::limits::{DIMENSIONS_MAX, DISKS_MAX, NODES_MAX};

/// Why there is no such layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Striping needs blocks with something in them.
    #[error("block of {block_bytes} bytes: use 1 to {FILE_BYTES_MAX} bytes, for example 8192")]
    BlockBytes {
        /// The block size asked for, in bytes.
        block_bytes: u64,
    },

    /// Striping needs somewhere to put the blocks.
    #[error("a file of 0 stripes has no place for data: use at least 1, commonly one for each disk")]
    NoStripes,

    /// A stripe number beyond the last.
    #[error("stripe {stripe} of a file that has {stripe_count} (numbered from 0)")]
    NoSuchStripe {
        /// The number asked for.
        stripe: u32,
        /// How many there are.
        stripe_count: u32,
    },

    /// The lengths of the stripes came from a different number of stripes.
    #[error("{given} stripe lengths for {stripe_count} stripes: give one length for each stripe")]
    StripeLengths {
        /// How many lengths were given.
        given: usize,
        /// How many stripes there are.
        stripe_count: u32,
    },

    /// An offset or a size beyond the largest file.
    #[error("the file would be longer than {FILE_BYTES_MAX} bytes, the largest there can be")]
    FileTooLarge,

    /// The number of disks to place stripes on is impossible.
    #[error("{disks} disks on {nodes} nodes: give at least 1 and at most {DISKS_MAX} disks in all")]
    DiskCount {
        /// Disks in all.
        disks: u64,
        /// Nodes in all.
        nodes: usize,
    },

    /// A name that is no access pattern.
    #[error("no pattern is called '{name}': {reason}")]
    UnknownPattern {
        /// The name given.
        name: String,
        /// The defect and the remedy.
        reason: String,
    },

    /// A text that does not give the lengths of two sides.
    #[error("'{text}' does not give two sides: write rows x columns, for example 40x32")]
    NotSides {
        /// The text given.
        text: String,
    },

    /// Records need something in them.
    #[error("records of 0 bytes: use at least 1 byte, for example 8 or 8192")]
    NoRecordBytes,

    /// The file does not consist of whole records.
    #[error(
        "a file of {file_bytes} bytes is not a whole number of {record_bytes}-byte records: \
         make it {} bytes, or choose a record size that divides it",
        (.file_bytes - .file_bytes % .record_bytes).max(*.record_bytes)
    )]
    PartialRecord {
        /// Size of the file in bytes.
        file_bytes: u64,
        /// Size of a record in bytes; never zero.
        record_bytes: u64,
    },

    /// The matrix given is not the file given.
    #[error(
        "a matrix of {rows} rows x {columns} columns is not the {records} records of the file: \
         make rows x columns = {records}, or leave the shape out"
    )]
    ShapeMismatch {
        /// Rows asked for.
        rows: u64,
        /// Columns asked for.
        columns: u64,
        /// Records in the file.
        records: u64,
    },

    /// Arrays have one to a few dimensions.
    #[error("an array of {count} dimensions: use 1 to {DIMENSIONS_MAX}")]
    DimensionCount {
        /// How many were given.
        count: usize,
    },

    /// An array without elements.
    #[error("dimension {dimension} (from 0) has length 0: every dimension needs at least 1 record")]
    EmptyDimension {
        /// Which dimension, counted from 0.
        dimension: usize,
    },

    /// A dimension dealt to no part.
    #[error(
        "dimension {dimension} (from 0) is dealt to 0 parts of the grid: every side of the grid is at least 1"
    )]
    NoParts {
        /// Which dimension, counted from 0.
        dimension: usize,
    },

    /// A dimension dealt out in runs of nothing.
    #[error("dimension {dimension} (from 0) is cyclic in runs of 0 records: plain cyclic has runs of 1")]
    EmptyRun {
        /// Which dimension, counted from 0.
        dimension: usize,
    },

    /// A dimension that is not distributed has more than one part.
    #[error(
        "dimension {dimension} (from 0) is not distributed but has {parts} parts of the grid: \
         make that side of the grid 1, or distribute the dimension as block or cyclic"
    )]
    PartsOfWhole {
        /// Which dimension, counted from 0.
        dimension: usize,
        /// Number of parts.
        parts: u32,
    },

    /// The process grid has more or fewer places than there are nodes.
    #[error(
        "a grid of {places} places for {nodes} compute nodes: \
         make the product of the sides of the grid {nodes}, or leave the grid out"
    )]
    GridMismatch {
        /// Places of the grid: the product of its sides, saturated.
        places: u64,
        /// Number of compute nodes.
        nodes: u32,
    },

    /// A view every node holds whole cannot also be distributed.
    #[error("dimension {dimension} (from 0) is distributed, but every node is to hold all of it")]
    DistributedCopy {
        /// Which dimension, counted from 0.
        dimension: usize,
    },

    /// The number of compute nodes is impossible.
    #[error("{nodes} compute nodes: use 1 to {NODES_MAX}")]
    NodeCount {
        /// The number asked for.
        nodes: u32,
    },
}
