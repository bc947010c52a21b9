//! What was simulated: the tables of a study, cell by cell.

use std::fmt;

use plan::Quantity;
use statistics::Sample;

/// A table of the study.
#[derive(Clone, Debug)]
pub struct ReportTable {
    /// Its number in the report.
    pub number: u32,
    /// What it is about, in a line.
    pub title: String,
    /// What it measures: `tpfs`, `ddio`, `compare`, ...
    pub system: String,
    /// How the file lies on the disks: `contiguous` or `random`.
    pub layout: String,
    /// What its values are.
    pub quantity: Quantity,
    /// Its cells, in any order; the variants and the patterns stand in the order in which they come up.
    pub cells: Vec<TableCell>,
}

/// One value of a table, from several trials.
#[derive(Clone, Debug)]
pub struct TableCell {
    /// The variant that is compared with others in this table.
    pub variant: String,
    /// The access pattern.
    pub pattern: String,
    /// Bytes in a record.
    pub record_bytes: u64,
    /// What the trials gave, in the unit of the table.
    pub sample: Sample,
}

/// Where a cell stands within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellPlace {
    /// The variant.
    pub variant: String,
    /// The access pattern.
    pub pattern: String,
    /// Bytes in a record.
    pub record_bytes: u64,
}

impl TableCell {
    /// Where it stands.
    pub fn place(&self) -> CellPlace {
        let TableCell { variant, pattern, record_bytes, .. } = self;
        CellPlace { variant: variant.clone(), pattern: pattern.clone(), record_bytes: *record_bytes }
    }
}

impl ReportTable {
    /// The variants that are compared, in their order. Each later one is compared with the first.
    pub fn variants(&self) -> Vec<&str> {
        distinct(self.cells.iter().map(|cell| cell.variant.as_str()))
    }

    /// The patterns, in their order.
    pub fn patterns(&self) -> Vec<&str> {
        distinct(self.cells.iter().map(|cell| cell.pattern.as_str()))
    }

    /// The sizes of records, smallest first.
    pub fn record_sizes(&self) -> Vec<u64> {
        let mut sizes = distinct(self.cells.iter().map(|cell| cell.record_bytes));
        sizes.sort_unstable();
        sizes
    }

    /// The cell at this place, if the table has one there.
    pub fn cell(&self, variant: &str, pattern: &str, record_bytes: u64) -> Option<&TableCell> {
        self.cells.iter().find(|cell| {
            (&*cell.variant, &*cell.pattern, cell.record_bytes) == (variant, pattern, record_bytes)
        })
    }

    /// The cells in the order of the published files: by pattern, then size of records, then variant.
    pub fn in_order(&self) -> Vec<&TableCell> {
        let (variants, sizes) = (self.variants(), self.record_sizes());
        let patterns = self.patterns().into_iter();
        let places = patterns.flat_map(|pattern| sizes.iter().map(move |&size| (pattern, size)));
        let cells =
            places.flat_map(|(pattern, size)| variants.iter().map(move |variant| (variant, pattern, size)));
        cells.filter_map(|(variant, pattern, size)| self.cell(variant, pattern, size)).collect()
    }

    /// The cell that `cell` is compared with: that of the first variant, for the same pattern and records.
    /// `None` for the first variant itself.
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

/// Each item once, in the order in which it came up first.
pub(crate) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}
