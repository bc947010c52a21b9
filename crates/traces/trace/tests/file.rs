//! Tests of files: written traces are read back unchanged, and truncated, damaged or inconsistent files are read as far
//! as possible.

use proptest::prelude::*;
use trace::{
    Alignment, Amount, ClockOffset, Colour, CounterId, CounterInfo, FileWriter, Limits, Mark, NameId, Note,
    NoteKind, ProcessId, ProcessInfo, ProcessNumber, ReadError, Record, RecordedEvent, RecordedValue,
    StateId, StateInfo, ThreadId, ThreadInfo, Timeline, TraceReader,
};

fn process(program: &str, zero_unix_ns: Option<u64>) -> ProcessInfo {
    ProcessInfo {
        host: "here".to_owned(),
        number: ProcessNumber::Pid(7),
        program: program.to_owned(),
        command_line: format!("{program} -x"),
        zero_unix_ns,
    }
}

fn state(name: &str) -> StateInfo {
    StateInfo { name: name.to_owned(), category: "io".to_owned(), colour: Some(Colour(1, 2, 3)) }
}

fn record(time_ns: u64, event: RecordedEvent) -> Record {
    Record { time_ns, event }
}

const READ: StateId = StateId(3);
const WAIT: StateId = StateId(900);

/// Returns a writer of a section with a process, a thread number 5 and two states.
fn writer() -> FileWriter<Vec<u8>> {
    let mut writer = FileWriter::new(Vec::new(), &process("psrs", None)).unwrap();
    writer.thread(ThreadId(5), &ThreadInfo { process: ProcessId(0), name: "main".to_owned() }).unwrap();
    writer.state(READ, &state("read")).unwrap();
    writer.state(WAIT, &state("wait")).unwrap();
    writer
}

fn with_records(records: &[Record]) -> Vec<u8> {
    let mut writer = writer();
    writer.records(ThreadId(5), records).unwrap();
    writer.into_inner()
}

fn read(bytes: &[u8]) -> Timeline {
    trace::read("x.tlv", bytes).unwrap()
}

/// Returns the spans as (state, begin, end, depth, mark).
fn spans(timeline: &Timeline) -> Vec<(&str, u64, u64, u8, Mark)> {
    let state = |state: u32| timeline.states[state as usize].name.as_str();
    let spans = timeline.spans.iter();
    spans.map(|span| (state(span.state), span.begin_ns, span.end_ns, span.depth, span.mark)).collect()
}

fn kinds(timeline: &Timeline) -> Vec<(NoteKind, u64)> {
    timeline.notes.iter().map(|note| (note.kind, note.count)).collect()
}

use RecordedEvent::{Argument, Begin, Count, End, FlowIn, FlowOut, Processor, Span, Switches};

