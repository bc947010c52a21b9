//! Measures the time and memory that it takes to write and read a trace: `format_speed [RECORDS [THREADS]]`.

use std::time::Instant;

use trace::{
    FileWriter, ProcessId, ProcessInfo, ProcessNumber, Record, RecordedEvent, StateId, StateInfo, ThreadId,
    ThreadInfo,
};

/// Number of records of a thread in a chunk.
const AT_ONCE: usize = 1000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let records: usize = arguments.next().unwrap_or(10_000_000);
    let threads: usize = arguments.next().unwrap_or(16);
    let begun = Instant::now();
    let bytes = written(records, threads);
    let megabytes = bytes.len() as f64 / 1e6;
    let per_record = bytes.len() as f64 / records as f64;
    println!(
        "written: {:.2} s, {megabytes:.1} MB, {per_record:.2} bytes a record",
        begun.elapsed().as_secs_f64()
    );
    let begun = Instant::now();
    let timeline = trace::read("speed", &bytes[..]).expect("the trace just written");
    println!("read:    {:.2} s, {} spans", begun.elapsed().as_secs_f64(), timeline.spans.len());
    println!("memory:  {} including the file", peak_memory());
}

/// Returns a trace of nested calls at pseudorandom intervals: an outer state, and one of two inner states within it.
fn written(records: usize, threads: usize) -> Vec<u8> {
    let process = ProcessInfo {
        host: "here".to_owned(),
        number: ProcessNumber::Pid(1),
        program: "speed".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    };
    let mut writer = FileWriter::new(Vec::new(), &process).expect("memory");
    for (id, name) in (0..).zip(["outer", "read", "wait"]) {
        let state = StateInfo { name: name.to_owned(), category: String::new(), colour: None };
        writer.state(StateId(id), &state).expect("memory");
    }
    for id in 0..threads as u32 {
        let thread = ThreadInfo { process: ProcessId(0), name: format!("thread {id}") };
        writer.thread(ThreadId(id), &thread).expect("memory");
    }
    let mut times = vec![0u64; threads];
    let mut random = 1u64;
    let mut part = Vec::with_capacity(AT_ONCE);
    for number in 0..records.div_ceil(AT_ONCE) {
        let thread = number % threads;
        part.clear();
        for place in 0..AT_ONCE.min(records - number * AT_ONCE) {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            times[thread] += 100 + (random >> 50);
            let inner = StateId(1 + (random >> 40) as u32 % 2);
            let event = match place % 4 {
                0 => RecordedEvent::Begin(StateId(0)),
                1 => RecordedEvent::Begin(inner),
                2 => RecordedEvent::End(ended(&part)),
                _ => RecordedEvent::End(StateId(0)),
            };
            part.push(Record { time_ns: times[thread], event });
        }
        writer.records(ThreadId(thread as u32), &part).expect("memory");
    }
    writer.into_inner()
}

/// Returns the state that the last of these records began.
fn ended(records: &[Record]) -> StateId {
    match records.last() {
        Some(Record { event: RecordedEvent::Begin(state), .. }) => *state,
        _ => StateId(0),
    }
}

/// Returns the peak memory of this process, as Linux reports it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown,".to_owned(), |line| format!("peak {},", line.trim()))
}
