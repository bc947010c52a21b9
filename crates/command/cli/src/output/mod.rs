//! How results are told.
//!
//! - `row_format.rs`: rows and reports, as a table, CSV or JSON
//! - `plan_lines.rs`: results of plans; `pattern_picture.rs`: who has which record of a file
//! - `date.rs`, `durations.rs`: dates and lengths of time, these also as options take them

pub(crate) mod date;
pub(crate) mod durations;
pub(crate) mod pattern_picture;
pub(crate) mod plan_lines;
pub(crate) mod row_format;
