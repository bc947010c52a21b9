//! Fuzz test: the reader rejects any input, or reads it into ordered columns within the limits.

use trace::{
    Alignment, Amount, ClockOffset, CounterId, CounterInfo, FileWriter, Limits, NameId, ProcessId,
    ProcessInfo, ProcessNumber, Record, RecordedEvent, RecordedValue, StateId, StateInfo, ThreadId,
    ThreadInfo, TraceReader,
};

fn section(zero_unix_ns: Option<u64>) -> Vec<u8> {
    let process = ProcessInfo {
        host: "h".to_owned(),
        number: ProcessNumber::Pid(1),
        program: "p".to_owned(),
        command_line: String::new(),
        zero_unix_ns,
    };
    let mut writer = FileWriter::new(Vec::new(), &process).expect("memory");
    let thread = ThreadInfo { process: ProcessId(0), name: "t".to_owned() };
    writer.thread(ThreadId(0), &thread).expect("memory");
    let state = StateInfo { name: "s".to_owned(), category: String::new(), colour: None };
    writer.state(StateId(0), &state).expect("memory");
    writer.name(NameId(0), "n").expect("memory");
    writer.counter(CounterId(0), &CounterInfo { name: "c".to_owned(), unit: String::new() }).expect("memory");
    let events = [
        RecordedEvent::Begin(StateId(0)),
        RecordedEvent::Argument(NameId(0), RecordedValue::Text("v".to_owned())),
        RecordedEvent::FlowOut(1),
        RecordedEvent::End(StateId(0)),
        RecordedEvent::Span(StateId(1), 7),
        RecordedEvent::Count(CounterId(0), Amount::Real(1.5)),
        RecordedEvent::FlowIn(1),
        RecordedEvent::Processor(1),
        RecordedEvent::Switches { voluntary: 1, involuntary: 2 },
    ];
    let records = (1..).zip(events).map(|(time_ns, event)| Record { time_ns, event }).collect::<Vec<_>>();
    writer.records(ThreadId(0), &records).expect("memory");
    writer.dropped(ThreadId(0), 3).expect("memory");
    writer.clock_offset(ProcessId(0), ClockOffset { offset_ns: -1, uncertainty_ns: 2 }).expect("memory");
    writer.into_inner()
}

fn look_at(bytes: &[u8]) {
    let limits = Limits { records: 100, declarations: 20, text_bytes: 1000 };
    let mut reader = TraceReader::new(limits);
    if let Err(error) = reader.read("x", bytes) {
        return assert!(!error.to_string().is_empty());
    }
    // Reading in two pieces has the same result.
    let mut again = TraceReader::new(limits);
    let file = again.add("x");
    let (one, other) = bytes.split_at(bytes.len() / 2);
    [one, other].into_iter().for_each(|part| again.feed(file, part).expect("readable in one piece"));
    again.end(file).expect("readable in one piece");
    for alignment in [Alignment::WallClock, Alignment::Starts] {
        let timeline = reader.clone().finish(alignment);
        assert_eq!(format!("{timeline:?}"), format!("{:?}", again.clone().finish(alignment)));
        let spans = &timeline.spans;
        assert!(spans.len() <= 100 && timeline.threads.len() <= 20);
        assert_eq!(spans.depth.len(), spans.len());
        for (index, thread) in timeline.threads.iter().enumerate() {
            assert!(timeline.processes[thread.process as usize].threads.contains(&index));
            assert!(thread.spans.clone().all(|span| spans.thread[span] as usize == index));
            assert!(spans.begin_ns[thread.spans.clone()].is_sorted());
        }
        assert!(spans.iter().all(|span| span.begin_ns <= span.end_ns));
        assert!(timeline.arguments.iter().all(|argument| (argument.span as usize) < spans.len()));
        assert!(timeline.notes.iter().all(|note| !note.to_string().is_empty()));
    }
}

#[test]
fn traces() {
    fuzz::target!("traces", |input| {
        look_at(input);
        let (known, unknown) = (section(Some(1000)), section(None));
        let examples = [known.clone(), unknown.clone(), [known, unknown].concat()];
        look_at(&fuzz::changed(&examples, input));
        // The checksum detects a change within a chunk, so this input changes the content before the checksum is
        // computed.
        look_at(&with_content(input));
    });
}

/// Returns a section with one chunk of each kind, each with this content.
fn with_content(content: &[u8]) -> Vec<u8> {
    let mut bytes = section(None);
    for kind in 0..10 {
        let start = bytes.len();
        bytes.push(kind);
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
        let sum = twox_hash::XxHash3_64::oneshot(&bytes[start..]) as u32;
        bytes.extend(sum.to_le_bytes());
    }
    bytes
}
