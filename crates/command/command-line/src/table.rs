//! Text tables for users.
//!
//! A table that is wider than the terminal is narrowed. First the text in the widest text column is wrapped. If the
//! table is still too wide, the last columns continue on separate lines, both in the header and in each row. Without a
//! terminal the table keeps its full width.

use std::ops::Range;

use console::{Alignment, measure_text_width, pad_str};

/// Table whose columns are as wide as their contents require. The first rows are its header.
#[derive(Default)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
    /// Number of leading text columns, which are aligned left. The others are numbers.
    text_columns: usize,
}

impl TextTable {
    /// Returns an empty table whose first `text_columns` columns are text.
    pub fn new(text_columns: usize) -> Self {
        TextTable { rows: Vec::new(), text_columns }
    }

    /// Appends a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the lines of the table, fitted to the terminal if standard output is one.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.lines_within(crate::width::of_terminal().unwrap_or(usize::MAX)).into_iter()
    }

    /// Returns one line for each row, of any width: the caller appends to them.
    pub fn whole_lines(&self) -> Vec<String> {
        self.lines_within(usize::MAX)
    }

    fn lines_within(&self, terminal: usize) -> Vec<String> {
        let mut widths = self.widths();
        let widest = (0..widths.len().min(self.text_columns)).max_by_key(|column| widths[*column]);
        if let Some(widest) = widest {
            let excess = total(&widths).saturating_sub(terminal);
            // Not narrower, because a narrower column would consist of single words.
            let narrow = TEXT_MIN.max(self.longest_word(widest));
            widths[widest] = widths[widest].saturating_sub(excess).max(narrow.min(widths[widest]));
        }
        let parts = parts(&widths, terminal);
        self.rows.iter().flat_map(|row| self.row_lines(row, &widths, &parts)).collect()
    }

    /// Returns the lines of one row. Each of `parts` is a range of columns on the same line.
    fn row_lines(&self, row: &[String], widths: &[usize], parts: &[Range<usize>]) -> Vec<String> {
        let mut lines = Vec::new();
        for part in parts {
            let indent = if part.start == 0 { "" } else { CONTINUED };
            let columns = part.clone().filter(|column| *column < row.len());
            let cells: Vec<Vec<String>> =
                columns.clone().map(|column| wrapped(&row[column], widths[column])).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let cell = |(column, cell): (usize, &Vec<String>)| {
                    let side = if column < self.text_columns { Alignment::Left } else { Alignment::Right };
                    let text = cell.get(line).map_or("", String::as_str);
                    pad_str(text, widths[column], side, None).into_owned()
                };
                let cells: Vec<String> = columns.clone().zip(&cells).map(cell).collect();
                lines.push(format!("{indent}{}", cells.join(GAP)).trim_end().to_owned());
            }
        }
        // A row without cells is a blank line.
        if lines.is_empty() { vec![String::new()] } else { lines }
    }

    fn longest_word(&self, column: usize) -> usize {
        let words = self.rows.iter().filter_map(|row| row.get(column)).flat_map(|cell| cell.split(' '));
        words.map(measure_text_width).max().unwrap_or(0)
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = self.rows.iter().filter_map(move |row: &Vec<String>| row.get(column));
            cells.map(|cell: &String| measure_text_width(cell)).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }
}

/// Space between two columns.
const GAP: &str = "  ";

/// Indentation of columns continued on a separate line.
const CONTINUED: &str = "    ";

/// Minimum width of a text column.
const TEXT_MIN: usize = 16;

/// Returns the total width of adjacent columns.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// Returns the ranges of columns that fit side by side into a terminal of this width.
fn parts(widths: &[usize], terminal: usize) -> Vec<Range<usize>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for end in 1..=widths.len() {
        let indent = if start == 0 { 0 } else { CONTINUED.len() };
        if end - start > 1 && indent + total(&widths[start..end]) > terminal {
            parts.push(start..end - 1);
            start = end - 1;
        }
    }
    parts.push(start..widths.len());
    parts
}

/// Returns the text wrapped to this width. A word that is longer than the width gets a separate line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    if measure_text_width(text) <= width {
        return vec![text.to_owned()];
    }
    for word in text.split(' ') {
        let fits = |line: &String| {
            line.is_empty() || measure_text_width(line) + 1 + measure_text_width(word) <= width
        };
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_aligned_left_and_numbers_right() {
        let mut table = TextTable::new(1);
        table.row(["pattern", "MiB/s"]);
        table.row(["rb", "31.2"]);
        table.row(["x", "131.2"]);
        let lines: Vec<String> = table.lines().collect();
        assert_eq!(lines, ["pattern  MiB/s", "rb        31.2", "x        131.2"]);
    }

    #[test]
    fn the_widest_text_wraps_within_its_column() {
        let mut table = TextTable::new(2);
        table.row(["disk", "what it is", "GB"]);
        table.row(["x", "a disk of some kind that was sold", "9"]);
        let wide = table.lines_within(usize::MAX);
        assert_eq!(wide[1], "x     a disk of some kind that was sold   9");
        assert_eq!(table.lines_within(43), wide);
        let narrow =
            ["disk  what it is           GB", "x     a disk of some kind   9", "      that was sold"];
        assert_eq!(table.lines_within(29), narrow);
    }

    #[test]
    fn columns_that_do_not_fit_continue_on_further_lines() {
        let mut table = TextTable::new(1);
        table.row(["pattern", "MiB/s", "movements", "events"]);
        table.row(["rb", "31.2", "144", "105682"]);
        let narrow = ["pattern  MiB/s", "    movements  events", "rb        31.2", "          144  105682"];
        assert_eq!(table.lines_within(22), narrow);
        assert_eq!(table.lines_within(1).len(), 8, "a column to a line, as wide as it must be");
    }
}
