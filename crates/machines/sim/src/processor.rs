//! Processor of a node: one thread at a time, interrupts before all threads.
//!
//! ```text
//!  interrupts            |==A==|=B=|            in order of arrival, one after the other
//!  thread 1    |#########|     |   |####|       finishes later by what interrupts took from it
//!  thread 2    waits................... |#####  threads take turns in order of asking, without time slices;
//!                                               one keeps its turn until it waits for something else; the
//!                                               urgent ones have theirs before the others
//! ```
//!
//! A thread's work has one event, at the time it would end undisturbed. Interrupts during the work only add to a sum;
//! the event, when it comes, is postponed by that sum. So an interrupt costs no separate event unless a task waits for
//! its end.
//!
//! The model covers the time of work, and optionally of switching between threads. It does not cover caches, memory
//! bandwidth, or several processors in a node. A dropped wait leaves its work in the queue: work once begun is
//! completed.
//!
//! Nodes may be processes of one computer (`processor.shared`). Then work of a node also waits for one of the
//! computer's processors, in order of request.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use description::{Cycles, Level, MachineDescription};
use machine::{Duration, Work};

use crate::agenda::{EventTarget, Kind};
use crate::executor::{Executor, TaskKey, Waiter};
use crate::sleep::Sleep;
use crate::statistics::{ProcessorStatistics, Waits};
use crate::trace::{CompletedWork, ProcessorActivity};

/// Processor costs of the machine, in nanoseconds where possible.
pub(crate) struct Costs {
    work: [Cost; Work::NAMES.len()],
    word_bytes: u64,
    hertz: u64,
    pub(crate) send_message: u64,
    pub(crate) receive_message: u64,
    pub(crate) disk_interrupt: u64,
    switch_thread: u64,
    /// Number of processors shared by all nodes; `None` if they share none.
    shared: Option<u32>,
}

struct Cost {
    level: Level,
    cycles: u64,
    /// Time of `cycles` alone.
    nanoseconds: u64,
    cycles_per_word: u64,
    cycles_per_item: u64,
}

impl Costs {
    pub(crate) fn new(description: &MachineDescription) -> Self {
        let processor = &description.processor;
        let time = |cycles: &description::Sourced<Cycles>| cycles.value.at(processor.clock.value).as_nanos();
        let cycles = |cycles: &Option<description::Sourced<Cycles>>| {
            cycles.as_ref().map_or(0, |cycles| cycles.value.0)
        };
        let work = std::array::from_fn(|index| {
            let cost = processor.cost.at(index);
            Cost {
                level: cost.level,
                cycles: cost.cycles.value.0,
                nanoseconds: time(&cost.cycles),
                cycles_per_word: cycles(&cost.cycles_per_word),
                cycles_per_item: cycles(&cost.cycles_per_item),
            }
        });
        Costs {
            work,
            word_bytes: processor.word.value.0,
            hertz: processor.clock.value.0,
            send_message: time(&processor.system.send_message),
            receive_message: time(&processor.system.receive_message),
            disk_interrupt: time(&processor.system.disk_interrupt),
            switch_thread: time(&processor.system.switch_thread),
            shared: processor.shared.as_ref().map(|shared| shared.value),
        }
    }

    /// Returns the time of `work` in nanoseconds, and its level.
    pub(crate) fn of(&self, work: Work) -> (u64, Level) {
        let cost = &self.work[work.index()];
        let per_unit = cost.cycles_per_word | cost.cycles_per_item;
        if per_unit == 0 {
            return (cost.nanoseconds, cost.level);
        }
        // The description ensures that work on bytes has no cost per item, and vice versa.
        let units =
            if cost.cycles_per_word > 0 { work.units().div_ceil(self.word_bytes) } else { work.units() };
        let cycles = cost.cycles + per_unit * units;
        let nanoseconds = match cycles.checked_mul(1_000_000_000) {
            Some(scaled) => scaled.div_ceil(self.hertz),
            None => Duration::of_transfer(cycles, self.hertz).as_nanos(),
        };
        (nanoseconds, cost.level)
    }
}

