//! Values that the report printed, as far as this project knows them.
//!
//! The values are read from CSV with the columns [`COLUMNS`]. In rows of later variants, `differs_significantly` is
//! `yes` or `no` if the report marks significance. Otherwise it is empty.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::results::CellPlace;

/// Columns of the published tables, in order.
pub const COLUMNS: [&str; 8] =
    ["table", "system", "layout", "variant", "pattern", "record_bytes", "value", "differs_significantly"];

/// Published values of several tables.
#[derive(Clone, Debug, Default)]
pub struct PublishedTables {
    tables: BTreeMap<u32, PublishedTable>,
}

/// Published values of one table.
#[derive(Clone, Debug)]
pub struct PublishedTable {
    /// Measured system.
    pub system: String,
    /// Layout of the file on the disks.
    pub layout: String,
    cells: BTreeMap<CellPlace, PublishedCell>,
}

/// A published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedCell {
    /// Value as rounded in the report, in the unit of the table.
    pub value: f64,
    /// Maximum rounding error: half a unit of the last digit.
    pub rounding: f64,
    /// True if the value differs significantly from the first variant's; `None` if the report does not state this.
    pub differs: Option<bool>,
}

/// Reason why published values could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedError {
    /// The file is not CSV with valid values.
    #[error("{file}: {source}")]
    Csv {
        /// Name of the file.
        file: String,
        /// Error, with the line.
        source: csv::Error,
    },
    /// The file has other columns.
    #[error("{file}:1: the columns must be {}", COLUMNS.join(","))]
    Columns {
        /// Name of the file.
        file: String,
    },
    /// A row is invalid.
    #[error("{file}:{line}: {what}")]
    Row {
        /// Name of the file.
        file: String,
        /// Number of the line.
        line: u64,
        /// Reason.
        what: String,
    },
}

#[derive(Deserialize)]
struct Row {
    table: u32,
    system: String,
    layout: String,
    variant: String,
    pattern: String,
    record_bytes: u64,
    value: String,
    differs_significantly: String,
}

impl PublishedTables {
    /// Adds the values in `text`, the contents of the file named `file`.
    pub fn read(&mut self, file: &str, text: &str) -> Result<(), PublishedError> {
        let error = |source| PublishedError::Csv { file: file.to_owned(), source };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        if *reader.headers().map_err(error)? != COLUMNS[..] {
            return Err(PublishedError::Columns { file: file.to_owned() });
        }
        let headers = reader.headers().map_err(error)?.clone();
        for record in reader.records() {
            let record = record.map_err(error)?;
            let line = record.position().map_or(0, |position| position.line());
            let row = record.deserialize(Some(&headers)).map_err(error)?;
            self.add(row).map_err(|what| PublishedError::Row { file: file.to_owned(), line, what })?;
        }
        Ok(())
    }

    fn add(&mut self, row: Row) -> Result<(), String> {
        let differs = match &*row.differs_significantly {
            "" => None,
            "yes" => Some(true),
            "no" => Some(false),
            other => return Err(format!("differs_significantly is {other:?}, not yes, no or nothing")),
        };
        let value: f64 =
            row.value.parse().map_err(|_| format!("the value {:?} is not a number", row.value))?;
        if !(value > 0.0 && value.is_finite()) {
            return Err(format!("a value of {value}: only positive ones can be compared with"));
        }
        let decimals = row.value.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let rounding = 0.5 * 10_f64.powi(-(decimals as i32));
        let (system, layout) = (row.system, row.layout);
        let new = PublishedTable { system: system.clone(), layout: layout.clone(), cells: BTreeMap::new() };
        let table = self.tables.entry(row.table).or_insert(new);
        if (&table.system, &table.layout) != (&system, &layout) {
            let number = row.table;
            return Err(format!(
                "table {number} is of {} {} before, and here of {system} {layout}",
                table.system, table.layout
            ));
        }
        let place = CellPlace { variant: row.variant, pattern: row.pattern, record_bytes: row.record_bytes };
        let cell = PublishedCell { value, rounding, differs };
        match table.cells.insert(place.clone(), cell) {
            None => Ok(()),
            Some(_) => Err(format!("a second value for {place}")),
        }
    }

    /// Returns the published values of this table, if any.
    pub fn table(&self, number: u32) -> Option<&PublishedTable> {
        self.tables.get(&number)
    }
}

impl PublishedTable {
    /// Returns the value at this place.
    pub fn cell(&self, place: &CellPlace) -> Option<PublishedCell> {
        self.cells.get(place).copied()
    }

    /// Iterates over all places that have a value.
    pub fn places(&self) -> impl Iterator<Item = &CellPlace> {
        self.cells.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "table,system,layout,variant,pattern,record_bytes,value,differs_significantly\n";

    fn read(rows: &str) -> Result<PublishedTables, String> {
        let mut published = PublishedTables::default();
        published.read("t.csv", &format!("{HEAD}{rows}")).map_err(|error| error.to_string())?;
        Ok(published)
    }

    #[test]
    fn published_values_are_found_by_their_place() {
        let published =
            read("15,compare,random,tpfs,rb,8,4.5,\n15,compare,random,ddio,rb,8,46,yes\n").unwrap();
        let table = published.table(15).expect("a table");
        assert_eq!((&*table.system, &*table.layout), ("compare", "random"));
        let place =
            |variant: &str| CellPlace { variant: variant.into(), pattern: "rb".into(), record_bytes: 8 };
        assert_eq!(
            table.cell(&place("tpfs")),
            Some(PublishedCell { value: 4.5, rounding: 0.05, differs: None })
        );
        let rounded = PublishedCell { value: 46.0, rounding: 0.5, differs: Some(true) };
        assert_eq!(table.cell(&place("ddio")), Some(rounded));
        assert_eq!(table.cell(&place("2pio")), None);
        assert!(published.table(16).is_none());
    }

    #[test]
    fn mistakes_are_reported_with_file_and_line() {
        let good = "2,tpfs,random,a,rb,8,4.5,\n";
        for (rows, expected) in [
            ("2,tpfs,random,a,rb,x,4.5,\n", "line: 2"),
            ("2,tpfs,random,a,rb,8\n", "line: 2"),
            ("2,tpfs,random,a,rb,8,4.5,maybe\n", "t.csv:2: differs_significantly is \"maybe\""),
            ("2,tpfs,random,a,rb,8,0,\n", "t.csv:2: a value of 0"),
            ("2,tpfs,random,a,rb,8,NaN,\n", "t.csv:2: a value of NaN"),
            ("2,tpfs,random,a,rb,8,much,\n", "t.csv:2: the value \"much\" is not a number"),
            (&format!("{good}{good}"), "t.csv:3: a second value for a rb with 8-byte records"),
            (&format!("{good}2,ddio,random,b,rb,8,4.5,\n"), "t.csv:3: table 2 is of tpfs random before"),
        ] {
            let error = read(rows).unwrap_err();
            assert!(error.contains(expected) && error.contains("t.csv"), "{rows}: {error}");
        }
        let error = PublishedTables::default().read("t.csv", "table,value\n").unwrap_err().to_string();
        assert!(error.starts_with("t.csv:1: the columns must be table,system"), "{error}");
    }
}