#[test]
fn all_written_records_are_read_back() {
    let mut writer = writer();
    writer
        .counter(CounterId(1), &CounterInfo { name: "queue".to_owned(), unit: "bytes".to_owned() })
        .unwrap();
    writer.name(NameId(0), "offset").unwrap();
    writer.name(NameId(1), "file").unwrap();
    writer
        .thread(ThreadId(6), &ThreadInfo { process: ProcessId(0), name: "<b>\u{1b}[31mпоток".to_owned() })
        .unwrap();
    let main = [
        record(10, Begin(READ)),
        record(10, Argument(NameId(0), RecordedValue::Number(Amount::Integer(-4096)))),
        record(12, Begin(WAIT)),
        record(13, Count(CounterId(1), Amount::Real(0.5))),
        record(15, End(WAIT)),
        record(16, Argument(NameId(1), RecordedValue::Text("/a".to_owned()))),
        record(17, FlowOut(77)),
        record(17, Processor(3)),
        record(18, Switches { voluntary: 4, involuntary: 1 }),
        record(20, End(READ)),
    ];
    writer.records(ThreadId(5), &main).unwrap();
    let other = [
        record(30, FlowIn(77)),
        record(30, Span(READ, 5)),
        record(30, Argument(NameId(1), RecordedValue::Text("/a".to_owned()))),
    ];
    writer.records(ThreadId(6), &other).unwrap();
    writer.dropped(ThreadId(6), 9).unwrap();
    writer.flush().unwrap();
    let timeline = read(&writer.into_inner());
    assert_eq!(
        spans(&timeline),
        [
            ("read", 10, 20, 0, Mark::Whole),
            ("wait", 12, 15, 1, Mark::Whole),
            ("read", 30, 35, 0, Mark::Whole)
        ]
    );
    assert_eq!(timeline.processes.len(), 1);
    assert_eq!(timeline.processes[0].info, process("psrs", None));
    assert_eq!(timeline.processes[0].info.title(), "psrs 7 on here");
    let threads =
        timeline.threads.iter().map(|thread| (thread.name.as_str(), thread.dropped, thread.spans.clone()));
    assert_eq!(threads.collect::<Vec<_>>(), [("main", 0, 0..2), ("<b>\u{1b}[31mпоток", 9, 2..3)]);
    assert_eq!(timeline.states[0].colour, Some(Colour(1, 2, 3)));
    assert_eq!(timeline.counts.len(), 1);
    assert_eq!((timeline.counts[0].time_ns, timeline.counts[0].value), (13, Amount::Real(0.5)));
    let arguments =
        |span| timeline.arguments_of(span).iter().map(|argument| argument.value).collect::<Vec<_>>();
    assert_eq!(
        arguments(0),
        [trace::ArgumentValue::Number(Amount::Integer(-4096)), trace::ArgumentValue::Text(0)]
    );
    assert_eq!((arguments(1).len(), arguments(2)), (0, vec![trace::ArgumentValue::Text(0)]));
    assert_eq!(&*timeline.texts[0], "/a");
    let flow = trace::Flow { from_thread: 0, from_ns: 17, to_thread: 1, to_ns: 30 };
    assert_eq!(timeline.flows, [flow]);
    assert_eq!((timeline.processors[0].processor, timeline.switches[0].voluntary), (3, 4));
    assert_eq!(kinds(&timeline), [(NoteKind::Dropped, 9)]);
    assert_eq!(timeline.extent_ns(), Some((10, 35)));
}

#[test]
fn inconsistent_records_are_kept_and_marked() {
    let timeline = read(&with_records(&[
        record(10, End(READ)),
        record(20, Begin(READ)),
        record(15, Begin(StateId(1))),
        record(30, Begin(WAIT)),
        record(25, End(WAIT)),
        record(1 << 63, End(StateId(1))),
        record(u64::MAX, Count(CounterId(0), Amount::Integer(1))),
    ]));
    assert_eq!(
        spans(&timeline),
        [
            ("read", 10, 10, 0, Mark::NoBegin),
            ("state 1", 15, 1 << 63, 0, Mark::Whole),
            ("read", 20, u64::MAX, 1, Mark::Unfinished),
            ("wait", 30, 30, 2, Mark::Whole),
        ]
    );
    assert_eq!(
        kinds(&timeline),
        [
            (NoteKind::UndeclaredState, 1),
            (NoteKind::UndeclaredName, 1),
            (NoteKind::Backwards, 2),
            (NoteKind::EndWithoutBegin, 1),
            (NoteKind::Unfinished, 1),
            (NoteKind::EndBeforeBegin, 1),
        ]
    );
    assert!(timeline.notes.iter().all(|note| note.to_string().starts_with("x.tlv: ")));
}

#[test]
fn names_may_follow_their_use_and_states_may_overlap() {
    let mut writer = FileWriter::new(Vec::new(), &process("late", None)).unwrap();
    let records =
        [record(1, Begin(READ)), record(2, Begin(WAIT)), record(3, End(READ)), record(4, End(WAIT))];
    writer.records(ThreadId(0), &records).unwrap();
    writer.state(READ, &state("read")).unwrap();
    writer.state(WAIT, &state("wait")).unwrap();
    writer.process(ProcessId(2), &process("other", None)).unwrap();
    writer.thread(ThreadId(0), &ThreadInfo { process: ProcessId(2), name: "t".to_owned() }).unwrap();
    let timeline = read(&writer.into_inner());
    assert_eq!(spans(&timeline), [("read", 1, 3, 0, Mark::Whole), ("wait", 2, 4, 1, Mark::Whole)]);
    assert_eq!((timeline.threads[0].process, timeline.processes[1].threads.clone()), (1, 0..1));
    assert!(timeline.notes.is_empty(), "{:?}", timeline.notes);
}

