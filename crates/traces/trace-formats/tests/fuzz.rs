//! Fuzz test: the importers reject any input, or read it; a trace that was read can be exported and read again.

use trace::{Alignment, Limits, TraceReader};
use trace_formats::{FormatError, TraceTable, read_any, write_csv, write_parquet, write_perfetto};

fn look_at(bytes: &[u8]) {
    let mut reader = TraceReader::new(Limits { records: 1000, declarations: 200, text_bytes: 10_000 });
    match read_any(&mut reader, "x", bytes) {
        Err(FormatError::Io(error)) => panic!("bytes can be read: {error}"),
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(_) => {
            let timeline = reader.finish(Alignment::WallClock);
            let mut written = Vec::new();
            write_perfetto(&timeline, &mut written).expect("memory");
            let mut again = TraceReader::new(Limits::default());
            let imported = read_any(&mut again, "x", &written[..]).expect("the trace just written");
            assert!(!imported.is_cut);
            assert_eq!(again.finish(Alignment::WallClock).spans.len(), timeline.spans.len());
            for table in [TraceTable::Spans, TraceTable::Counts, TraceTable::Flows] {
                write_csv(&timeline, table, Vec::new()).expect("memory");
                write_parquet(&timeline, table, Vec::new()).expect("memory");
            }
        }
    }
}

#[test]
fn others() {
    fuzz::target!("others", |input| {
        look_at(input);
        let json = r#"[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1.5,"args":{"x":1}},{"ph":"E","pid":1,"tid":1,"ts":2},
            {"ph":"b","name":"r","id":1,"pid":2,"ts":10},{"ph":"C","name":"m","pid":1,"ts":3,"args":{"v":2}},
            {"ph":"s","id":1,"pid":1,"tid":1,"ts":1},{"ph":"f","id":1,"pid":1,"tid":1,"ts":2}]"#;
        let examples = [include_bytes!("data/sdk.pftrace").to_vec(), json.as_bytes().to_vec()];
        look_at(&fuzz::changed(&examples, input));
    });
}
