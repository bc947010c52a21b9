//! Tables of the spans, values of counters, and flows of a timeline, in CSV or Parquet.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::Map;
use trace::{Amount, ArgumentValue, Mark, Timeline};

/// Contents of a table: one row for each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceTable {
    /// Spans, sorted by thread, then begin. The column `mark` is `whole`, `unfinished` or `no begin`; `arguments` is a
    /// JSON object, or empty.
    Spans,
    /// Values of counters, followed by data of the operating system about threads: their processors, and their numbers
    /// of context switches.
    Counts,
    /// Flows, sorted by time of departure.
    Flows,
}

/// Writes a table as comma-separated values (RFC 4180). The column `thread_number` distinguishes threads of the same
/// name.
pub fn write_csv(timeline: &Timeline, table: TraceTable, to: impl Write) -> io::Result<()> {
    let Table { rows, columns } = Table::of(timeline, table);
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(columns.iter().map(|(name, _)| name))?;
    for row in 0..rows {
        for (_, cells) in &columns {
            writer.write_field(cells.text(row).as_bytes())?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

/// Writes a table as a Parquet file, with the columns of [`write_csv`]; times are unsigned integers, and values of
/// counters are floating point numbers.
pub fn write_parquet(timeline: &Timeline, table: TraceTable, to: impl Write + Send) -> io::Result<()> {
    Table::of(timeline, table).try_write_parquet(to).map_err(io::Error::other)
}

/// Columns by name, each with a cell for each row.
struct Table<'a> {
    rows: usize,
    columns: Vec<(&'static str, Cells<'a>)>,
}

/// Function that returns the cell of a row.
type Cell<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

/// Cells of a column.
enum Cells<'a> {
    Text(Cell<'a, Cow<'a, str>>),
    Unsigned(Cell<'a, u64>),
    Depth(Cell<'a, u8>),
    Amount(Cell<'a, Amount>),
}

impl<'a> Table<'a> {
    fn of(timeline: &'a Timeline, table: TraceTable) -> Self {
        match table {
            TraceTable::Spans => Table::of_spans(timeline),
            TraceTable::Counts => Table::of_counts(timeline),
            TraceTable::Flows => Table::of_flows(timeline),
        }
    }

    fn of_spans(timeline: &'a Timeline) -> Self {
        let spans = &timeline.spans;
        let thread = move |row: usize| spans.thread[row];
        let state = move |row: usize| &timeline.states[spans.state[row] as usize];
        let columns = vec![
            ("process", processes(timeline, thread)),
            ("thread", threads(timeline, thread)),
            ("state", text(move |row| &state(row).name)),
            ("category", text(move |row| &state(row).category)),
            ("begin_ns", unsigned(move |row| spans.begin_ns[row])),
            ("end_ns", unsigned(move |row| spans.end_ns[row])),
            ("duration_ns", unsigned(move |row| spans.get(row).duration_ns())),
            ("depth", Cells::Depth(Box::new(move |row| spans.depth[row]))),
            ("mark", text(move |row| mark(spans.mark[row]))),
            ("arguments", Cells::Text(Box::new(move |row| arguments(timeline, row).into()))),
            ("thread_number", unsigned(move |row| thread(row).into())),
        ];
        Table { rows: spans.len(), columns }
    }

    fn of_counts(timeline: &'a Timeline) -> Self {
        let count = move |row: usize| ShownCount::of(timeline, row);
        let thread = move |row: usize| count(row).thread;
        let columns = vec![
            ("process", processes(timeline, thread)),
            ("thread", threads(timeline, thread)),
            ("counter", text(move |row| count(row).counter)),
            ("unit", text(move |row| count(row).unit)),
            ("time_ns", unsigned(move |row| count(row).time_ns)),
            ("value", Cells::Amount(Box::new(move |row| count(row).value))),
            ("thread_number", unsigned(move |row| thread(row).into())),
        ];
        Table { rows: ShownCount::all(timeline), columns }
    }

    fn of_flows(timeline: &'a Timeline) -> Self {
        let flows = &timeline.flows;
        let from = move |row: usize| flows[row].from_thread;
        let to = move |row: usize| flows[row].to_thread;
        let columns = vec![
            ("from_process", processes(timeline, from)),
            ("from_thread", threads(timeline, from)),
            ("from_ns", unsigned(move |row| flows[row].from_ns)),
            ("to_process", processes(timeline, to)),
            ("to_thread", threads(timeline, to)),
            ("to_ns", unsigned(move |row| flows[row].to_ns)),
            ("from_thread_number", unsigned(move |row| from(row).into())),
            ("to_thread_number", unsigned(move |row| to(row).into())),
        ];
        Table { rows: flows.len(), columns }
    }
}

fn text<'a>(of: impl Fn(usize) -> &'a str + 'a) -> Cells<'a> {
    Cells::Text(Box::new(move |row| of(row).into()))
}

fn unsigned<'a>(of: impl Fn(usize) -> u64 + 'a) -> Cells<'a> {
    Cells::Unsigned(Box::new(of))
}

/// Returns the column of process titles: for each row, the process of its thread.
fn processes<'a>(timeline: &'a Timeline, thread: impl Fn(usize) -> u32 + 'a) -> Cells<'a> {
    let titles: Vec<String> = timeline.processes.iter().map(|process| process.info.title()).collect();
    let title = move |row| titles[timeline.threads[thread(row) as usize].process as usize].clone();
    Cells::Text(Box::new(move |row| title(row).into()))
}

/// Returns the column of thread names.
fn threads<'a>(timeline: &'a Timeline, thread: impl Fn(usize) -> u32 + 'a) -> Cells<'a> {
    text(move |row| &timeline.threads[thread(row) as usize].name)
}

fn mark(mark: Mark) -> &'static str {
    match mark {
        Mark::Whole => "whole",
        Mark::Unfinished => "unfinished",
        Mark::NoBegin => "no begin",
    }
}

/// Returns the arguments of a span as a JSON object; empty if it has none.
fn arguments(timeline: &Timeline, span: usize) -> String {
    let arguments = timeline.arguments_of(span);
    if arguments.is_empty() {
        return String::new();
    }
    let pair = |argument: &trace::Argument| {
        let value: serde_json::Value = match argument.value {
            ArgumentValue::Number(Amount::Integer(number)) => number.into(),
            ArgumentValue::Number(Amount::Real(number)) => number.into(),
            ArgumentValue::Text(text) => (&*timeline.texts[text as usize]).into(),
        };
        (timeline.names[argument.name as usize].clone(), value)
    };
    serde_json::Value::Object(Map::from_iter(arguments.iter().map(pair))).to_string()
}

/// Row of the table of counts.
struct ShownCount<'a> {
    thread: u32,
    counter: &'a str,
    unit: &'a str,
    time_ns: u64,
    value: Amount,
}