#[test]
fn unfinished_spans_end_at_the_first_drop_of_records_after_their_begin() {
    let mut writer = writer();
    writer
        .records(ThreadId(5), &[record(10, Begin(READ)), record(20, Begin(WAIT)), record(30, Processor(1))])
        .unwrap();
    writer.dropped(ThreadId(5), 4).unwrap();
    writer
        .records(ThreadId(5), &[record(80, Span(WAIT, 5)), record(90, End(READ)), record(95, Begin(READ))])
        .unwrap();
    writer.records(ThreadId(6), &[record(100, Processor(1))]).unwrap();
    let timeline = read(&writer.into_inner());
    let expected = [
        ("read", 10, 90, 0, Mark::Whole),
        ("wait", 20, 30, 1, Mark::Unfinished),
        ("wait", 80, 85, 1, Mark::Whole),
        ("read", 95, 100, 0, Mark::Unfinished),
    ];
    assert_eq!(spans(&timeline), expected);
}

#[test]
fn a_truncated_file_is_read_up_to_its_end() {
    let mut records = Vec::new();
    for call in 0..1000 {
        records.extend([record(call * 10, Begin(READ)), record(call * 10 + 5, End(READ))]);
    }
    let mut writer = writer();
    records.chunks(100).for_each(|part| writer.records(ThreadId(5), part).unwrap());
    let whole = writer.into_inner();
    assert_eq!(read(&whole).spans.len(), 1000);
    let mut before = 0;
    for length in 0..whole.len() {
        match trace::read("x.tlv", &whole[..length]) {
            Ok(timeline) => {
                assert!(timeline.spans.len() >= before && timeline.spans.len() % 50 == 0);
                before = timeline.spans.len();
                let is_cut = |note: &Note| note.kind == NoteKind::Cut;
                assert!(timeline.notes.iter().filter(|note| !is_cut(note)).count() == 0);
            }
            Err(ReadError::NoTrace) => assert!(length < 16),
            Err(error) => panic!("{length}: {error}"),
        }
    }
    assert_eq!(before, 950);
}

#[test]
fn an_appended_section_is_read_after_a_whole_or_truncated_section() {
    let first = with_records(&[record(1, Span(READ, 2))]);
    let second = with_records(&[record(5, Span(WAIT, 2))]);
    for cut in [16, first.len() / 2, first.len() - 1] {
        let timeline = read(&[&first[..cut], &second].concat());
        assert_eq!(spans(&timeline), [("wait", 5, 7, 0, Mark::Whole)], "cut at {cut}");
        assert!(timeline.notes.iter().any(|note| note.kind == NoteKind::Damaged) || cut == 16);
    }
    let timeline = read(&[&first[..], &second].concat());
    assert_eq!(spans(&timeline).len(), 2);
    assert_eq!((timeline.processes.len(), timeline.states.len()), (2, 2));
    assert!(timeline.notes.is_empty());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tlv");
    for _ in 0..2 {
        let mut writer = FileWriter::append(&path, &process("again", None)).unwrap();
        writer.records(ThreadId(0), &[record(1, Span(READ, 2))]).unwrap();
    }
    let timeline = trace::read("a.tlv", std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((timeline.processes.len(), timeline.spans.len()), (2, 2));
    std::fs::write(&path, "a letter").unwrap();
    let refused = FileWriter::append(&path, &process("again", None)).err().expect("it is no trace");
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
}

#[test]
fn other_versions_and_other_files_are_rejected() {
    let mut bytes = with_records(&[]);
    bytes[8] = 2;
    assert!(trace::is_trace(&bytes[..8]));
    assert!(matches!(trace::read("x", &bytes[..]), Err(ReadError::NoTrace)), "the header is damaged");
    let sum = twox_hash::XxHash3_64::oneshot(&bytes[..12]) as u32;
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    match trace::read("x", &bytes[..]) {
        Err(ReadError::Version(2)) => {}
        other => panic!("{other:?}"),
    }
    let first = with_records(&[record(1, Span(READ, 2))]);
    let timeline = read(&[&first[..], &bytes, &first].concat());
    assert_eq!(timeline.spans.len(), 2);
    assert_eq!(kinds(&timeline), [(NoteKind::OtherVersion, 1)]);
    for no_trace in [&b""[..], b"{}", &[0; 100], &[0xff; 100], b"\x89TLV"] {
        assert!(matches!(trace::read("x", no_trace), Err(ReadError::NoTrace)));
        assert!(!trace::is_trace(no_trace));
    }
}

#[test]
fn a_file_of_version_1_equals_the_stored_bytes() {
    let bytes = with_records(&[record(300, Begin(READ)), record(301, End(READ))]);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, include_str!("version-1.hex").split_whitespace().collect::<String>());
}

