//! Columns for the page: an encoding of the displayed contents of a timeline, in drawing order.
//!
//! ```text
//!   "TLVCOL01"
//!   4 bytes     the length of the header, little-endian
//!   header      JSON: names and counts, see `Header`
//!   columns     one after the other, as follows
//! ```
//!
//! Numbers are varints: seven bits per byte, the lowest bits first; the highest bit is set if more bytes follow. Times
//! are nanoseconds after the first time of the timeline. A *tier* is one depth of one thread; its spans do not overlap.
//!
//! | column | a number for | |
//! |---|---|---|
//! | threads | each tier | as the difference from the previous tier |
//! | depths | each tier | |
//! | counts | each tier | number of its spans |
//! | spans | each span, tier by tier | two: time since the end of the previous span in the tier, or 0; length |
//! | states | each span | |
//! | unfinished | each unfinished span | index of the span, as the difference from the previous index |
//! | series | each sample | for each series: times, as differences, then values, as IEEE 754 doubles |
//! | arguments | each argument | spans, as differences; names; texts, from 1, 0 for numbers; the numbers, as series |
//! | flows | each flow | departing threads; departure times, as differences; arriving threads; delays, zigzag |
//!
//! The page computes in floating point: times are exact to the nanosecond up to 104 days after the first time, and
//! integers are exact up to 2^53.

use std::collections::BTreeMap;

use serde::Serialize;
use trace::{Amount, ArgumentValue, Mark, ProcessNumber, Spans, Timeline, TracedProcess};
use trace_formats::Imported;

const MAGIC: &[u8; 8] = b"TLVCOL01";

/// Header for the page, before the columns.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    files: Vec<FileHeader<'a>>,
    processes: Vec<ProcessHeader>,
    threads: Vec<ThreadHeader<'a>>,
    states: Vec<StateHeader<'a>>,
    names: &'a [String],
    texts: Vec<&'a str>,
    /// Decimal text, because JavaScript would round a number.
    wall_clock: Option<String>,
    end: u64,
    tiers: usize,
    spans: usize,
    unfinished: usize,
    series: Vec<SeriesHeader<'a>>,
    arguments: usize,
    flows: usize,
}

#[derive(Serialize)]
struct FileHeader<'a> {
    name: &'a str,
    begin: u64,
    end: u64,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct ProcessHeader {
    name: String,
    file: u32,
    facts: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct ThreadHeader<'a> {
    name: &'a str,
    process: u32,
    dropped: u64,
}

#[derive(Serialize)]
struct StateHeader<'a> {
    name: &'a str,
    category: &'a str,
    color: Option<String>,
}

#[derive(Serialize)]
struct SeriesHeader<'a> {
    name: &'a str,
    unit: &'a str,
    thread: u32,
    system: bool,
    count: usize,
}

/// Values of one thread's counter over time.
struct Series<'a> {
    header: SeriesHeader<'a>,
    samples: Vec<(u64, f64)>,
}

