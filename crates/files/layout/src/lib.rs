//! Computes where each byte of a parallel file is stored, and which memory each byte belongs to.
//!
//! The crate is pure arithmetic: it does not block, allocate in a loop, use a clock or access data. Every result
//! depends on a few numbers only, so all nodes compute the same results, on the real and on the simulated machine.
//!
//! ```text
//!              memory of the compute nodes
//!        view  |  chunks, pieces                 view.rs, chunks.rs, pieces.rs; named by pattern.rs
//!   selection  |  chunks of one process          selection/
//!            the file
//!    striping  |  requests, one per block        striping.rs
//!            the stripes
//!   placement  |  one stripe to a disk           placement.rs
//!              disks of the I/O nodes
//! ```
//!
//! Start with [`Striping`] for the lower half and with [`Pattern`] for the upper half; [`Selection`] is for accesses
//! that no pattern describes.
//!
//! All offsets and lengths are in bytes unless a name says otherwise, and no file is longer than [`FILE_BYTES_MAX`], so
//! the sum of any two offsets or lengths fits in 64 bits.

mod axis;
mod chunks;
mod distribution;
mod error;
mod extent;
mod limits;
mod pattern;
mod pieces;
mod placement;
mod selection;
mod shape;
mod striping;
mod view;

pub use chunks::{Chunk, Chunks};
pub use distribution::{Dimension, Distribution};
pub use error::LayoutError;
pub use extent::{Extent, FILE_BYTES_MAX};
pub use limits::{DIMENSIONS_MAX, DISKS_MAX, NODES_MAX};
pub use pattern::{Operation, Pattern, Problem};
pub use pieces::{Piece, Pieces};
pub use placement::{DiskPlace, stripe_disks};
pub use selection::{
    ArraySide, SELECTION_LEVELS_MAX, SELECTION_NODES_MAX, SelectedChunks, Selection, SelectionError,
};
pub use shape::{Grid, Shape};
pub use striping::{BlockPlace, BlockRequest, BlockRequests, StripePlace, Striping};
pub use view::View;
