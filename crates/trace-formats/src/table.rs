//! Spans as a table: a row for each, with the names of its process, thread and state, and its arguments as JSON.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::Map;
use trace::{Amount, ArgumentValue, Mark, Timeline};

/// The columns of the table.
const COLUMNS: [&str; 10] = [
    "process",
    "thread",
    "state",
    "category",
    "begin_ns",
    "end_ns",
    "duration_ns",
    "depth",
    "mark",
    "arguments",
];

/// Writes the spans as comma-separated values (RFC 4180), thread by thread in the order of begins.
///
/// The column `mark` is `whole`, `unfinished` or `no begin`; `arguments` is an object of JSON, or empty.
pub fn write_csv(timeline: &Timeline, to: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(COLUMNS)?;
    let processes: Vec<String> = timeline.processes.iter().map(|process| process.info.title()).collect();
    for (index, span) in timeline.spans.iter().enumerate() {
        let thread = &timeline.threads[span.thread as usize];
        let state = &timeline.states[span.state as usize];
        let numbers =
            [span.begin_ns, span.end_ns, span.duration_ns(), span.depth.into()].map(|n| n.to_string());
        let names = [&processes[thread.process as usize], &thread.name, &state.name, &state.category];
        let row = names.into_iter().chain(&numbers).map(String::as_str);
        writer.write_record(row.chain([mark(span.mark), &arguments(timeline, index)]))?;
    }
    writer.flush()
}

fn mark(mark: Mark) -> &'static str {
    match mark {
        Mark::Whole => "whole",
        Mark::Unfinished => "unfinished",
        Mark::NoBegin => "no begin",
    }
}

/// The arguments of a span as an object of JSON; empty if it has none.
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

const SCHEMA: &str = "message spans {
    required binary process (UTF8);
    required binary thread (UTF8);
    required binary state (UTF8);
    required binary category (UTF8);
    required int64 begin_ns (INTEGER(64, false));
    required int64 end_ns (INTEGER(64, false));
    required int64 duration_ns (INTEGER(64, false));
    required int32 depth;
    required binary mark (UTF8);
    required binary arguments (UTF8);
}";

/// The rows that are in memory at a time.
const GROUP_ROWS: usize = 1 << 18;

/// Writes the spans as a Parquet file, with the columns of [`write_csv`]; times are unsigned.
pub fn write_parquet(timeline: &Timeline, to: impl Write + Send) -> io::Result<()> {
    try_write_parquet(timeline, to).map_err(io::Error::other)
}

fn try_write_parquet(timeline: &Timeline, to: impl Write + Send) -> ParquetResult<()> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(to, schema, properties)?;
    let processes: Vec<ByteArray> =
        timeline.processes.iter().map(|process| process.info.title().into_bytes().into()).collect();
    let threads: Vec<ByteArray> = timeline.threads.iter().map(|thread| thread.name.as_str().into()).collect();
    let states: Vec<ByteArray> = timeline.states.iter().map(|state| state.name.as_str().into()).collect();
    let categories: Vec<ByteArray> =
        timeline.states.iter().map(|state| state.category.as_str().into()).collect();
    let marks = [Mark::Whole, Mark::Unfinished, Mark::NoBegin].map(|one| ByteArray::from(mark(one)));
    let spans = &timeline.spans;
    let process = |span: usize| timeline.threads[spans.thread[span] as usize].process as usize;
    for first in (0..spans.len()).step_by(GROUP_ROWS) {
        let rows = first..spans.len().min(first + GROUP_ROWS);
        let texts = |of: &dyn Fn(usize) -> ByteArray| rows.clone().map(of).collect::<Vec<_>>();
        let times =
            |of: &dyn Fn(usize) -> u64| rows.clone().map(|row| of(row).cast_signed()).collect::<Vec<_>>();
        let mut group = file.next_row_group()?;
        column::<ByteArrayType>(&mut group, &texts(&|row| processes[process(row)].clone()))?;
        column::<ByteArrayType>(&mut group, &texts(&|row| threads[spans.thread[row] as usize].clone()))?;
        column::<ByteArrayType>(&mut group, &texts(&|row| states[spans.state[row] as usize].clone()))?;
        column::<ByteArrayType>(&mut group, &texts(&|row| categories[spans.state[row] as usize].clone()))?;
        column::<Int64Type>(&mut group, &times(&|row| spans.begin_ns[row]))?;
        column::<Int64Type>(&mut group, &times(&|row| spans.end_ns[row]))?;
        column::<Int64Type>(&mut group, &times(&|row| spans.get(row).duration_ns()))?;
        let depths: Vec<i32> = rows.clone().map(|row| spans.depth[row].into()).collect();
        column::<Int32Type>(&mut group, &depths)?;
        column::<ByteArrayType>(&mut group, &texts(&|row| marks[spans.mark[row] as usize].clone()))?;
        column::<ByteArrayType>(&mut group, &texts(&|row| arguments(timeline, row).into_bytes().into()))?;
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Writes the group's next column.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> ParquetResult<()> {
    let mut writer = group.next_column()?.expect("the schema has as many columns");
    writer.typed::<T>().write_batch(values, None, None)?;
    writer.close()
}
