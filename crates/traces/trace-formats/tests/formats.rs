//! Tests of conversions: imports traces of other tools, and compares exported traces with the original.

use std::collections::BTreeMap;

use trace::{
    Alignment, Amount, ArgumentValue, CounterId, CounterInfo, FileWriter, Grouping, Limits, Mark, NameId,
    ProcessId, ProcessInfo, ProcessNumber, Record, RecordedEvent, RecordedValue, StateId, StateInfo,
    ThreadId, ThreadInfo, Timeline, TraceReader,
};
use trace_formats::{
    FormatError, Imported, TraceFormat, TraceTable, collect, detect, read_any, write_csv, write_perfetto,
};

fn opened(bytes: &[u8]) -> (Timeline, Imported) {
    let mut reader = TraceReader::new(Limits::default());
    let imported = read_any(&mut reader, "x", bytes).unwrap();
    (reader.finish(Alignment::WallClock), imported)
}

/// Returns the spans as (thread, state, begin, end), in order of begin.
fn spans(timeline: &Timeline) -> Vec<(&str, &str, u64, u64)> {
    let span = |span: trace::Span| {
        let thread = timeline.threads[span.thread as usize].name.as_str();
        (thread, timeline.states[span.state as usize].name.as_str(), span.begin_ns, span.end_ns)
    };
    let mut spans: Vec<_> = timeline.spans.iter().map(span).collect();
    spans.sort_by_key(|(thread, state, begin, end)| (*begin, *end, *thread, *state));
    spans
}

/// Returns the arguments of the first span of a state, as text.
fn arguments(timeline: &Timeline, state: &str) -> BTreeMap<String, String> {
    let is_of = |span: &trace::Span| timeline.states[span.state as usize].name == state;
    let span = timeline.spans.iter().position(|span| is_of(&span)).unwrap();
    let text = |argument: &trace::Argument| match argument.value {
        ArgumentValue::Number(Amount::Integer(number)) => number.to_string(),
        ArgumentValue::Number(Amount::Real(number)) => number.to_string(),
        ArgumentValue::Text(text) => timeline.texts[text as usize].to_string(),
    };
    let pair = |argument: &trace::Argument| (timeline.names[argument.name as usize].clone(), text(argument));
    timeline.arguments_of(span).iter().map(pair).collect()
}

/// Returns a trace of two processes with nested and overlapping spans, an unfinished span, a span without a begin, and
/// numbers of all kinds.
fn example() -> Vec<u8> {
    let process = |pid, program: &str| ProcessInfo {
        host: "here".to_owned(),
        number: ProcessNumber::Pid(pid),
        program: program.to_owned(),
        command_line: format!("{program} -n 5"),
        zero_unix_ns: Some(1_000_000),
    };
    let mut writer = FileWriter::new(Vec::new(), &process(5, "one")).unwrap();
    writer.process(ProcessId(1), &process(6, "two,\"quoted\"")).unwrap();
    for (id, of, name) in [(0, 0, "main"), (1, 1, "<script>"), (2, 1, "main")] {
        let thread = ThreadInfo { process: ProcessId(of), name: name.to_owned() };
        writer.thread(ThreadId(id), &thread).unwrap();
    }
    for (id, name, category) in [(0, "read", "io"), (1, "wait", ""), (2, "вверх", "io")] {
        let state = StateInfo { name: name.to_owned(), category: category.to_owned(), colour: None };
        writer.state(StateId(id), &state).unwrap();
    }
    writer.name(NameId(0), "offset").unwrap();
    writer.name(NameId(1), "file").unwrap();
    writer
        .counter(CounterId(0), &CounterInfo { name: "queue".to_owned(), unit: "bytes".to_owned() })
        .unwrap();
    let at = |time_ns, event| Record { time_ns, event };
    use RecordedEvent::{Argument, Begin, Count, End, FlowIn, FlowOut, Processor, Span, Switches};
    let one = [
        at(100, Begin(StateId(0))),
        at(100, Argument(NameId(0), RecordedValue::Number(Amount::Integer(-3)))),
        at(100, Argument(NameId(1), RecordedValue::Text("a\"b".to_owned()))),
        at(150, Begin(StateId(1))),
        at(160, FlowOut(9)),
        at(200, End(StateId(0))),
        at(250, End(StateId(1))),
        at(250, Span(StateId(2), 0)),
        at(250, Span(StateId(2), 50)),
        at(260, Count(CounterId(0), Amount::Integer(4096))),
        at(270, Count(CounterId(0), Amount::Real(0.5))),
        at(280, Processor(3)),
        at(290, Switches { voluntary: 4, involuntary: 1 }),
    ];
    let two =
        [at(90, End(StateId(0))), at(300, Begin(StateId(2))), at(310, FlowIn(9)), at(400, Processor(0))];
    writer.records(ThreadId(0), &one).unwrap();
    writer.records(ThreadId(1), &two).unwrap();
    writer.into_inner()
}

