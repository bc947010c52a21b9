//! The page of a report: agreement and differences, every table and figure, and the provenance.
//!
//! The crate `page` provides the frame, the style and the charts.
//!
//! - `summary.rs`: the agreement in words, and the cells with the largest errors.
//! - `table.rs`: a table with simulated and published values next to each other.
//! - `number.rs`: numbers formatted for people.

pub(crate) mod number;
mod summary;
mod table;

use maud::{Markup, html};
use page::Figure;

use crate::published::PublishedTables;
use crate::results::ReportTable;

/// Contents of the page.
#[derive(Debug)]
pub struct Report<'a> {
    /// Name of the study, such as `starfish-3.0`.
    pub study: &'a str,
    /// Tables, in order.
    pub tables: &'a [ReportTable],
    /// Figures, in order.
    pub figures: &'a [Figure],
    /// Published values for comparison.
    pub published: &'a PublishedTables,
    /// Origin of the results.
    pub provenance: Provenance,
}

/// Origin of the results: enough to reproduce them.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Command that produces the results.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Distinct seeds of the plans' random numbers.
    pub seeds: Vec<u64>,
    /// Simulated machines.
    pub machines: Vec<String>,
    /// Smallest and largest number of trials of a cell.
    pub trials: (usize, usize),
}

impl Report<'_> {
    /// Returns the page as the text of an HTML file.
    pub fn html(&self) -> String {
        let title = format!("{}, reproduced", self.study);
        let body = html! {
            header {
                h1 { (title) }
                p {
                    "Simulated by starfish " (self.provenance.version)
                    @if !self.tables.is_empty() { ", next to the published values" } "."
                }
            }
            (self.contents())
            main {
                @if !self.tables.is_empty() { (summary::summary(self)) }
                (self.all_tables())
                (self.all_figures())
                (self.how_made())
            }
        };
        page::document(&title, &body)
    }

    fn contents(&self) -> Markup {
        html! {
            nav aria-label="Contents" {
                @if !self.tables.is_empty() { a href="#summary" { "Summary" } }
                @for table in self.tables {
                    @let predicted = self.published.table(table.number).is_none();
                    a href={ "#table-" (table.number) } class=[predicted.then_some("predicted")] {
                        "Table " (table.number)
                    }
                }
                @for figure in self.figures {
                    a href={ "#figure-" (figure.number) } class="predicted" { "Figure " (figure.number) }
                }
                a href="#made" { "How it was made" }
            }
        }
    }

    fn all_tables(&self) -> Markup {
        html! {
            @if !self.tables.is_empty() {
                section {
                    h2 #tables { "Tables" }
                    (table::legend())
                    @for table in self.tables { (table::table(table, self.published)) }
                }
            }
        }
    }

    fn all_figures(&self) -> Markup {
        html! {
            @if !self.figures.is_empty() {
                section {
                    h2 #figures { "Figures" }
                    p {
                        "The report prints its figures without numbers, so there is nothing to compare these with "
                        "cell by cell. Bars are 95\u{a0}% confidence intervals of the mean."
                    }
                    @for figure in self.figures { (page::figure(figure)) }
                }
            }
        }
    }

    fn how_made(&self) -> Markup {
        let Provenance { command, version, seeds, machines, trials: (fewest, most) } = &self.provenance;
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        html! {
            section #made {
                h2 { "How it was made" }
                dl {
                    dt { "Command" } dd { code { (command) } }
                    dt { "Program" } dd { "starfish " (version) }
                    dt { "Machine" } dd { (machines.join(", ")) }
                    dt { "Seed" } dd { (seeds.join(", ")) }
                    dt { "Trials of each cell" }
                    dd { (fewest) @if most != fewest { " to " (most) } }
                }
                p {
                    "A simulation depends on its plan and its seed and on nothing else: the same command with the "
                    "same version makes the same page, byte by byte."
                }
                ul {
                    li {
                        "MiB is 2" sup { "20" } " bytes, what the report calls MB: its figures are in MiB/s, too. Throughput is "
                        "the file's bytes in the time of the whole access, "
                        "with all data on the media after a write. For " code { "ra" }
                        " it counts the bytes delivered to all compute nodes, as the report's tables do."
                    }
                    @if !self.tables.is_empty() { (of_tables()) }
                }
            }
        }
    }
}

/// Returns notes on the origin of the tables and on their comparison.
fn of_tables() -> Markup {
    html! {
        li {
            "Two variants differ significantly if Student's two-sided t-test for paired samples says so at "
            "95\u{a0}%: trials of the same number have the same seed, and so the same disks. Where "
            "the differences do not vary, if they are not 0. Every later variant is compared with the first "
            "of its table, also where there are three."
        }
        li {
            "Predicted tables are those whose published values are not part of this project. Nothing was "
            "fitted to them. All other published values were known when the machine's costs were "
            "calibrated; its description marks which costs, and on which cells."
        }
        li { "The same values with more digits, and for programs, are in " code { "tables.csv" } "." }
    }
}