impl<'a> ShownCount<'a> {
    /// Returns the number of rows.
    fn all(timeline: &Timeline) -> usize {
        timeline.counts.len() + timeline.processors.len() + 2 * timeline.switches.len()
    }

    fn of(timeline: &'a Timeline, row: usize) -> Self {
        if let Some(count) = timeline.counts.get(row) {
            let counter = &timeline.counters[count.counter as usize];
            let (counter, unit) = (&*counter.name, &*counter.unit);
            return ShownCount {
                thread: count.thread,
                counter,
                unit,
                time_ns: count.time_ns,
                value: count.value,
            };
        }
        let row = row - timeline.counts.len();
        if let Some(on) = timeline.processors.get(row) {
            let value = on.processor.into();
            return ShownCount {
                thread: on.thread,
                counter: "processor",
                unit: "",
                time_ns: on.time_ns,
                value,
            };
        }
        let row = row - timeline.processors.len();
        let switches = &timeline.switches;
        let switch = &switches[row % switches.len()];
        let (counter, count) = match row < switches.len() {
            true => ("voluntary context switches", switch.voluntary),
            false => ("involuntary context switches", switch.involuntary),
        };
        ShownCount { thread: switch.thread, counter, unit: "", time_ns: switch.time_ns, value: count.into() }
    }
}

impl<'a> Cells<'a> {
    fn text(&self, row: usize) -> Cow<'a, str> {
        match self {
            Cells::Text(cell) => cell(row),
            Cells::Unsigned(cell) => cell(row).to_string().into(),
            Cells::Depth(cell) => cell(row).to_string().into(),
            Cells::Amount(cell) => match cell(row) {
                Amount::Integer(number) => number.to_string().into(),
                Amount::Real(number) => number.to_string().into(),
            },
        }
    }

    /// Returns the declaration of this column, under this name, in the schema of Parquet.
    fn declared(&self, name: &str) -> String {
        match self {
            Cells::Text(_) => format!("required binary {name} (UTF8);"),
            Cells::Unsigned(_) => format!("required int64 {name} (INTEGER(64, false));"),
            Cells::Depth(_) => format!("required int32 {name};"),
            Cells::Amount(_) => format!("required double {name};"),
        }
    }
}

/// Number of rows of a Parquet file in memory at a time.
const GROUP_ROWS: usize = 1 << 18;

impl Table<'_> {
    fn try_write_parquet(&self, to: impl Write + Send) -> ParquetResult<()> {
        let declared: String = self.columns.iter().map(|(name, cells)| cells.declared(name)).collect();
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {declared} }}"))?);
        let mut file = SerializedFileWriter::new(to, schema, Arc::new(WriterProperties::builder().build()))?;
        for first in (0..self.rows).step_by(GROUP_ROWS) {
            let rows = first..self.rows.min(first + GROUP_ROWS);
            let mut group = file.next_row_group()?;
            for (_, cells) in &self.columns {
                let rows = rows.clone();
                match cells {
                    Cells::Text(cell) => {
                        let texts = rows.map(|row| ByteArray::from(cell(row).into_owned().into_bytes()));
                        column::<ByteArrayType>(&mut group, texts)
                    }
                    Cells::Unsigned(cell) => {
                        column::<Int64Type>(&mut group, rows.map(|row| cell(row).cast_signed()))
                    }
                    Cells::Depth(cell) => column::<Int32Type>(&mut group, rows.map(|row| cell(row).into())),
                    Cells::Amount(cell) => column::<DoubleType>(&mut group, rows.map(|row| real(cell(row)))),
                }?;
            }
            group.close()?;
        }
        file.close()?;
        Ok(())
    }
}

fn real(amount: Amount) -> f64 {
    match amount {
        Amount::Integer(number) => number as f64,
        Amount::Real(number) => number,
    }
}

/// Writes the next column of the group.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> ParquetResult<()> {
    let values: Vec<T::T> = values.collect();
    let mut writer = group.next_column()?.expect("the schema has as many columns");
    writer.typed::<T>().write_batch(&values, None, None)?;
    writer.close()
}
