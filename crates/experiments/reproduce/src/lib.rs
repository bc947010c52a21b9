//! Makes of simulated results what one wants to look at: a table to compare by program, a page to read.
//!
//! ```text
//!                 .-> results of its plans  ->  ReportTable -------.
//!   files: Study -|                                                |-->  tables_csv: DIR/tables.csv
//!                 '-> published values      ->  PublishedTables ---'     Report:     DIR/report.html
//! ```
//!
//! Nothing here simulates or reads files, and nothing depends on anything but its arguments: the same results give the
//! same files, byte by byte. No date and no time of the host stands in them.
//!
//! - `study.rs`: plans and published values that belong together
//! - `results.rs`: what was simulated
//! - `published.rs`: what the report printed
//! - `agreement.rs`: how well the two agree; `statements.rs`: likewise of what a report says in words
//! - `tables_csv.rs`, `report/`: the two files
//! - `cells_csv.rs`, `plan_page/`: the same for a study of figures only that tells more than throughput, cell by
//!   cell; the page also for plans that are no study
//! - `placement/`: the study of jobs that share disks: its plans, its file and its page

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
