//! Builds one timeline, in order and on one clock, from the records of one or more files.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::gather::{Declared, FlowEnd, Gathered, SpansSoFar, ThreadName, ThreadSoFar};
use crate::model::{ProcessInfo, ProcessNumber};
use crate::note::{NoteKind, Notes};
use crate::timeline::{
    Argument, Count, Counter, Flow, Mark, OnProcessor, Spans, State, SwitchCount, Timeline, TracedProcess,
    TracedThread,
};

/// Alignment of the clocks of several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// By the wall clock, corrected by the known clock offsets: simultaneous events have equal times. Flows can connect
    /// threads of different files.
    #[default]
    WallClock,
    /// Each file begins at time 0: a time is the distance from the begin of its file.
    Starts,
}

/// Builds a timeline of all gathered records.
pub(crate) fn assemble(mut gathered: Gathered, alignment: Alignment) -> Timeline {
    let mut notes = std::mem::take(&mut gathered.notes);
    note_undeclared(&gathered, &mut notes);
    end_unfinished(&mut gathered, &mut notes);
    let zero_unix_ns = put_on_one_clock(&mut gathered, alignment, &mut notes);
    let flows = flows(&mut gathered, alignment, &mut notes);
    let (states, state_of) = unified(&gathered.states, state, |state| {
        (!state.is_declared, state.name.clone(), state.category.clone())
    });
    let (counters, counter_of) =
        unified(&gathered.counters, counter, |counter| (counter.name.clone(), counter.unit.clone()));
    let (names, name_of) = unified(&gathered.names, name, String::clone);
    let (processes, mut threads, thread_of) = rows(&mut gathered);
    let thread = |thread: u32| thread_of[thread as usize];
    let mut so_far = std::mem::take(&mut gathered.spans);
    so_far.thread.iter_mut().for_each(|index| *index = thread(*index));
    so_far.state.iter_mut().for_each(|state| *state = state_of[*state as usize]);
    let (spans, span_of) = in_order(so_far, &mut threads);
    let count = |(counter, of, time_ns, value): (u32, u32, u64, _)| Count {
        counter: counter_of[counter as usize],
        thread: thread(of),
        time_ns,
        value,
    };
    let argument = |(span, name, value): (u32, u32, _)| Argument {
        span: span_of[span as usize],
        name: name_of[name as usize],
        value,
    };
    let on = |(of, time_ns, processor)| OnProcessor { thread: thread(of), time_ns, processor };
    let switch = |(of, time_ns, voluntary, involuntary)| SwitchCount {
        thread: thread(of),
        time_ns,
        voluntary,
        involuntary,
    };
    let flow = |flow: Flow| Flow {
        from_thread: thread(flow.from_thread),
        to_thread: thread(flow.to_thread),
        ..flow
    };
    Timeline {
        processes,
        states,
        counters,
        names,
        texts: gathered.texts,
        spans,
        counts: sorted(gathered.counts, count, |count| (count.counter, count.thread, count.time_ns)),
        arguments: sorted(gathered.arguments, argument, |argument| argument.span),
        flows: sorted(flows, flow, |flow| flow.from_ns),
        processors: sorted(gathered.processors, on, |on| (on.thread, on.time_ns)),
        switches: sorted(gathered.switches, switch, |switch| (switch.thread, switch.time_ns)),
        notes: notes.into_notes(&gathered.files),
        threads,
        files: gathered.files,
        zero_unix_ns,
    }
}

/// Returns the converted elements, sorted by a key.
fn sorted<A, B, K: Ord>(all: Vec<A>, made: impl FnMut(A) -> B, key: impl FnMut(&B) -> K) -> Vec<B> {
    let mut all: Vec<B> = all.into_iter().map(made).collect();
    all.sort_by_key(key);
    all
}