#[test]
fn a_trace_exported_for_perfetto_is_imported_unchanged() {
    let (timeline, _) = opened(&example());
    let mut written = Vec::new();
    write_perfetto(&timeline, &mut written).unwrap();
    assert_eq!(detect(&written), Some(TraceFormat::Perfetto));
    let (back, imported) = opened(&written);
    assert_eq!((imported.left_out, imported.is_cut), (0, false));
    assert_eq!(
        spans(&back),
        [
            ("<script>", "read", 90, 90),
            ("main", "read", 100, 200),
            ("main (2)", "wait", 150, 250),
            ("main", "вверх", 250, 250),
            ("main", "вверх", 250, 300),
            ("<script>", "вверх", 300, 400),
        ]
    );
    let totals = |timeline: &Timeline| {
        let rows = timeline.totals(Grouping::State, None).into_iter();
        let name = |state: u32| timeline.states[state as usize].name.clone();
        rows.map(|row| (name(row.state), (row.total_ns, row.max_ns))).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(totals(&back), totals(&timeline));
    let processes =
        back.processes.iter().map(|process| (process.info.title(), process.info.command_line.as_str()));
    let expected = [("one 5 on here", "one -n 5"), ("two,\"quoted\" 6 on here", "two,\"quoted\" -n 5")];
    assert_eq!(processes.collect::<Vec<_>>(), expected.map(|(title, line)| (title.to_owned(), line)));
    assert_eq!(back.zero_unix_ns, Some(1_000_000));
    let read = arguments(&back, "read");
    assert_eq!((read["offset"].as_str(), read["file"].as_str()), ("-3", "a\"b"));
    let marks = |argument: &&trace::Argument| back.names[argument.name as usize] == "mark";
    assert_eq!(back.arguments.iter().filter(marks).count(), 2, "one span has no begin, one has no end");
    let categories = |timeline: &Timeline| {
        let states = timeline.states.iter().map(|state| (state.name.clone(), state.category.clone()));
        states.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(categories(&back), categories(&timeline));
    let counters: BTreeMap<&str, Vec<Amount>> = back.counts.iter().fold(BTreeMap::new(), |mut all, count| {
        let name = back.counters[count.counter as usize].name.as_str();
        all.entry(name).or_insert_with(Vec::new).push(count.value);
        all
    });
    assert_eq!(counters["main: queue"], [Amount::Integer(4096), Amount::Real(0.5)]);
    assert_eq!(counters["main: processor"], [Amount::Integer(3)]);
    assert_eq!(counters["main: voluntary context switches"], [Amount::Real(4.0)]);
    assert_eq!(back.flows.len(), 1);
    let flow = back.flows[0];
    assert_eq!((flow.from_ns, flow.to_ns), (150, 300), "the begins of the spans around the ends of the flow");
}

#[test]
fn a_trace_of_the_perfetto_sdk_is_read() {
    let (timeline, imported) = opened(include_bytes!("data/sdk.pftrace"));
    assert_eq!((imported.left_out, imported.is_cut), (1, false), "the record of the kernel is omitted");
    assert_eq!(
        spans(&timeline),
        [
            ("main", "Draw", 1_006_000, 1_041_000),
            ("main", "Raster", 1_016_000, 1_036_000),
            ("main", "Vsync", 1_042_000, 1_042_000),
            ("main", "Late", 1_100_000, 1_200_000),
        ]
    );
    assert_eq!(timeline.zero_unix_ns, Some(1_700_000_000_000_000_000 - 1_000_000));
    assert_eq!(timeline.processes[0].info.program, "renderer");
    assert_eq!(timeline.processes[0].info.number, ProcessNumber::Pid(4711));
    let categories = timeline.states.iter().map(|state| (state.name.as_str(), state.category.as_str()));
    assert!(
        categories.clone().any(|one| one == ("Draw", "cc"))
            && categories.clone().any(|one| one == ("Raster", "cc"))
    );
    let draw = arguments(&timeline, "Draw");
    let expected = [("rect.tags[0]", "a"), ("rect.tags[1]", "b"), ("rect.w", "640")];
    assert_eq!(
        draw.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(),
        expected
    );
    assert_eq!((timeline.counters[0].name.as_str(), timeline.counters[0].unit.as_str()), ("queue", "frames"));
    assert_eq!((timeline.counts[0].time_ns, timeline.counts[0].value), (1_043_000, Amount::Integer(42)));
    assert_eq!((timeline.flows[0].from_ns, timeline.flows[0].to_ns), (1_006_000, 1_016_000));
}

const CHROME: &str = r#"{"displayTimeUnit": "ns", "otherData": {"x": [1, {"y": null}]}, "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 12, "args": {"name": "compiler"}},
    {"ph": "M", "name": "thread_name", "pid": 12, "tid": 1, "args": {"name": "main"}},
    {"ph": "B", "name": "parse", "cat": "front", "pid": 12, "tid": 1, "ts": 1.5, "args": {"file": "a.c", "lines": 7}},
    {"ph": "X", "name": "expand", "pid": 12, "tid": 1, "ts": 2, "dur": 0.25},
    {"ph": "E", "pid": 12, "tid": 1, "ts": 4.001, "args": {"ok": true}},
    {"ph": "i", "name": "here", "pid": 12, "tid": "worker", "ts": 5, "s": "t"},
    {"ph": "C", "name": "memory", "pid": 12, "tid": 1, "ts": 6, "args": {"heap": 10, "stack": 2.5}},
    {"ph": "s", "name": "job", "cat": "q", "id": "0x1", "pid": 12, "tid": 1, "ts": 7},
    {"ph": "f", "name": "job", "cat": "q", "id": "0x1", "pid": 12, "tid": "worker", "ts": 8, "bp": "e"},
    {"ph": "b", "name": "request", "cat": "net", "id": 1, "pid": "gpu", "tid": 1, "ts": 10},
    {"ph": "b", "name": "request", "cat": "net", "id": 2, "pid": "gpu", "tid": 1, "ts": 11},
    {"ph": "e", "name": "request", "cat": "net", "id": 1, "pid": "gpu", "tid": 1, "ts": 13},
    {"ph": "e", "name": "request", "cat": "net", "id": 2, "pid": "gpu", "tid": 1, "ts": 12},
    {"ph": "N", "name": "object", "id": 3, "pid": 12, "tid": 1, "ts": 1},
    {"ph": "X", "name": "no time", "pid": 12, "tid": 1}
]}"#;