/// Returns the columns of a timeline; `imported` has the results of the imported files.
pub(crate) fn columns(timeline: &Timeline, imported: &[Imported]) -> Vec<u8> {
    let (origin, end) = timeline.extent_ns().unwrap_or_default();
    let tiers = Tiers::of(timeline);
    let series = series(timeline);
    let texts = Texts::of(timeline);
    let unfinished: Vec<_> =
        (0..tiers.spans.len()).filter(|&at| tiers.mark(timeline, at) == Mark::Unfinished).collect();
    let mut arguments: Vec<_> = timeline.arguments.iter().collect();
    let place = |span: u32| tiers.place[span as usize];
    arguments.retain(|argument| place(argument.span) != Tiers::NOWHERE);
    arguments.sort_by_key(|argument| place(argument.span));

    let mut columns = Columns { origin, bytes: Vec::new() };
    columns.tiers(&timeline.spans, &tiers);
    columns.differences(unfinished.iter().map(|&at| at as u64));
    for Series { samples, .. } in &series {
        columns.differences(samples.iter().map(|&(time, _)| time.saturating_sub(origin)));
        columns.floats(samples.iter().map(|&(_, value)| value));
    }
    columns.differences(arguments.iter().map(|argument| place(argument.span).into()));
    columns.numbers(arguments.iter().map(|argument| argument.name.into()));
    columns.numbers(arguments.iter().map(|argument| texts.number(argument.value)));
    columns.floats(arguments.iter().filter_map(|argument| match argument.value {
        ArgumentValue::Number(number) => Some(float(number)),
        ArgumentValue::Text(_) => None,
    }));
    columns.flows(timeline);

    let header = Header {
        files: files(timeline, origin, imported, tiers.left_out),
        processes: timeline.processes.iter().map(process).collect(),
        threads: timeline
            .threads
            .iter()
            .map(|thread| ThreadHeader {
                name: &thread.name,
                process: thread.process,
                dropped: thread.dropped,
            })
            .collect(),
        states: timeline
            .states
            .iter()
            .map(|state| StateHeader {
                name: &state.name,
                category: &state.category,
                color: state.colour.map(|its| format!("#{:02x}{:02x}{:02x}", its.0, its.1, its.2)),
            })
            .collect(),
        names: &timeline.names,
        texts: texts.used.iter().map(|&text| &*timeline.texts[text as usize]).collect(),
        wall_clock: timeline.zero_unix_ns.map(|zero| (u128::from(zero) + u128::from(origin)).to_string()),
        end: end - origin,
        tiers: tiers.tiers.len(),
        spans: tiers.spans.len(),
        unfinished: unfinished.len(),
        series: series.into_iter().map(|series| series.header).collect(),
        arguments: arguments.len(),
        flows: timeline.flows.len(),
    };
    let header = serde_json::to_vec(&header).expect("every header is valid JSON");
    let length = u32::try_from(header.len()).expect("names are bounded by the reader").to_le_bytes();
    [MAGIC, &length[..], &header, &columns.bytes].concat()
}

/// Order of spans in the columns.
struct Tiers {
    /// Thread, depth and number of spans of each tier.
    tiers: Vec<(u32, u8, u32)>,
    /// Timeline indices of the spans, tier by tier.
    spans: Vec<u32>,
    /// Position among `spans` of each span of the timeline.
    place: Vec<u32>,
    /// Number of spans omitted because they are nested too deeply.
    left_out: u64,
}

impl Tiers {
    const NOWHERE: u32 = u32::MAX;

    fn of(timeline: &Timeline) -> Self {
        let spans = &timeline.spans;
        let mut made = Tiers {
            tiers: Vec::new(),
            spans: Vec::new(),
            place: vec![Self::NOWHERE; spans.len()],
            left_out: 0,
        };
        let mut depths: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for (index, thread) in timeline.threads.iter().enumerate() {
            for span in thread.spans.clone() {
                let tier = depths.entry(spans.depth[span]).or_default();
                let before = tier.last().map_or(0, |&last| spans.end_ns[last as usize]);
                match spans.mark[span] {
                    // Excluded from the page; a note on the file reports such spans.
                    Mark::NoBegin => {}
                    _ if spans.begin_ns[span] < before => made.left_out += 1,
                    _ => tier.push(span as u32),
                }
            }
            for (depth, tier) in std::mem::take(&mut depths) {
                if !tier.is_empty() {
                    made.add(index as u32, depth, &tier);
                }
            }
        }
        made
    }

    fn add(&mut self, thread: u32, depth: u8, tier: &[u32]) {
        for &span in tier {
            self.place[span as usize] = self.spans.len() as u32;
            self.spans.push(span);
        }
        self.tiers.push((thread, depth, tier.len() as u32));
    }

    fn mark(&self, timeline: &Timeline, at: usize) -> Mark {
        timeline.spans.mark[self.spans[at] as usize]
    }
}

/// Texts used as values of arguments.
struct Texts {
    used: Vec<u32>,
    /// Number of each used text of the timeline, from 1.
    numbers: BTreeMap<u32, u64>,
}

