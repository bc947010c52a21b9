//! The seam (being written).
mod time;
pub use time::{Duration, Instant};