#[test]
fn the_json_of_chrome_is_read() {
    let (timeline, imported) = opened(CHROME.as_bytes());
    assert_eq!((imported.left_out, imported.is_cut), (2, false));
    assert_eq!(
        spans(&timeline),
        [
            ("main", "parse", 1500, 4001),
            ("main", "expand", 2000, 2250),
            ("thread worker", "here", 5000, 5000),
            ("request", "request", 10_000, 13_000),
            ("request", "request", 11_000, 12_000),
        ]
    );
    let parse = arguments(&timeline, "parse");
    assert_eq!((parse["file"].as_str(), parse["lines"].as_str(), parse["ok"].as_str()), ("a.c", "7", "true"));
    let titles: Vec<String> = timeline.processes.iter().map(|process| process.info.title()).collect();
    assert_eq!(titles, ["compiler 12", "gpu 1"]);
    let counters: Vec<&str> = timeline.counters.iter().map(|counter| counter.name.as_str()).collect();
    assert_eq!(counters, ["memory heap", "memory stack"]);
    assert_eq!((timeline.flows[0].from_ns, timeline.flows[0].to_ns), (7000, 8000));
}

#[test]
fn an_array_of_events_without_closing_bracket_is_read() {
    let array = r#" [ {"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2},
        {"ph":"X","name":"b","pid":1,"tid":1,"ts":4,"dur":2},"#;
    let (timeline, imported) = opened(array.as_bytes());
    assert_eq!((timeline.spans.len(), imported.is_cut), (2, true));
    let (timeline, imported) = opened(format!("\u{feff}{} {{}}]", array).as_bytes());
    assert_eq!((timeline.spans.len(), imported.is_cut, imported.left_out), (2, false, 1));
}