impl Texts {
    fn of(timeline: &Timeline) -> Self {
        let mut texts = Texts { used: Vec::new(), numbers: BTreeMap::new() };
        for argument in &timeline.arguments {
            if let ArgumentValue::Text(text) = argument.value {
                texts.numbers.entry(text).or_insert_with(|| {
                    texts.used.push(text);
                    texts.used.len() as u64
                });
            }
        }
        texts
    }

    fn number(&self, value: ArgumentValue) -> u64 {
        match value {
            ArgumentValue::Number(_) => 0,
            ArgumentValue::Text(text) => self.numbers[&text],
        }
    }
}

/// Returns the counters, and the data of the operating system about threads, each with its samples.
fn series(timeline: &Timeline) -> Vec<Series<'_>> {
    let made = |name, unit, thread, system, samples: Vec<_>| Series {
        header: SeriesHeader { name, unit, thread, system, count: samples.len() },
        samples,
    };
    let mut series = Vec::new();
    for of_one in
        timeline.counts.chunk_by(|one, next| (one.counter, one.thread) == (next.counter, next.thread))
    {
        let counter = &timeline.counters[of_one[0].counter as usize];
        let samples = of_one.iter().map(|count| (count.time_ns, float(count.value))).collect();
        series.push(made(&counter.name, &counter.unit, of_one[0].thread, false, samples));
    }
    for of_one in timeline.processors.chunk_by(|one, next| one.thread == next.thread) {
        let samples = of_one.iter().map(|on| (on.time_ns, f64::from(on.processor))).collect();
        series.push(made("processor", "", of_one[0].thread, true, samples));
    }
    for of_one in timeline.switches.chunk_by(|one, next| one.thread == next.thread) {
        let thread = of_one[0].thread;
        let samples = |of: fn(&trace::SwitchCount) -> u64| {
            of_one.iter().map(|at| (at.time_ns, of(at) as f64)).collect()
        };
        series.push(made("switches: voluntary", "", thread, true, samples(|at| at.voluntary)));
        series.push(made("switches: involuntary", "", thread, true, samples(|at| at.involuntary)));
    }
    series
}

fn float(number: Amount) -> f64 {
    match number {
        Amount::Integer(number) => number as f64,
        Amount::Real(number) => number,
    }
}

fn process(TracedProcess { file, info, uncertainty_ns, .. }: &TracedProcess) -> ProcessHeader {
    let mut facts = vec![match info.number {
        ProcessNumber::Pid(pid) => ("process", pid.to_string()),
        ProcessNumber::Node(node) => ("node", node.to_string()),
    }];
    for (label, text) in [("host", &info.host), ("command line", &info.command_line)] {
        if !text.is_empty() {
            facts.push((label, text.clone()));
        }
    }
    if let Some(uncertainty) = uncertainty_ns {
        facts.push(("clock", format!("accurate to within {uncertainty} ns")));
    }
    ProcessHeader { name: info.title(), file: *file, facts }
}

fn files<'a>(
    timeline: &'a Timeline,
    origin: u64,
    imported: &[Imported],
    left_out: u64,
) -> Vec<FileHeader<'a>> {
    let file_of =
        |thread: u32| timeline.processes[timeline.threads[thread as usize].process as usize].file as usize;
    let mut extents = vec![None; timeline.files.len()];
    let mut extend = |file: usize, begin: u64, end: u64| {
        let extent: &mut Option<(u64, u64)> = &mut extents[file];
        let (least, largest) = extent.unwrap_or((begin, end));
        *extent = Some((least.min(begin), largest.max(end)));
    };
    let spans = &timeline.spans;
    for (index, thread) in timeline.threads.iter().enumerate() {
        let file = file_of(index as u32);
        let ends =
            spans.begin_ns[thread.spans.clone()].first().zip(spans.end_ns[thread.spans.clone()].iter().max());
        if let Some((&begin, &end)) = ends {
            extend(file, begin, end);
        }
    }
    for count in &timeline.counts {
        extend(file_of(count.thread), count.time_ns, count.time_ns);
    }
    let mut headers = Vec::new();
    for (name, extent) in timeline.files.iter().zip(extents) {
        let (begin, end) = extent.unwrap_or((origin, origin));
        headers.push(FileHeader { name, begin: begin - origin, end: end - origin, notes: Vec::new() });
    }
    for note in &timeline.notes {
        if let Some(header) = headers.iter_mut().find(|header| *header.name == note.file) {
            let text = note.to_string();
            let prefix = format!("{}: ", note.file);
            header.notes.push(text.strip_prefix(&prefix).unwrap_or(&text).to_owned());
        }
    }
    for (header, imported) in headers.iter_mut().zip(imported) {
        header.notes.extend(imported.notes());
    }
    if left_out > 0
        && let Some(header) = headers.first_mut()
    {
        let deepest = Spans::DEPTH_MAX;
        header
            .notes
            .push(format!("{left_out} calls are nested more than {deepest} levels deep and not shown"));
    }
    headers
}

