//! Output of results.
//!
//! - `row_format.rs`: rows and reports, as a table, CSV or JSON
//! - `plan_lines.rs`: results of plans; `pattern_picture.rs`: owners of the records of a file
//! - `date.rs`: dates

pub(crate) mod date;
pub(crate) mod pattern_picture;
pub(crate) mod plan_lines;
pub(crate) mod row_format;
