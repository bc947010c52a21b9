//! Errors in a request for a layout.
//!
//! Every message names the inconsistent numbers and the remedy.

use thiserror::Error;

use crate::extent::FILE_BYTES_MAX;
use crate::limits::{DIMENSIONS_MAX, DISKS_MAX, NODES_MAX};

/// The reason why a layout is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Striping needs blocks of at least one byte.
    #[error("block of {block_bytes} bytes: use 1 to {FILE_BYTES_MAX} bytes, for example 8192")]
    BlockBytes {
        /// Requested block size in bytes.
        block_bytes: u64,
    },

    /// Striping needs at least one stripe.
    #[error("a file with 0 stripes cannot store data: use at least 1 stripe, commonly one for each disk")]
    NoStripes,

    /// A stripe number beyond the last.
    #[error("there is no stripe {stripe}: the file has {stripe_count} stripes, numbered from 0")]
    NoSuchStripe {
        /// Requested stripe number.
        stripe: u32,
        /// Number of stripes.
        stripe_count: u32,
    },

    /// The number of stripe lengths differs from the number of stripes.
    #[error("{given} stripe lengths for {stripe_count} stripes: give one length for each stripe")]
    StripeLengths {
        /// Number of lengths given.
        given: usize,
        /// Number of stripes.
        stripe_count: u32,
    },

    /// An offset or a size beyond the largest file.
    #[error("the file would be longer than {FILE_BYTES_MAX} bytes, the maximum")]
    FileTooLarge,

    /// The number of disks for the stripes is zero or too large.
    #[error("{disks} disks on {nodes} nodes: give at least 1 and at most {DISKS_MAX} disks in all")]
    DiskCount {
        /// Total number of disks.
        disks: u64,
        /// Total number of nodes.
        nodes: usize,
    },

    /// A name that is not an access pattern.
    #[error("no pattern is called '{name}': {reason}")]
    UnknownPattern {
        /// The given name.
        name: String,
        /// The defect and the remedy.
        reason: String,
    },

    /// A text that does not give the numbers of rows and columns.
    #[error("'{text}' does not give rows and columns: write rows x columns, for example 40x32")]
    NotSides {
        /// The given text.
        text: String,
    },

    /// Records need at least one byte.
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

    /// The matrix does not have as many elements as the file has records.
    #[error(
        "a matrix of {rows} rows x {columns} columns does not fit the {records} records of the file: \
         make rows x columns = {records}, or leave the shape out"
    )]
    ShapeMismatch {
        /// Requested number of rows.
        rows: u64,
        /// Requested number of columns.
        columns: u64,
        /// Number of records in the file.
        records: u64,
    },

    /// An array has 1 to [`DIMENSIONS_MAX`] dimensions.
    #[error("an array of {count} dimensions: use 1 to {DIMENSIONS_MAX}")]
    DimensionCount {
        /// Number of dimensions given.
        count: usize,
    },

    /// An array without elements.
    #[error("dimension {dimension} (from 0) has length 0: every dimension needs at least 1 record")]
    EmptyDimension {
        /// Index of the dimension, from 0.
        dimension: usize,
    },

    /// A dimension that is divided into 0 parts.
    #[error("dimension {dimension} (from 0) is divided into 0 parts: make every side of the grid at least 1")]
    NoParts {
        /// Index of the dimension, from 0.
        dimension: usize,
    },

    /// A cyclic dimension with empty runs.
    #[error("dimension {dimension} (from 0) is cyclic in runs of 0 records: use runs of at least 1 record")]
    EmptyRun {
        /// Index of the dimension, from 0.
        dimension: usize,
    },

    /// A dimension that is not distributed has more than one part.
    #[error(
        "dimension {dimension} (from 0) is not distributed, but the grid divides it into {parts} parts: \
         make its side of the grid 1, or distribute the dimension as block or cyclic"
    )]
    PartsOfWhole {
        /// Index of the dimension, from 0.
        dimension: usize,
        /// Number of parts.
        parts: u32,
    },

    /// The number of places in the process grid differs from the number of nodes.
    #[error(
        "a grid of {places} places does not fit {nodes} compute nodes: \
         make the product of the sides of the grid {nodes}, or leave the grid out"
    )]
    GridMismatch {
        /// Number of places in the grid: the product of its sides, saturated.
        places: u64,
        /// Number of compute nodes.
        nodes: u32,
    },

    /// A dimension is distributed in a view of which every node holds all.
    #[error(
        "dimension {dimension} (from 0) is distributed, but every node is to hold the whole array: \
         do not distribute it"
    )]
    DistributedCopy {
        /// Index of the dimension, from 0.
        dimension: usize,
    },

    /// The number of compute nodes is zero or too large.
    #[error("{nodes} compute nodes: use 1 to {NODES_MAX}")]
    NodeCount {
        /// Requested number of nodes.
        nodes: u32,
    },
}
