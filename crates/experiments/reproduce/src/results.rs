//! Simulated tables of a study, cell by cell.

use std::fmt;

use plan::Quantity;
use statistics::Sample;

/// A table of the study.
#[derive(Clone, Debug)]
pub struct ReportTable {
    /// Number of the table in the report.
    pub number: u32,
    /// Title, one line.
    pub title: String,
    /// Measured system: `tpfs`, `ddio`, `compare`, ...
    pub system: String,
    /// Layout of the file on the disks: `contiguous` or `random`.
    pub layout: String,
    /// Quantity of the values.
    pub quantity: Quantity,
    /// Cells in any order. The table shows variants and patterns in the order of their first occurrence.
    pub cells: Vec<TableCell>,
}

/// A value of a table, as a sample of several trials.
#[derive(Clone, Debug)]
pub struct TableCell {
    /// Variant of the cell. The table compares its variants.
    pub variant: String,
    /// Access pattern.
    pub pattern: String,
    /// Size of a record in bytes.
    pub record_bytes: u64,
    /// Values of the trials, in the unit of the table.
    pub sample: Sample,
}

/// Place of a cell within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellPlace {
    /// Variant.
    pub variant: String,
    /// Access pattern.
    pub pattern: String,
    /// Size of a record in bytes.
    pub record_bytes: u64,
}

impl TableCell {
    /// Returns the place of the cell.
    pub fn place(&self) -> CellPlace {
        let TableCell { variant, pattern, record_bytes, .. } = self;
        CellPlace { variant: variant.clone(), pattern: pattern.clone(), record_bytes: *record_bytes }
    }
}

impl ReportTable {
    /// Returns the compared variants in order. Each later variant is compared with the first.
    pub fn variants(&self) -> Vec<&str> {
        distinct(self.cells.iter().map(|cell| cell.variant.as_str()))
    }

    /// Returns the patterns in order.
    pub fn patterns(&self) -> Vec<&str> {
        distinct(self.cells.iter().map(|cell| cell.pattern.as_str()))
    }

    /// Returns the sizes of records in bytes, smallest first.
    pub fn record_sizes(&self) -> Vec<u64> {
        let mut sizes = distinct(self.cells.iter().map(|cell| cell.record_bytes));
        sizes.sort_unstable();
        sizes
    }

    /// Returns the cell at this place, if the table has one.
    pub fn cell(&self, variant: &str, pattern: &str, record_bytes: u64) -> Option<&TableCell> {
        self.cells.iter().find(|cell| {
            (&*cell.variant, &*cell.pattern, cell.record_bytes) == (variant, pattern, record_bytes)
        })
    }

    /// Returns the cells in the order of the published files: by pattern, then size of records, then variant.
    pub fn in_order(&self) -> Vec<&TableCell> {
        let (variants, sizes) = (self.variants(), self.record_sizes());
        let patterns = self.patterns().into_iter();
        let places = patterns.flat_map(|pattern| sizes.iter().map(move |&size| (pattern, size)));
        let cells =
            places.flat_map(|(pattern, size)| variants.iter().map(move |variant| (variant, pattern, size)));
        cells.filter_map(|(variant, pattern, size)| self.cell(variant, pattern, size)).collect()
    }

    /// Returns the cell with which `cell` is compared: the cell of the first variant for the same pattern and records.
    /// `None` if `cell` is of the first variant itself.
    pub fn base(&self, cell: &TableCell) -> Option<&TableCell> {
        let first = *self.variants().first()?;
        self.cell(first, &cell.pattern, cell.record_bytes).filter(|_| cell.variant != first)
    }
}

impl fmt::Display for CellPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} with {}-byte records", self.variant, self.pattern, self.record_bytes)
    }
}

/// Returns each item once, in order of first occurrence.
pub(crate) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}
