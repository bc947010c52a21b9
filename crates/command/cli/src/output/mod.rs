//! Output of results.
//!
//! - `row_format.rs`: rows and reports, as a table, CSV or JSON
//! - `plan_lines.rs`: results of plans; `pattern_picture.rs`: pictures of access patterns
//! - `date.rs`: dates

pub(crate) mod date;
pub(crate) mod pattern_picture;
pub(crate) mod plan_lines;
pub(crate) mod row_format;