/// Processors of all nodes.
pub(crate) struct Processors {
    each: Vec<RefCell<Processor>>,
    shared: Option<SharedProcessors>,
    switch_thread: u64,
}

/// Processors of the computer that runs all nodes as processes: for each, the end time of its assigned work.
struct SharedProcessors(RefCell<Vec<u64>>);

impl SharedProcessors {
    fn new(count: u32) -> Self {
        SharedProcessors(RefCell::new(vec![0; count as usize]))
    }

    /// Assigns a processor to work that could begin at `earliest`, and returns its start time.
    fn begin(&self, earliest: u64, nanoseconds: u64) -> u64 {
        let mut free_at = self.0.borrow_mut();
        // The processor with the shortest idle time leaves the least unused time; if all are busy, take the first to be
        // free.
        let free = free_at.iter_mut().min_by_key(|at| (**at > earliest, at.abs_diff(earliest)));
        let free = free.expect("a computer has a processor");
        let begin = earliest.max(*free);
        *free = begin + nanoseconds;
        begin
    }
}

#[derive(Default)]
struct Processor {
    /// Work of the thread on the processor.
    running: Option<ThreadWork>,
    /// Work of other threads, in order of request, which is also the order of their numbers.
    waiting: VecDeque<ThreadWork>,
    /// Urgent work of other threads, in the same order.
    urgent: VecDeque<ThreadWork>,
    /// Number of the work requested last.
    last_number: u64,
    /// Number of the work that ended last.
    last_ended: u64,
    /// True if the previous thread may still continue before the next one gets the processor.
    handing_over: bool,
    /// Start time of the running work.
    begun: u64,
    /// End time of the running work, without `stolen`.
    finish: u64,
    /// Time taken by interrupts from the running work since `finish` was computed.
    stolen: u64,
    /// End time of all interrupts so far.
    interrupts_until: u64,
    last_thread: Option<TaskKey>,
    thread_time: u64,
    interrupt_time: u64,
    thread_waits: Waits,
    interrupt_waits: Waits,
}

/// Work of a thread.
struct ThreadWork {
    number: u64,
    waiter: Waiter,
    thread: TaskKey,
    /// Time it takes undisturbed; once begun, includes the thread switch before it.
    nanoseconds: u64,
    /// Time of its request.
    asked: u64,
}

impl Processors {
    pub(crate) fn new(count: usize, costs: &Costs) -> Self {
        let each = (0..count).map(|_| RefCell::default()).collect();
        let shared = costs.shared.map(SharedProcessors::new);
        Processors { each, shared, switch_thread: costs.switch_thread }
    }

    /// Returns the start time of work that could begin at `earliest` if its node had a dedicated processor.
    #[inline(always)]
    fn begin_of(&self, earliest: u64, nanoseconds: u64) -> u64 {
        self.shared.as_ref().map_or(earliest, |shared| shared.begin(earliest, nanoseconds))
    }

    /// Does `nanoseconds` of interrupt work on `node`, and returns its end time.
    pub(crate) fn interrupt(&self, executor: &Executor, node: usize, nanoseconds: u64) -> u64 {
        let mut processor = self.each[node].borrow_mut();
        let now = executor.now();
        let begin = self.begin_of(processor.interrupts_until.max(now), nanoseconds);
        let end = begin + nanoseconds;
        processor.interrupts_until = end;
        processor.interrupt_waits.add(begin - now);
        // An interrupt that waits for a shared processor until the running work ends takes no time from that work.
        if begin < processor.finish + processor.stolen {
            processor.stolen += nanoseconds;
        }
        processor.interrupt_time += nanoseconds;
        end
    }