#[test]
fn times_of_several_files_are_aligned_on_one_clock() {
    let file = |zero: Option<u64>, offset: Option<ClockOffset>| {
        let mut writer = FileWriter::new(Vec::new(), &process("p", zero)).unwrap();
        if let Some(offset) = offset {
            writer.clock_offset(ProcessId(0), ClockOffset { offset_ns: 1, uncertainty_ns: 900 }).unwrap();
            writer.clock_offset(ProcessId(0), offset).unwrap();
        }
        writer.state(READ, &state("read")).unwrap();
        writer.records(ThreadId(0), &[record(100, Span(READ, 10)), record(100, FlowOut(1))]).unwrap();
        writer.records(ThreadId(1), &[record(150, FlowIn(1))]).unwrap();
        writer.into_inner()
    };
    let merged = |files: &[Vec<u8>], alignment| {
        let mut reader = TraceReader::new(Limits::default());
        files.iter().enumerate().for_each(|(n, file)| reader.read(&format!("{n}"), &file[..]).unwrap());
        reader.finish(alignment)
    };
    let begins = |timeline: &Timeline| timeline.spans.begin_ns.clone();
    let offset = ClockOffset { offset_ns: -500, uncertainty_ns: 20 };
    let files = [file(Some(5000), None), file(Some(9000), Some(offset))];
    let timeline = merged(&files, Alignment::WallClock);
    assert_eq!((begins(&timeline), timeline.zero_unix_ns), (vec![100, 3600], Some(5000)));
    assert_eq!(timeline.processes[1].uncertainty_ns, Some(20));
    assert_eq!(timeline.flows.len(), 2);
    assert_eq!(timeline.states.len(), 1, "both files declare the same state");
    let timeline = merged(&files, Alignment::Starts);
    assert_eq!((begins(&timeline), timeline.zero_unix_ns), (vec![0, 0], None));
    assert!(timeline.flows.iter().all(|flow| (flow.from_ns, flow.to_ns) == (0, 50)), "{:?}", timeline.flows);
    let timeline = merged(&[file(Some(5000), None), file(None, None)], Alignment::WallClock);
    assert_eq!(begins(&timeline), [100, 100]);
    assert!(kinds(&timeline).contains(&(NoteKind::ClockUnknown, 1)));
    let timeline = merged(&[file(None, None), file(None, None)], Alignment::WallClock);
    assert!(
        timeline.notes.iter().all(|note| note.kind == NoteKind::UndeclaredThread),
        "{:?}",
        timeline.notes
    );
}

#[test]
fn a_file_is_followed_while_it_grows() {
    let bytes = with_records(&[record(1, Begin(READ)), record(4, Count(CounterId(0), Amount::Integer(1)))]);
    let more = with_records(&[record(9, Span(READ, 1))]);
    let mut reader = TraceReader::new(Limits::default());
    let file = reader.add("x");
    for byte in &bytes {
        reader.feed(file, &[*byte]).unwrap();
    }
    assert_eq!(spans(&reader.clone().finish(Alignment::WallClock)), [("read", 1, 4, 0, Mark::Unfinished)]);
    reader.feed(file, &more).unwrap();
    reader.end(file).unwrap();
    assert_eq!(reader.finish(Alignment::WallClock).spans.len(), 2);
}