/// Returns the notes of an import.
fn notes(imported: &Imported) -> Vec<String> {
    imported.notes().collect()
}

#[test]
fn events_before_zero_shift_all_times() {
    let events = r#"[{"name":"w","ph":"X","pid":1,"tid":1,"ts":-5,"dur":50},{"name":"w","ph":"X","pid":1,"tid":1,"ts":100,"dur":10},
        {"name":"a","ph":"b","id":1,"pid":1,"ts":"-1.5"},{"name":"a","ph":"e","id":1,"pid":1,"ts":2}]"#;
    let (timeline, imported) = opened(events.as_bytes());
    let of_w = [("thread 1", "w", 0, 50_000), ("a", "a", 3500, 7000), ("thread 1", "w", 105_000, 115_000)];
    assert_eq!(spans(&timeline), of_w);
    assert_eq!(
        notes(&imported),
        ["the trace begins 0.000005000 s before time 0: all times were shifted by this amount"]
    );
}

#[test]
fn a_negative_duration_is_invalid_and_not_missing() {
    let events = r#"[{"name":"n","ph":"X","pid":1,"tid":1,"ts":100,"dur":-40},{"name":"ok","ph":"X","pid":1,"tid":1,"ts":200,"dur":10},
        {"name":"open","ph":"X","pid":1,"tid":1,"ts":205,"dur":null},{"name":"n","ph":"X","pid":1,"tid":1,"ts":1,"dur":"long"},
        {"name":"n","ph":"X","pid":1,"tid":1,"ts":"noon","dur":1},
        {"name":"a","ph":"b","id":1,"pid":1,"ts":9},{"name":"a","ph":"e","id":1,"pid":1,"ts":8}]"#;
    let (timeline, imported) = opened(events.as_bytes());
    assert_eq!(
        spans(&timeline),
        [("thread 1", "ok", 200_000, 210_000), ("thread 1", "open", 205_000, 210_000)]
    );
    let expected = "5 events are malformed, or have an invalid time or duration, and were omitted";
    assert_eq!(notes(&imported), [expected]);
}

#[test]
fn times_keep_every_digit() {
    let events = r#"[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1700000000000000.123,"dur":0.333},
        {"name":"b","ph":"X","pid":1,"tid":1,"ts":"1700000000000000.457","dur":1e-3},
        {"name":"c","ph":"X","pid":1,"tid":1,"ts":9007199254740993,"dur":1}]"#;
    let (timeline, _) = opened(events.as_bytes());
    let (a, c) = (1_700_000_000_000_000_123, 9_007_199_254_740_993_000);
    let expected =
        [("thread 1", "a", a, a + 333), ("thread 1", "b", a + 334, a + 335), ("thread 1", "c", c, c + 1000)];
    assert_eq!(spans(&timeline), expected);
}

#[test]
fn a_malformed_event_does_not_affect_others() {
    let comma = r#"{"traceEvents": [
        ,{"ph":"B","name":"write","pid":4,"tid":9,"ts":12}
        ,{"ph":"E","ts":31,"pid":4,"tid":9}
        ]}"#;
    let (timeline, imported) = opened(comma.as_bytes());
    assert_eq!(spans(&timeline), [("thread 9", "write", 12_000, 31_000)]);
    assert!(notes(&imported).is_empty());
    let odd = r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2},{"ph": nonsense},{"ph":"X","ts":1,},, 7, "x", [{}],
        {"ph":"X","name":"a","pid":1,"tid":1,"ts":4,"dur":2}]"#;
    let (timeline, imported) = opened(odd.as_bytes());
    assert_eq!((timeline.spans.len(), imported.malformed, imported.left_out), (2, 5, 0));
}

#[test]
fn lost_packets_of_perfetto_are_reported() {
    let mut trace = include_bytes!("data/sdk.pftrace").to_vec();
    // Packet of sequence 99 without flags, which reports that the previous packet was dropped. The first such packet of
    // a sequence does not count.
    let dropped = [0x0a, 7, 0x50, 99, 0x68, 0, 0xd0, 0x02, 1];
    trace.extend(dropped);
    assert_eq!(opened(&trace).1.losses, 0);
    trace.extend([dropped, dropped].concat());
    let texts = notes(&opened(&trace).1);
    assert!(
        texts[1].starts_with("incomplete: ") && texts[1].ends_with("lost further records 2 times"),
        "{texts:?}"
    );
}