    /// Does `nanoseconds` of work of the current task on `node` at a level; it begins when the future is first polled.
    #[inline]
    pub(crate) fn compute<'a>(
        &'a self,
        executor: &'a Executor,
        node: usize,
        activity: ProcessorActivity,
        (nanoseconds, level): (u64, Level),
    ) -> Compute<'a> {
        Compute { processors: self, executor, node, nanoseconds, stage: Stage::New(level, activity) }
    }

    /// Requests the processor of `node` for work of the current task; returns the work's number.
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        executor: &Executor,
        node: usize,
        nanoseconds: u64,
        level: Level,
        context: &Context<'_>,
    ) -> u64 {
        let mut processor = self.each[node].borrow_mut();
        processor.last_number += 1;
        let (number, thread) = (processor.last_number, executor.current());
        let asked = executor.now();
        let work = ThreadWork { number, waiter: Waiter::of(context), thread, nanoseconds, asked };
        let goes_on =
            level != Level::Yielding && processor.handing_over && processor.last_thread == Some(thread);
        if goes_on || (processor.running.is_none() && !processor.handing_over) {
            processor.handing_over = false;
            processor.begin(executor, node, self, work);
        } else {
            let queue = if level == Level::Urgent { &mut processor.urgent } else { &mut processor.waiting };
            queue.push_back(work);
            if let Some(trace) = executor.trace() {
                trace.threads_waiting(node, executor.now(), processor.threads_waiting());
            }
        }
        number
    }

    /// Returns ready if the work of this number is complete.
    #[inline]
    pub(crate) fn poll_work(&self, node: usize, number: u64, context: &Context<'_>) -> Poll<()> {
        // The task woken by the end of its work polls next, so the last number suffices.
        if self.each[node].borrow().last_ended == number {
            return Poll::Ready(());
        }
        self.look_for_work(node, number, context)
    }

    #[inline(never)]
    fn look_for_work(&self, node: usize, number: u64, context: &Context<'_>) -> Poll<()> {
        let mut processor = self.each[node].borrow_mut();
        match processor.find(number) {
            None => Poll::Ready(()),
            Some(work) => {
                if !work.waiter.is(context) {
                    work.waiter = Waiter::of(context);
                }
                Poll::Pending
            }
        }
    }

    /// Handles the processor's event. Either the running work ends, if no interrupt came in between. Or the previous
    /// thread has not continued, and the next one gets the processor. Returns the task to wake.
    pub(crate) fn fire(&self, executor: &Executor, node: usize) -> Option<Waiter> {
        let mut processor = self.each[node].borrow_mut();
        if std::mem::take(&mut processor.handing_over) {
            let next = processor.next().expect("handed over to somebody");
            if let Some(trace) = executor.trace() {
                trace.threads_waiting(node, executor.now(), processor.threads_waiting());
            }
            processor.begin(executor, node, self, next);
            return None;
        }
        if executor.now() < processor.finish {
            // The thread did continue.
            return None;
        }
        if processor.stolen > 0 {
            processor.finish += std::mem::take(&mut processor.stolen);
            let finish = processor.finish;
            drop(processor);
            executor.schedule(finish, EventTarget::new(Kind::Processor, node));
            return None;
        }
        let ended = processor.running.take().expect("work that ends");
        processor.last_ended = ended.number;
        if processor.threads_waiting() > 0 {
            processor.handing_over = true;
            executor.schedule(executor.now(), EventTarget::new(Kind::Processor, node));
        }
        let begun = processor.begun;
        drop(processor);
        if let Some(trace) = executor.trace() {
            let ThreadWork { number, asked, nanoseconds, .. } = ended;
            trace.end_work(
                node,
                CompletedWork { number, asked, begin: begun, end: executor.now(), nanoseconds },
            );
        }
        Some(ended.waiter)
    }

    /// Returns the statistics of the processor of `node`. Work counts in full when it begins.
    pub(crate) fn statistics(&self, node: usize) -> ProcessorStatistics {
        let mut processor = self.each[node].borrow_mut();
        ProcessorStatistics {
            threads: Duration::from_nanos(processor.thread_time),
            interrupts: Duration::from_nanos(processor.interrupt_time),
            thread_waits: processor.thread_waits.take(),
            interrupt_waits: processor.interrupt_waits.take(),
        }
    }
}