/// Growing columns.
struct Columns {
    origin: u64,
    bytes: Vec<u8>,
}

impl Columns {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn numbers(&mut self, numbers: impl Iterator<Item = u64>) {
        numbers.for_each(|number| self.number(number));
    }

    /// Appends ascending numbers, each as the difference from the previous number.
    fn differences(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut last = 0;
        for number in numbers {
            self.number(number - last);
            last = number;
        }
    }

    fn floats(&mut self, floats: impl Iterator<Item = f64>) {
        self.bytes.extend(floats.flat_map(f64::to_le_bytes));
    }

    fn tiers(&mut self, spans: &Spans, Tiers { tiers, spans: order, .. }: &Tiers) {
        self.differences(tiers.iter().map(|&(thread, ..)| thread.into()));
        self.numbers(tiers.iter().map(|&(_, depth, _)| depth.into()));
        self.numbers(tiers.iter().map(|&(.., count)| count.into()));
        let mut left = &order[..];
        for &(.., count) in tiers {
            let (tier, others) = left.split_at(count as usize);
            let mut last = self.origin;
            for &span in tier {
                let (begin, end) = (spans.begin_ns[span as usize], spans.end_ns[span as usize]);
                self.number(begin - last);
                self.number(end - begin);
                last = end;
            }
            left = others;
        }
        self.numbers(order.iter().map(|&span| spans.state[span as usize].into()));
    }

