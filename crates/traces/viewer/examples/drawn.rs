//! Writes a pseudorandom trace of nodes that read, write and wait, with any number of records, as an example for the
//! viewer and for measuring the viewer.
//!
//!     cargo run -p viewer --example drawn -- FILE RECORDS [NODES]

use std::path::Path;

use trace::{
    Amount, CounterId, CounterInfo, FileWriter, NameId, ProcessId, ProcessInfo, ProcessNumber, Record,
    RecordedEvent, RecordedValue, StateId, StateInfo, ThreadId, ThreadInfo,
};

const STATES: [&str; 7] = ["read", "write", "wait for a page", "prefetch", "compute", "flush", "communicate"];
const THREADS: u32 = 3;

/// Generator of pseudorandom numbers (xorshift), which are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: drawn FILE RECORDS [NODES]";
    let path = arguments.next().ok_or(usage)?;
    let records: u64 = arguments.next().ok_or(usage)?.parse()?;
    let nodes: u32 = arguments.next().map_or(Ok(4), |nodes| nodes.parse())?;
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let mut writer = FileWriter::create(Path::new(&path), &node(0))?;
    for (id, name) in (0..).zip(STATES) {
        writer.state(
            StateId(id),
            &StateInfo { name: name.to_owned(), category: String::new(), colour: None },
        )?;
    }
    writer.counter(CounterId(0), &CounterInfo { name: "queue".to_owned(), unit: "requests".to_owned() })?;
    writer.name(NameId(0), "bytes")?;
    let threads = nodes * THREADS;
    for thread in 0..threads {
        if thread % THREADS == 0 && thread > 0 {
            writer.process(ProcessId(thread / THREADS), &node(thread / THREADS))?;
        }
        let name = ["requests", "disk 0", "disk 1"][(thread % THREADS) as usize].to_owned();
        writer.thread(ThreadId(thread), &ThreadInfo { process: ProcessId(thread / THREADS), name })?;
        write_thread(&mut writer, ThreadId(thread), records / u64::from(threads), &mut draw)?;
    }
    writer.flush()?;
    Ok(())
}

fn node(number: u32) -> ProcessInfo {
    ProcessInfo {
        host: String::new(),
        number: ProcessNumber::Node(number),
        program: "node".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    }
}

/// Writes consecutive calls of a thread. About every second call contains a nested call; some calls have a number of
/// bytes and a value of the counter.
fn write_thread(
    writer: &mut FileWriter<std::fs::File>,
    thread: ThreadId,
    records: u64,
    draw: &mut Draw,
) -> std::io::Result<()> {
    let mut time_ns = draw.below(10_000);
    let mut batch = Vec::new();
    let mut written = 0;
    while written < records {
        let state = StateId(draw.below(STATES.len() as u64) as u32);
        let within = StateId(draw.below(STATES.len() as u64) as u32);
        let length = 200 + draw.below(100) * draw.below(100) * draw.below(100) / 50;
        let mut event = |after: u64, event| batch.push(Record { time_ns: time_ns + after, event });
        event(0, RecordedEvent::Begin(state));
        if length.is_multiple_of(16) {
            let bytes = Amount::Integer(length as i64 * 8);
            event(0, RecordedEvent::Argument(NameId(0), RecordedValue::Number(bytes)));
            event(0, RecordedEvent::Count(CounterId(0), Amount::Integer((length % 29) as i64)));
        }
        if length.is_multiple_of(2) {
            event(length / 4, RecordedEvent::Begin(within));
            event(length / 2, RecordedEvent::End(within));
        }
        event(length, RecordedEvent::End(state));
        time_ns += length + draw.below(2_000);
        if batch.len() > 50_000 {
            written += batch.len() as u64;
            writer.records(thread, &std::mem::take(&mut batch))?;
        }
        if written + batch.len() as u64 >= records {
            break;
        }
    }
    writer.records(thread, &batch)
}