impl Processor {
    /// Begins work of a thread.
    #[inline(always)]
    fn begin(&mut self, executor: &Executor, node: usize, all: &Processors, mut work: ThreadWork) {
        if self.last_thread != Some(work.thread) {
            self.last_thread = Some(work.thread);
            work.nanoseconds += all.switch_thread;
        }
        self.thread_time += work.nanoseconds;
        self.stolen = 0;
        let earliest = self.interrupts_until.max(executor.now());
        self.begun = all.begin_of(earliest, work.nanoseconds);
        // Includes waits for other threads and for the end of interrupts.
        self.thread_waits.add(self.begun - work.asked);
        self.finish = self.begun + work.nanoseconds;
        self.running = Some(work);
        executor.schedule(self.finish, EventTarget::new(Kind::Processor, node));
    }

    fn threads_waiting(&self) -> usize {
        self.urgent.len() + self.waiting.len()
    }

    /// Removes and returns the work that gets the processor next.
    fn next(&mut self) -> Option<ThreadWork> {
        self.urgent.pop_front().or_else(|| self.waiting.pop_front())
    }

    /// Returns the work of this number, unless it is complete.
    fn find(&mut self, number: u64) -> Option<&mut ThreadWork> {
        if self.running.as_ref().is_some_and(|work| work.number == number) {
            return self.running.as_mut();
        }
        let place = |queue: &VecDeque<ThreadWork>| queue.binary_search_by_key(&number, |work| work.number);
        if let Ok(index) = place(&self.urgent) {
            return self.urgent.get_mut(index);
        }
        let index = place(&self.waiting).ok()?;
        self.waiting.get_mut(index)
    }
}

/// Wait for the completion of work.
pub(crate) struct Compute<'a> {
    processors: &'a Processors,
    executor: &'a Executor,
    node: usize,
    nanoseconds: u64,
    stage: Stage<'a>,
}

enum Stage<'a> {
    New(Level, ProcessorActivity),
    /// Level of threads: the number of the work.
    Working(u64),
    /// Level of interrupts, where the end is known at once.
    Ending(Sleep<'a>),
}

impl Future for Compute<'_> {
    type Output = ();

    // Inlined for the end of a thread's work and for empty work.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.stage {
            Stage::New(..) if self.nanoseconds == 0 => Poll::Ready(()),
            Stage::Working(number) => self.processors.poll_work(self.node, number, context),
            _ => self.begin_or_sleep(context),
        }
    }
}

impl Compute<'_> {
    #[inline(never)]
    fn begin_or_sleep(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Compute { processors, executor, node, nanoseconds, stage } = self;
        match stage {
            Stage::New(level @ (Level::Thread | Level::Yielding | Level::Urgent), activity) => {
                let number = processors.begin(executor, *node, *nanoseconds, *level, context);
                if let Some(trace) = executor.trace() {
                    trace.ask(*node, number, *activity);
                }
                *stage = Stage::Working(number);
                Poll::Pending
            }
            Stage::New(Level::Interrupt, activity) => {
                let end = processors.interrupt(executor, *node, *nanoseconds);
                if let Some(trace) = executor.trace() {
                    trace.interrupt(*node, *activity, *nanoseconds, (executor.now(), end));
                }
                let mut sleep = Sleep::until(executor, end);
                let polled = Pin::new(&mut sleep).poll(context);
                *stage = Stage::Ending(sleep);
                polled
            }
            Stage::Ending(sleep) => Pin::new(sleep).poll(context),
            Stage::Working(_) => unreachable!("that is polled in line"),
        }
    }
}