#[test]
fn records_beyond_the_limits_are_omitted_and_noted() {
    let mut writer = writer();
    for thread in 10..1000 {
        writer
            .thread(ThreadId(thread), &ThreadInfo { process: ProcessId(0), name: "x".repeat(100) })
            .unwrap();
        writer.records(ThreadId(thread), &[record(1, Span(READ, 1))]).unwrap();
    }
    let bytes = writer.into_inner();
    let read = |limits| {
        let mut reader = TraceReader::new(limits);
        reader.read("x", &bytes[..]).unwrap();
        reader.finish(Alignment::WallClock)
    };
    let timeline = read(Limits { declarations: 100, ..Limits::default() });
    assert_eq!(timeline.threads.len(), 97);
    assert!(kinds(&timeline).contains(&(NoteKind::DeclarationsLeftOut, 2 * 894)), "{:?}", timeline.notes);
    let timeline = read(Limits { records: 10, ..Limits::default() });
    assert_eq!(timeline.spans.len(), 10);
    assert!(kinds(&timeline).contains(&(NoteKind::RecordsLeftOut, 980)), "{:?}", timeline.notes);
    let timeline = read(Limits { text_bytes: 5000, ..Limits::default() });
    assert_eq!(timeline.spans.len(), 990);
    assert!(timeline.threads.iter().map(|thread| thread.name.len()).sum::<usize>() < 20_000);
}

#[test]
fn long_texts_are_truncated_between_characters() {
    let mut writer = writer();
    writer.name(NameId(0), &"ä".repeat(5000)).unwrap();
    let text = RecordedValue::Text(format!("x{}", "ä".repeat(5000)));
    writer.records(ThreadId(5), &[record(1, Span(READ, 1)), record(1, Argument(NameId(0), text))]).unwrap();
    let timeline = read(&writer.into_inner());
    assert_eq!(timeline.names, ["ä".repeat(2048)]);
    assert_eq!(timeline.texts[0].len(), 4095);
}

#[test]
fn a_record_takes_less_than_five_bytes() {
    let call = |n: u64| [record(n * 3000, Begin(READ)), record(n * 3000 + 1200, End(READ))];
    let records: Vec<Record> = (0..100_000).flat_map(call).collect();
    let per_record = (with_records(&records).len() - with_records(&[]).len()) as f64 / records.len() as f64;
    assert!(per_record < 5.0, "{per_record} bytes");
}

/// A million begins and a million ends without a begin, at equal times, take bounded time.
#[test]
fn a_million_unfinished_spans_are_read() {
    let begins: Vec<Record> = (0..1_000_000).map(|_| record(1, Begin(READ))).collect();
    let ends = (0..1_000_000).map(|_| record(2, End(WAIT)));
    let timeline = read(&with_records(&begins.into_iter().chain(ends).collect::<Vec<_>>()));
    assert_eq!(timeline.spans.len(), 2_000_000);
    assert_eq!(timeline.spans.depth.iter().max(), Some(&255));
}

fn events() -> impl Strategy<Value = RecordedEvent> {
    let id = || 0..4u32;
    let number = prop_oneof![any::<i64>().prop_map(Amount::Integer), (-1e300..1e300).prop_map(Amount::Real)];
    let value =
        prop_oneof![number.clone().prop_map(RecordedValue::Number), ".{0,9}".prop_map(RecordedValue::Text)];
    prop_oneof![
        4 => id().prop_map(|id| Begin(StateId(id))),
        4 => id().prop_map(|id| End(StateId(id))),
        2 => (id(), any::<u64>()).prop_map(|(id, duration)| Span(StateId(id), duration)),
        1 => (id(), number).prop_map(|(id, number)| Count(CounterId(id), number)),
        2 => (id(), value).prop_map(|(id, value)| Argument(NameId(id), value)),
        1 => any::<u32>().prop_map(Processor),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(voluntary, involuntary)| Switches { voluntary, involuntary }),
    ]
}

fn threads() -> impl Strategy<Value = Vec<(u32, Vec<Record>)>> {
    let time = prop_oneof![0..50u64, any::<u64>()];
    let record = (time, events()).prop_map(|(time_ns, event)| record(time_ns, event));
    prop::collection::vec((0..3u32, prop::collection::vec(record, 0..20)), 0..12)
}