fn note_undeclared(gathered: &Gathered, notes: &mut Notes) {
    fn note<I, S>(all: &[Declared<I, S>], kind: NoteKind, notes: &mut Notes) {
        let undeclared = all.iter().filter(|one| one.info.is_none());
        undeclared.for_each(|one| notes.add(one.file, kind, 1, None));
    }
    note(&gathered.processes, NoteKind::UndeclaredProcess, notes);
    note(&gathered.threads, NoteKind::UndeclaredThread, notes);
    note(&gathered.states, NoteKind::UndeclaredState, notes);
    note(&gathered.counters, NoteKind::UndeclaredName, notes);
    note(&gathered.names, NoteKind::UndeclaredName, notes);
    for thread in &gathered.threads {
        notes.add(thread.file, NoteKind::Dropped, thread.so_far.dropped, None);
    }
}

fn process_of(thread: &Declared<ThreadName, ThreadSoFar>) -> usize {
    thread.info.as_ref().map_or(thread.so_far.section_process, |info| info.process) as usize
}

/// Returns the earliest and the latest time of each process; for a process without times, the first exceeds the second.
fn times_of_processes(gathered: &Gathered) -> Vec<(u64, u64)> {
    let mut times = vec![(u64::MAX, 0); gathered.processes.len()];
    for thread in &gathered.threads {
        let (first, last) = &mut times[process_of(thread)];
        *first = thread.so_far.times.0.min(*first);
        *last = thread.so_far.times.1.max(*last);
    }
    times
}

/// Extends each unfinished span to the last time of its process, or to the last record before a drop that may have lost
/// its end.
fn end_unfinished(gathered: &mut Gathered, notes: &mut Notes) {
    let times = times_of_processes(gathered);
    let (threads, spans) = (&gathered.threads, &mut gathered.spans);
    let unfinished = (0..spans.len()).filter(|span| spans.mark[*span] == Mark::Unfinished);
    for span in unfinished.collect::<Vec<_>>() {
        let thread = &threads[spans.thread[span] as usize];
        let end = thread.so_far.last_before_drop(span as u32).unwrap_or(times[process_of(thread)].1);
        spans.end_ns[span] = end.max(spans.begin_ns[span]);
        notes.add(thread.file, NoteKind::Unfinished, 1, None);
    }
}

/// Converts all times to one clock, and returns the wall-clock time at its 0, if known.
fn put_on_one_clock(gathered: &mut Gathered, alignment: Alignment, notes: &mut Notes) -> Option<u64> {
    let zeros: Vec<Option<i128>> = gathered.processes.iter().map(zero).collect();
    let earliest = zeros.iter().flatten().min().copied();
    // If no process has a wall-clock time, all times are on the clock of one simulation.
    let mut shifts: Vec<i128> =
        zeros.iter().map(|zero| zero.zip(earliest).map_or(0, |(zero, earliest)| zero - earliest)).collect();
    let unknown =
        gathered.processes.iter().zip(&zeros).filter(|(_, zero)| zero.is_none() && earliest.is_some());
    unknown.for_each(|(process, _)| notes.add(process.file, NoteKind::ClockUnknown, 1, None));
    for process in &gathered.processes {
        let uncertainty = process.so_far.map_or(0, |offset| offset.uncertainty_ns);
        notes.greatest(process.file, NoteKind::ClockUncertain, uncertainty);
    }
    if alignment == Alignment::Starts {
        let mut starts: BTreeMap<u32, i128> = BTreeMap::new();
        let times = times_of_processes(gathered);
        for ((process, shift), (first, last)) in gathered.processes.iter().zip(&shifts).zip(times) {
            let start = starts.entry(process.file).or_insert(i128::MAX);
            if first <= last {
                *start = (*start).min(i128::from(first) + shift);
            }
        }
        let files = gathered.processes.iter().map(|process| process.file);
        shifts.iter_mut().zip(files).for_each(|(shift, file)| *shift -= starts[&file]);
    }
    shift(gathered, &shifts, notes);
    earliest.filter(|_| alignment == Alignment::WallClock).and_then(|zero| zero.try_into().ok())
}

/// Returns the time on the reference clock at time 0 of a process, in nanoseconds since 1970.
fn zero(process: &Declared<ProcessInfo, Option<crate::ClockOffset>>) -> Option<i128> {
    let offset = process.so_far.map_or(0, |offset| offset.offset_ns);
    Some(i128::from(process.info.as_ref()?.zero_unix_ns?) + i128::from(offset))
}

