//! Tables of results, and the files they are written to.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type as ParquetType;
use serde_json::{Map, Number};

use crate::journal::PROGRAM;

/// A table of results: rows of values in the same columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultTable {
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// Rows, each with a value for every column.
    pub rows: Vec<Vec<Value>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name with the unit last, unique in the table.
    pub name: String,
    /// Kind of the values.
    pub kind: Type,
}

/// Kind of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// Whole numbers from 0 to 2^63 - 1.
    Integer,
    /// Numbers.
    Number,
    /// True or false.
    Flag,
}

/// A value of a table. It has the kind of its column, or is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(u64),
    /// A finite number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// The value is unknown or not applicable.
    Missing,
}

impl Column {
    pub(crate) fn new(name: impl Into<String>, kind: Type) -> Column {
        Column { name: name.into(), kind }
    }
}

impl ResultTable {
    /// Returns this table without the columns of these names.
    pub fn without(self, names: &[&str]) -> ResultTable {
        let kept: Vec<bool> = self.columns.iter().map(|column| !names.contains(&&*column.name)).collect();
        let row = |row: Vec<Value>| {
            row.into_iter().zip(&kept).filter_map(|(value, kept)| kept.then_some(value)).collect()
        };
        let columns = self.columns.into_iter().zip(&kept).filter_map(|(column, kept)| kept.then_some(column));
        ResultTable { columns: columns.collect(), rows: self.rows.into_iter().map(row).collect() }
    }

    /// Writes the table as comma-separated values with a header (RFC 4180). Numbers are written so that reading them
    /// back yields exactly the same numbers. Missing values are empty fields.
    pub fn write_csv(&self, to: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(self.columns.iter().map(|column| &column.name))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Value::to_string))?;
        }
        writer.flush()
    }

    /// Returns the rows as a JSON array of objects.
    pub fn to_json(&self) -> serde_json::Value {
        let row = |row: &Vec<Value>| {
            let pairs = self.columns.iter().zip(row);
            let object = pairs.map(|(column, value)| (column.name.clone(), value.to_json()));
            serde_json::Value::Object(Map::from_iter(object))
        };
        serde_json::Value::Array(self.rows.iter().map(row).collect())
    }

    /// Writes a Parquet file with one row group, in which all columns are optional. Its metadata contain the program's
    /// version.
    pub fn write_parquet(&self, to: impl Write + Send) -> io::Result<()> {
        self.try_write_parquet(to).map_err(io::Error::other)
    }

    fn try_write_parquet(&self, to: impl Write + Send) -> ParquetResult<()> {
        let fields = self.columns.iter().map(Column::parquet).collect::<ParquetResult<Vec<_>>>()?;
        let schema = ParquetType::group_type_builder("results").with_fields(fields).build()?;
        let program = KeyValue::new("starfish".to_owned(), PROGRAM.to_owned());
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![program])).build();
        let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (index, column) in self.columns.iter().enumerate() {
            let values = self.rows.iter().map(|row| &row[index]);
            column.write(values, &mut group)?;
        }
        group.close()?;
        file.close()?;
        Ok(())
    }
}

impl Column {
    fn parquet(&self) -> ParquetResult<Arc<ParquetType>> {
        let (physical, logical) = match self.kind {
            Type::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Type::Integer => (PhysicalType::INT64, None),
            Type::Number => (PhysicalType::DOUBLE, None),
            Type::Flag => (PhysicalType::BOOLEAN, None),
        };
        let field = ParquetType::primitive_type_builder(&self.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL);
        field.build().map(Arc::new)
    }

    /// Writes the values as the group's next column.
    fn write<'a>(
        &self,
        values: impl Iterator<Item = &'a Value> + Clone,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    ) -> ParquetResult<()> {
        let levels: Vec<i16> = values.clone().map(|value| i16::from(*value != Value::Missing)).collect();
        let mut writer = group.next_column()?.expect("the schema has as many columns");
        macro_rules! write {
            ($kind:ty, $values:expr) => {
                writer.typed::<$kind>().write_batch(
                    &values.filter_map($values).collect::<Vec<_>>(),
                    Some(&levels),
                    None,
                )?
            };
        }
        match self.kind {
            Type::Text => write!(ByteArrayType, Value::parquet_text),
            Type::Integer => write!(Int64Type, Value::parquet_integer),
            Type::Number => write!(DoubleType, Value::parquet_number),
            Type::Flag => write!(BoolType, Value::parquet_flag),
        };
        writer.close()
    }
}

impl Value {
    fn parquet_text(&self) -> Option<ByteArray> {
        if let Value::Text(text) = self { Some(text.as_str().into()) } else { None }
    }

    fn parquet_integer(&self) -> Option<i64> {
        // The cast is exact, because integers in a table are at most 2^63 - 1.
        if let Value::Integer(number) = self { Some(*number as i64) } else { None }
    }

    fn parquet_number(&self) -> Option<f64> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    fn parquet_flag(&self) -> Option<bool> {
        if let Value::Flag(flag) = self { Some(*flag) } else { None }
    }

    fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) => text.as_str().into(),
            Value::Integer(number) => (*number).into(),
            Value::Number(number) => Number::from_f64(*number).map_or(serde_json::Value::Null, Into::into),
            Value::Flag(flag) => (*flag).into(),
            Value::Missing => serde_json::Value::Null,
        }
    }
}

impl From<Option<f64>> for Value {
    /// Converts a number. A number that is not finite becomes a missing value.
    fn from(number: Option<f64>) -> Value {
        number.filter(|number| number.is_finite()).map_or(Value::Missing, Value::Number)
    }
}

impl std::fmt::Display for Value {
    /// Formats the value as in CSV. A number is written in the shortest form that is exact.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Text(text) => f.pad(text),
            Value::Integer(number) => number.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Flag(flag) => flag.fmt(f),
            Value::Missing => f.pad(""),
        }
    }
}
