//! Converts simulated results to files: a table for programs, and a page for people.
//!
//! ```text
//!                 .-> results of its plans  ->  ReportTable -------.
//!   files: Study -|                                                |-->  tables_csv: DIR/tables.csv
//!                 '-> published values      ->  PublishedTables ---'     Report:     DIR/report.html
//! ```
//!
//! This crate neither simulates nor reads files. The output depends only on the arguments: equal results produce equal
//! files, byte by byte. The output contains no date or time.
//!
//! - `study.rs`: plans, and the published values for comparison.
//! - `results.rs`: simulated tables.
//! - `published.rs`: values that the report printed.
//! - `agreement.rs`: agreement of simulated and published values; `statements.rs`: agreement with a report's statements
//!   in words.
//! - `tables_csv.rs`, `report/`: the two files of a study with tables.
//! - `cells_csv.rs`, `plan_page/`: the two files of a study that has only figures and several measures for each cell.
//!   `plan_page/` also produces pages of plans that belong to no study.
//! - `placement/`: the study of jobs that share disks: its plans, its file and its page.

mod agreement;
mod cells_csv;
mod placement;
mod plan_page;
mod published;
mod report;
mod results;
mod statements;
mod study;
mod tables_csv;

pub use agreement::{
    BOUNDS, Compared, Errors, RATIO_MARGIN, Ratio, compared, errors, of_quantity, ratio, ratios,
};
pub use cells_csv::cells_csv;
pub use placement::{PlacementResults, PlacementStudy};
pub use plan_page::{PageKind, PageResult, plan_page};
pub use published::{COLUMNS, PublishedCell, PublishedError, PublishedTable, PublishedTables};
pub use report::{Provenance, Report};
pub use results::{CellPlace, ReportTable, TableCell};
pub use statements::{Standing, Statement, statements_table};
pub use study::{Form, Study, StudyError, TextFile};
pub use tables_csv::tables_csv;