/// Shifts all times by the shift of their process.
fn shift(gathered: &mut Gathered, shifts: &[i128], notes: &mut Notes) {
    let shift_of: Vec<i128> = gathered.threads.iter().map(|thread| shifts[process_of(thread)]).collect();
    let threads = &gathered.threads;
    let mut add = |thread: u32, time: &mut u64| {
        let shifted = i128::from(*time) + shift_of[thread as usize];
        *time = u64::try_from(shifted.max(0)).unwrap_or(u64::MAX);
        if i128::from(*time) != shifted {
            notes.add(threads[thread as usize].file, NoteKind::TimeClamped, 1, None);
        }
    };
    let spans = &mut gathered.spans;
    for (thread, (begin, end)) in spans.thread.iter().zip(spans.begin_ns.iter_mut().zip(&mut spans.end_ns)) {
        add(*thread, begin);
        add(*thread, end);
    }
    gathered.counts.iter_mut().for_each(|(_, thread, time, _)| add(*thread, time));
    gathered.flow_ends.iter_mut().for_each(|end| add(end.thread, &mut end.time_ns));
    gathered.processors.iter_mut().for_each(|(thread, time, _)| add(*thread, time));
    gathered.switches.iter_mut().for_each(|(thread, time, ..)| add(*thread, time));
}

/// Pairs the departures and arrivals of each flow number in order of time. If a number has more arrivals than
/// departures, pairs the excess arrivals with the last departure.
fn flows(gathered: &mut Gathered, alignment: Alignment, notes: &mut Notes) -> Vec<Flow> {
    let threads = &gathered.threads;
    let file = |end: &FlowEnd| threads[end.thread as usize].file;
    let key = |end: &FlowEnd| (end.flow, if alignment == Alignment::Starts { file(end) } else { 0 });
    let mut ends = std::mem::take(&mut gathered.flow_ends);
    ends.sort_by_key(|end| (key(end), end.arrives, end.time_ns));
    let mut flows = Vec::new();
    for same in ends.chunk_by(|a, b| key(a) == key(b)) {
        let (left, arrived) = same.split_at(same.partition_point(|end| !end.arrives));
        for (index, to) in arrived.iter().enumerate() {
            match left.get(index).or(left.last()) {
                Some(from) => flows.push(Flow {
                    from_thread: from.thread,
                    from_ns: from.time_ns,
                    to_thread: to.thread,
                    to_ns: to.time_ns,
                }),
                None => notes.add(file(to), NoteKind::FlowUnmatched, 1, None),
            }
        }
        let lost = left.iter().skip(arrived.len());
        lost.for_each(|end| notes.add(file(end), NoteKind::FlowUnmatched, 1, None));
    }
    flows
}

fn state(state: &Declared<crate::StateInfo, ()>) -> State {
    match &state.info {
        Some(info) => State {
            name: info.name.clone(),
            category: info.category.clone(),
            colour: info.colour,
            is_declared: true,
        },
        None => State {
            name: format!("state {}", state.number),
            category: String::new(),
            colour: None,
            is_declared: false,
        },
    }
}

fn counter(counter: &Declared<crate::CounterInfo, ()>) -> Counter {
    match &counter.info {
        Some(info) => Counter { name: info.name.clone(), unit: info.unit.clone() },
        None => Counter { name: format!("counter {}", counter.number), unit: String::new() },
    }
}

fn name(name: &Declared<String, ()>) -> String {
    name.info.clone().unwrap_or_else(|| format!("argument {}", name.number))
}

/// Returns one declaration for each key, in order of first use, and for each element of `all` the index of its
/// declaration.
fn unified<I, T, K: Ord>(
    all: &[Declared<I, ()>],
    made: fn(&Declared<I, ()>) -> T,
    key: impl Fn(&T) -> K,
) -> (Vec<T>, Vec<u32>) {
    let mut different = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut which = Vec::with_capacity(all.len());
    for one in all {
        let one = made(one);
        let number = *numbers.entry(key(&one)).or_insert(different.len() as u32);
        which.push(number);
        if number as usize == different.len() {
            different.push(one);
        }
    }
    (different, which)
}