/// Expected spans of one thread as (state, begin, end, number of arguments), found by a backward search for the begin
/// of each end. An unfinished span has no end; an end without a begin has no begin.
type Expected = Vec<(u32, Option<u64>, Option<u64>, usize)>;

fn expected(records: &[Record]) -> Expected {
    let mut spans: Expected = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut last_span = None;
    for Record { time_ns, event } in records {
        match event {
            Begin(StateId(state)) => {
                open.push(spans.len());
                spans.push((*state, Some(*time_ns), None, 0));
                last_span = None;
            }
            End(StateId(state)) => {
                last_span = None;
                match open.iter().rposition(|index| spans[*index].0 == *state) {
                    Some(at) => {
                        let span = &mut spans[open.remove(at)];
                        span.2 = Some((*time_ns).max(span.1.unwrap()));
                    }
                    None => spans.push((*state, None, Some(*time_ns), 0)),
                }
            }
            Span(StateId(state), duration) => {
                last_span = Some((spans.len(), *time_ns));
                spans.push((*state, Some(*time_ns), Some(time_ns.saturating_add(*duration)), 0));
            }
            Argument(..) => {
                let last_span = last_span.filter(|(_, time)| time == time_ns).map(|(span, _)| span);
                if let Some(span) = last_span.or(open.last().copied()) {
                    spans[span].3 += 1;
                }
            }
            _ => {}
        }
    }
    spans.sort();
    spans
}

proptest! {
    #[test]
    fn any_written_trace_is_read_back(parts in threads()) {
        let mut writer = FileWriter::new(Vec::new(), &process("any", None)).unwrap();
        for (thread, records) in &parts {
            writer.records(ThreadId(*thread), records).unwrap();
        }
        for id in 0..4 {
            writer.state(StateId(id), &state(&id.to_string())).unwrap();
            writer.thread(ThreadId(id), &ThreadInfo { process: ProcessId(0), name: id.to_string() }).unwrap();
        }
        let timeline = read(&writer.into_inner());
        let records_of = |thread: u32| -> Vec<Record> {
            parts.iter().filter(|(of, _)| *of == thread).flat_map(|(_, records)| records.clone()).collect()
        };
        for (index, thread) in timeline.threads.iter().enumerate() {
            let mut found: Expected = Vec::new();
            for span in thread.spans.clone() {
                let arguments = timeline.arguments_of(span).len();
                let span = timeline.spans.get(span);
                prop_assert_eq!(span.thread as usize, index);
                let begin = (span.mark != Mark::NoBegin).then_some(span.begin_ns);
                let end = (span.mark != Mark::Unfinished).then_some(span.end_ns);
                let state = timeline.states[span.state as usize].name.parse().unwrap();
                found.push((state, begin, end, arguments));
            }
            found.sort();
            let records = records_of(thread.name.parse().unwrap());
            prop_assert_eq!(found, expected(&records));
            let switches: Vec<_> = records.iter().filter(|record| matches!(record.event, Switches { .. })).collect();
            let of_thread = timeline.switches.iter().filter(|switch| switch.thread as usize == index);
            prop_assert_eq!(of_thread.count(), switches.len());
        }
        let all = parts.iter().flat_map(|(_, records)| records);
        let mut counted: Vec<String> = Vec::new();
        for Record { time_ns, event } in all {
            if let Count(_, value) = event {
                counted.push(format!("{time_ns} {value:?}"));
            }
        }
        let mut counts: Vec<String> =
            timeline.counts.iter().map(|count| format!("{} {:?}", count.time_ns, count.value)).collect();
        counts.sort();
        counted.sort();
        prop_assert_eq!(counts, counted);
    }

    #[test]
    fn spans_of_one_depth_do_not_overlap(parts in threads()) {
        let mut writer = writer();
        for (thread, records) in &parts {
            writer.records(ThreadId(*thread), records).unwrap();
        }
        let timeline = read(&writer.into_inner());
        for thread in &timeline.threads {
            let mut ends = [0; 256];
            for span in timeline.spans.iter().skip(thread.spans.start).take(thread.spans.len()) {
                prop_assert!(ends[usize::from(span.depth)] <= span.begin_ns && span.begin_ns <= span.end_ns);
                ends[usize::from(span.depth)] = span.end_ns;
            }
        }
    }
}
