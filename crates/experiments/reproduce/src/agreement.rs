//! Agreement of the simulated with the published values.
//!
//! The error of a cell is (simulated - published) / published. Published values are rounded, mostly to 0.1 MiB/s. So
//! for a value of 0.8, an error of 6 % may be the result of rounding alone.
//!
//! A ratio compares a later variant with the first variant of its table, even if the table has three variants (column
//! *r* of table 16 in the report). A published ratio has a side if it differs from 1 by more than 5 %, however its two
//! values were rounded. A simulated ratio is on the wrong side if it is not on the same side of 1. For example, the
//! ratio of 2.8 and 3.0 is between 0.90 and 0.97; for these values the report itself states 0.95.

use crate::published::{PublishedCell, PublishedTables};
use crate::results::{ReportTable, TableCell};
use plan::Quantity;

/// Minimum distance of a ratio from 1 at which the better variant is certain.
pub const RATIO_MARGIN: f64 = 0.05;

/// A simulated cell, and the published value for comparison.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// Table of the cell.
    pub table: &'a ReportTable,
    /// Simulated cell.
    pub cell: &'a TableCell,
    /// Published cell.
    pub published: PublishedCell,
}

/// Ratio of a variant to the first variant of its table.
#[derive(Clone, Copy, Debug)]
pub struct Ratio<'a> {
    /// Table of the ratio.
    pub table: &'a ReportTable,
    /// Cell of the later variant.
    pub cell: &'a TableCell,
    /// Cell of the first variant.
    pub base: &'a TableCell,
    /// Ratio of the published values, if both are known.
    pub published: Option<f64>,
    /// Ratio that is closest to 1, of all pairs of values that round to the published ones.
    pub published_at_least: Option<f64>,
    /// True if the report marks the two values as significantly different; `None` if it does not state this.
    pub marked: Option<bool>,
}

/// Summary of the errors of some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Number of compared cells, at least one.
    pub cells: usize,
    /// Median of the absolute errors: 0.02 for 2 %.
    pub median: f64,
    /// Error with the largest absolute value, with its sign.
    pub largest: f64,
    /// Shares of cells with errors of at most 2, 5 and 10 %.
    pub within: [f64; 3],
}

/// Bounds of [`Errors::within`].
pub const BOUNDS: [f64; 3] = [0.02, 0.05, 0.10];

impl Compared<'_> {
    /// Returns the relative error: 0.02 if the simulated value is 2 % above the published one.
    pub fn error(&self) -> f64 {
        (self.cell.sample.mean() - self.published.value) / self.published.value
    }
}

impl Ratio<'_> {
    /// Returns the ratio of the simulated means.
    pub fn simulated(&self) -> f64 {
        self.cell.sample.mean() / self.base.sample.mean()
    }

    /// True if the simulated variants differ significantly (paired t-test over the trials, at 95 %); `None` if unknown.
    pub fn differs(&self) -> Option<bool> {
        self.cell.sample.differs_from(&self.base.sample)
    }

    /// True if the published ratio is far enough from 1 to have a side.
    pub fn has_side(&self) -> bool {
        // Tolerate rounding errors: 1.05 may be computed as 1.0500000000000001 or 1.0499999999999998.
        self.published_at_least.is_some_and(|ratio| (ratio - 1.0).abs() > RATIO_MARGIN + 1e-9)
    }

    /// True if the published ratio is clearly on one side of 1 and the simulated ratio is not on the same side.
    pub fn on_wrong_side(&self) -> bool {
        let other_side = |ratio: f64| (ratio - 1.0) * (self.simulated() - 1.0) <= 0.0;
        self.has_side() && self.published.is_some_and(other_side)
    }
}

/// Returns all cells of these tables that have a published value, in order.
pub fn compared<'a>(
    tables: impl IntoIterator<Item = &'a ReportTable>,
    published: &PublishedTables,
) -> Vec<Compared<'a>> {
    let mut compared = Vec::new();
    for table in tables {
        let Some(known) = published.table(table.number) else { continue };
        for cell in table.in_order() {
            if let Some(published) = known.cell(&cell.place()) {
                compared.push(Compared { table, cell, published });
            }
        }
    }
    compared
}

/// Returns all ratios of these tables, in order.
pub fn ratios<'a>(
    tables: impl IntoIterator<Item = &'a ReportTable>,
    published: &PublishedTables,
) -> Vec<Ratio<'a>> {
    let of_table = |table: &'a ReportTable| {
        let cells = table.in_order().into_iter();
        cells.filter_map(|cell| ratio(table, cell, published)).collect::<Vec<_>>()
    };
    tables.into_iter().flat_map(of_table).collect()
}

/// Returns the ratio of this cell to the cell of the first variant; `None` for the first variant itself.
pub fn ratio<'a>(
    table: &'a ReportTable,
    cell: &'a TableCell,
    published: &PublishedTables,
) -> Option<Ratio<'a>> {
    let base = table.base(cell)?;
    let known = |cell: &TableCell| published.table(table.number)?.cell(&cell.place());
    let (later, first) = (known(cell), known(base));
    let both = later.zip(first);
    Some(Ratio {
        table,
        cell,
        base,
        published: both.map(|(later, first)| later.value / first.value),
        published_at_least: both.map(|(later, first)| nearest_to_one(later, first)),
        marked: later.and_then(|later| later.differs),
    })
}

/// Returns the ratio that is closest to 1, of any two values that round to these values.
fn nearest_to_one(later: PublishedCell, first: PublishedCell) -> f64 {
    let least = (later.value - later.rounding) / (first.value + first.rounding);
    let most = (later.value + later.rounding) / (first.value - first.rounding);
    1_f64.clamp(least, most.max(least))
}

/// Summarises the errors of these cells; `None` if there are no cells.
pub fn errors(compared: &[Compared<'_>]) -> Option<Errors> {
    let furthest =
        compared.iter().map(Compared::error).max_by(|one, other| one.abs().total_cmp(&other.abs()));
    let errors: Vec<f64> = compared.iter().map(|cell| cell.error().abs()).collect();
    let share =
        |bound: f64| errors.iter().filter(|&&error| error <= bound).count() as f64 / errors.len() as f64;
    Some(Errors {
        cells: errors.len(),
        median: statistics::median(&errors)?,
        largest: furthest?,
        within: BOUNDS.map(share),
    })
}

/// Returns the cells whose table has this quantity.
pub fn of_quantity<'a>(compared: &[Compared<'a>], quantity: Quantity) -> Vec<Compared<'a>> {
    compared.iter().filter(|compared| compared.table.quantity == quantity).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(value: f64, rounding: f64) -> PublishedCell {
        PublishedCell { value, rounding, differs: None }
    }

    #[test]
    fn rounding_may_bring_a_ratio_nearer_to_one_but_not_past_it() {
        let ratio = |later: f64, first: f64, rounding| {
            nearest_to_one(rounded(later, rounding), rounded(first, rounding))
        };
        assert_eq!(ratio(2.8, 3.0, 0.0), 2.8 / 3.0);
        assert!((ratio(2.8, 3.0, 0.05) - 2.85 / 2.95).abs() < 1e-9);
        assert!((ratio(3.0, 2.8, 0.05) - 2.95 / 2.85).abs() < 1e-9);
        assert_eq!(ratio(0.3, 0.3, 0.05), 1.0);
        assert!((ratio(0.3, 0.4, 0.05) - 1.0).abs() < 1e-9);
    }
}