/// Returns the processes, their threads in order, and for each gathered thread its index in this order.
fn rows(gathered: &mut Gathered) -> (Vec<TracedProcess>, Vec<TracedThread>, Vec<u32>) {
    let mut order: Vec<u32> = (0..gathered.threads.len() as u32).collect();
    order.sort_by_key(|thread| process_of(&gathered.threads[*thread as usize]));
    let mut thread_of = vec![0; order.len()];
    let mut threads = Vec::with_capacity(order.len());
    for (place, index) in order.into_iter().enumerate() {
        thread_of[index as usize] = place as u32;
        let thread = &mut gathered.threads[index as usize];
        let process = process_of(thread) as u32;
        let name = thread.info.as_mut().map(|info| std::mem::take(&mut info.name));
        threads.push(TracedThread {
            process,
            is_declared: name.is_some(),
            name: name.unwrap_or_else(|| format!("thread {}", thread.number)),
            dropped: thread.so_far.dropped,
            spans: 0..0,
        });
    }
    let mut processes = Vec::with_capacity(gathered.processes.len());
    for (index, process) in gathered.processes.iter().enumerate() {
        let first = threads.partition_point(|thread| (thread.process as usize) < index);
        let end = threads.partition_point(|thread| thread.process as usize <= index);
        processes.push(TracedProcess {
            file: process.file,
            info: process.info.clone().unwrap_or_else(|| unknown_process(process.number)),
            is_declared: process.info.is_some(),
            uncertainty_ns: process.so_far.map(|offset| offset.uncertainty_ns),
            threads: first..end,
        });
    }
    (processes, threads, thread_of)
}

fn unknown_process(number: u32) -> ProcessInfo {
    ProcessInfo {
        host: String::new(),
        number: ProcessNumber::Node(number),
        program: "process".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    }
}

/// Returns the spans with their depths, sorted by thread and begin, and the new index of each gathered span.
fn in_order(so_far: SpansSoFar, threads: &mut [TracedThread]) -> (Spans, Vec<u32>) {
    let mut ends = vec![0usize; threads.len()];
    so_far.thread.iter().for_each(|thread| ends[*thread as usize] += 1);
    let mut first = 0;
    for (thread, end) in threads.iter_mut().zip(&mut ends) {
        thread.spans = first..first + *end;
        // From here on, `end` is the position of the next span of the thread.
        *end = first;
        first = thread.spans.end;
    }
    let mut order = vec![0u32; so_far.len()];
    for (span, thread) in so_far.thread.iter().enumerate() {
        let place = &mut ends[*thread as usize];
        order[*place] = span as u32;
        *place += 1;
    }
    let key = |span: &u32| (so_far.begin_ns[*span as usize], Reverse(so_far.end_ns[*span as usize]));
    threads.iter().for_each(|thread| order[thread.spans.clone()].sort_by_key(key));
    let mut span_of = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, span)| span_of[*span as usize] = place as u32);
    let mut spans = Spans {
        thread: reordered(so_far.thread, &order),
        state: reordered(so_far.state, &order),
        begin_ns: reordered(so_far.begin_ns, &order),
        end_ns: reordered(so_far.end_ns, &order),
        depth: Vec::with_capacity(order.len()),
        mark: reordered(so_far.mark, &order),
    };
    threads.iter().for_each(|thread| add_depths(&mut spans, thread));
    (spans, span_of)
}

fn reordered<T: Copy>(column: Vec<T>, order: &[u32]) -> Vec<T> {
    order.iter().map(|index| column[*index as usize]).collect()
}

/// Sets the depth of each span of a thread: the first row that is free at the begin of the span.
fn add_depths(spans: &mut Spans, thread: &TracedThread) {
    let mut rows: Vec<u64> = Vec::new();
    for span in thread.spans.clone() {
        let (begin, end) = (spans.begin_ns[span], spans.end_ns[span]);
        let free = rows.iter().position(|row| *row <= begin).unwrap_or(rows.len());
        let depth = free.min(usize::from(Spans::DEPTH_MAX));
        match rows.get_mut(depth) {
            Some(row) => *row = end.max(*row),
            None => rows.push(end),
        }
        spans.depth.push(depth as u8);
    }
}
