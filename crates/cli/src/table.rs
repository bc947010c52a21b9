//! Tables of text, for people.

use console::{Alignment, measure_text_width, pad_str};

/// A table whose columns are as wide as they must be. The first rows are its head.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns that are text and so begin at the left; the others are numbers.
    text_columns: usize,
}

impl Table {
    /// An empty table whose first `text_columns` columns are text.
    pub(crate) fn new(text_columns: usize) -> Self {
        Table { rows: Vec::new(), text_columns }
    }

    /// Appends a row.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines of the table.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = self.rows.iter().filter_map(move |row: &Vec<String>| row.get(column));
            cells.map(|cell: &String| measure_text_width(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        self.rows.iter().map(move |row| {
            let cell = |(column, cell): (usize, &String)| {
                let side = if column < self.text_columns { Alignment::Left } else { Alignment::Right };
                pad_str(cell, widths[column], side, None).into_owned()
            };
            let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
            cells.join("  ").trim_end().to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_left_and_numbers_right() {
        let mut table = Table::new(1);
        table.row(["pattern", "MiB/s"]);
        table.row(["rb", "31.2"]);
        table.row(["x", "131.2"]);
        let lines: Vec<String> = table.lines().collect();
        assert_eq!(lines, ["pattern  MiB/s", "rb        31.2", "x        131.2"]);
    }
}