    fn flows(&mut self, Timeline { flows, .. }: &Timeline) {
        let origin = self.origin;
        self.numbers(flows.iter().map(|flow| flow.from_thread.into()));
        self.differences(flows.iter().map(|flow| flow.from_ns.saturating_sub(origin)));
        self.numbers(flows.iter().map(|flow| flow.to_thread.into()));
        self.numbers(flows.iter().map(|flow| {
            let later = flow.to_ns.wrapping_sub(flow.from_ns) as i64;
            ((later << 1) ^ (later >> 63)) as u64
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trace::{
        Alignment, CounterId, FileWriter, Limits, NameId, ProcessInfo, Record, RecordedEvent, RecordedValue,
        StateId, ThreadId, TraceReader,
    };

    use super::*;

    fn timeline(records: &[(u32, Record)]) -> Timeline {
        let info = ProcessInfo {
            host: String::new(),
            number: ProcessNumber::Node(1),
            program: "p".to_owned(),
            command_line: String::new(),
            zero_unix_ns: None,
        };
        let mut writer = FileWriter::new(Vec::new(), &info).unwrap();
        for (thread, record) in records {
            writer.records(ThreadId(*thread), std::slice::from_ref(record)).unwrap();
        }
        let mut reader = TraceReader::new(Limits::default());
        reader.read("a", &writer.into_inner()[..]).unwrap();
        reader.finish(Alignment::WallClock)
    }

    /// Decodes the spans of the columns as (thread, state, begin, end); times are relative to the origin.
    fn spans(bytes: &[u8]) -> Vec<(u64, u64, u64, u64)> {
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[12..12 + length]).unwrap();
        let mut rest = bytes[12 + length..].iter();
        let mut number = || {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = *rest.next().unwrap();
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        let tiers = header["tiers"].as_u64().unwrap() as usize;
        let mut column = |count: usize| (0..count).map(|_| number()).collect::<Vec<u64>>();
        let (threads, _depths, counts) = (column(tiers), column(tiers), column(tiers));
        let times = column(counts.iter().sum::<u64>() as usize * 2);
        let states = column(times.len() / 2);
        let (mut times, mut states) = (times.into_iter(), states.into_iter());
        let (mut made, mut thread) = (Vec::new(), 0);
        for (difference, count) in threads.into_iter().zip(counts) {
            thread += difference;
            let mut last = 0;
            for _ in 0..count {
                let begin = last + times.next().unwrap();
                last = begin + times.next().unwrap();
                made.push((thread, states.next().unwrap(), begin, last));
            }
        }
        made
    }

    #[test]
    fn an_empty_trace_has_no_spans_in_columns() {
        let columns = columns(&Timeline::default(), &[]);
        assert_eq!(&columns[..8], MAGIC);
        assert_eq!(spans(&columns), []);
    }

    #[test]
    fn tiers_are_depths_of_threads_in_order_of_time() {
        let event = |thread, time_ns, event| (thread, Record { time_ns, event });
        let (begin, end) =
            (|state| RecordedEvent::Begin(StateId(state)), |state| RecordedEvent::End(StateId(state)));
        let timeline = timeline(&[
            event(1, 100, begin(1)),
            event(1, 120, begin(2)),
            event(1, 150, end(2)),
            event(1, 200, end(1)),
            event(1, 300, begin(2)),
            event(0, 400, RecordedEvent::Span(StateId(1), 7)),
            event(1, 310, end(2)),
        ]);
        let states: Vec<u64> = [1, 2]
            .map(|state| {
                timeline.states.iter().position(|its| its.name.contains(char::from_digit(state, 10).unwrap()))
            })
            .map(|at| at.unwrap() as u64)
            .into();
        let thread = |name| timeline.threads.iter().position(|its| its.name.contains(name)).unwrap() as u64;
        let (zero, one) = (thread('0'), thread('1'));
        let mut wanted = vec![
            (one, states[0], 0, 100),
            (one, states[1], 200, 210),
            (one, states[1], 20, 50),
            (zero, states[0], 300, 307),
        ];
        wanted.sort_by_key(|span| span.0);
        assert_eq!(spans(&columns(&timeline, &[])), wanted);
    }

    fn event() -> impl Strategy<Value = RecordedEvent> {
        prop_oneof![
            (0..4_u32).prop_map(|state| RecordedEvent::Begin(StateId(state))),
            (0..4_u32).prop_map(|state| RecordedEvent::End(StateId(state))),
            (0..4_u32, any::<u64>()).prop_map(|(state, length)| RecordedEvent::Span(StateId(state), length)),
            any::<f64>().prop_map(|value| RecordedEvent::Count(CounterId(0), Amount::Real(value))),
            ".{0,5}".prop_map(|text| RecordedEvent::Argument(NameId(1), RecordedValue::Text(text))),
            (0..3_u64).prop_map(RecordedEvent::FlowOut),
            (0..3_u64).prop_map(RecordedEvent::FlowIn),
            any::<u32>().prop_map(RecordedEvent::Processor),
        ]
    }

    fn time() -> impl Strategy<Value = u64> {
        prop_oneof![0..1000_u64, any::<u64>(), Just(1 << 63)]
    }

    proptest! {
        #[test]
        fn columns_contain_every_span_with_a_begin(records in proptest::collection::vec((0..3_u32, time(), event()), 0..60)) {
            let records: Vec<_> =
                records.into_iter().map(|(thread, time_ns, event)| (thread, Record { time_ns, event })).collect();
            let timeline = timeline(&records);
            let origin = timeline.extent_ns().map_or(0, |(first, _)| first);
            let mut wanted: Vec<_> = timeline.spans.iter().filter(|span| span.mark != Mark::NoBegin)
                .map(|span| (span.thread.into(), span.state.into(), span.begin_ns - origin, span.end_ns - origin))
                .collect();
            let mut found = spans(&columns(&timeline, &[]));
            wanted.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }
}