#[test]
fn files_of_unknown_formats_and_of_our_format_are_not_imported() {
    for bytes in [&b"hello"[..], b"\n\n", b"PK\x03\x04", &[0x0a, 0xff, 0xff, 0xff]] {
        let mut reader = TraceReader::new(Limits::default());
        assert!(matches!(read_any(&mut reader, "x", bytes), Err(FormatError::Unknown)), "{bytes:?}");
    }
    let mut reader = TraceReader::new(Limits::default());
    assert!(matches!(read_any(&mut reader, "x", &b""[..]), Err(FormatError::Empty)));
    assert!(matches!(read_any(&mut reader, "x", &b"{\"a\": nonsense}"[..]), Err(FormatError::Json)));
    let refused = collect(&example()[..]).err().expect("the trace has our format");
    assert!(refused.to_string().contains("already"), "{refused}");
}

#[test]
fn a_truncated_perfetto_trace_is_read_or_unknown() {
    let (timeline, _) = opened(&example());
    let mut written = Vec::new();
    write_perfetto(&timeline, &mut written).unwrap();
    for length in 2..written.len() {
        let mut reader = TraceReader::new(Limits::default());
        match read_any(&mut reader, "x", &written[..length]) {
            Ok(imported) => assert!(imported.is_cut || imported.left_out == 0),
            Err(error) => assert!(matches!(error, FormatError::Unknown), "{error}"),
        }
    }
}

/// Computes totals from the CSV table, independently of the computation in the crate `trace`.
#[test]
fn totals_equal_those_of_the_csv_table() {
    let (timeline, _) = opened(&example());
    let mut table = Vec::new();
    write_csv(&timeline, TraceTable::Spans, &mut table).unwrap();
    let mut durations: BTreeMap<[String; 3], Vec<u64>> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(&table[..]);
    let head = "process,thread,state,category,begin_ns,end_ns,duration_ns,depth,mark,arguments,thread_number";
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), head);
    for row in reader.records().map(Result::unwrap).filter(|row| &row[8] != "no begin") {
        assert_eq!(
            row[6].parse::<u64>().unwrap(),
            row[5].parse::<u64>().unwrap() - row[4].parse::<u64>().unwrap()
        );
        let key = [0, 1, 2].map(|column| row[column].to_owned());
        durations.entry(key).or_default().push(row[6].parse().unwrap());
    }
    let totals = timeline.totals(Grouping::Thread, None);
    assert_eq!(totals.len(), durations.len());
    for row in totals {
        let thread = &timeline.threads[row.thread.unwrap() as usize];
        let title = timeline.processes[thread.process as usize].info.title();
        let of = &durations[&[title, thread.name.clone(), timeline.states[row.state as usize].name.clone()]];
        assert_eq!((row.count, row.total_ns), (of.len() as u64, of.iter().sum()));
        assert_eq!((row.mean_ns, row.max_ns), (row.total_ns / row.count, *of.iter().max().unwrap()));
    }
    assert_eq!(timeline.spans.mark.iter().filter(|mark| **mark == Mark::NoBegin).count(), 1);
    assert!(String::from_utf8(table).unwrap().contains(r#""{""file"":""a\""b"",""offset"":-3}""#));
}

#[test]
fn counts_and_flows_are_exported_as_csv() {
    let (timeline, _) = opened(&example());
    let written = |table| {
        let mut written = Vec::new();
        write_csv(&timeline, table, &mut written).unwrap();
        String::from_utf8(written).unwrap()
    };
    let process = "one 5 on here";
    let other = "\"two,\"\"quoted\"\" 6 on here\"";
    assert_eq!(
        written(TraceTable::Counts),
        format!(
            "process,thread,counter,unit,time_ns,value,thread_number\n\
            {process},main,queue,bytes,260,4096,0\n\
            {process},main,queue,bytes,270,0.5,0\n\
            {process},main,processor,,280,3,0\n\
            {other},<script>,processor,,400,0,1\n\
            {process},main,voluntary context switches,,290,4,0\n\
            {process},main,involuntary context switches,,290,1,0\n"
        )
    );
    assert_eq!(
        written(TraceTable::Flows),
        format!(
            "from_process,from_thread,from_ns,to_process,to_thread,to_ns,from_thread_number,to_thread_number\n\
            {process},main,160,{other},<script>,310,0,1\n"
        )
    );
}
