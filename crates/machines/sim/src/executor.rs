//! Executor: tasks, virtual time and the loop that drives both.
//!
//! Ready tasks run in the order in which they were woken, or in an order drawn from the seed. Only when no task is
//! ready does time advance, to the next event of the agenda. Nothing here depends on the host: no clock, no threads, no
//! addresses, no hashing. So a run is a function of the tasks started. Its digest, a hash of the time and target of
//! every event, shows if two runs are equal.
//!
//! ```text
//!          wake                       poll
//!   ....---------> ready (queue) ---------------> task: schedules events, wakes others
//!   :                 ^                             :
//!   :                 | empty? then                 v
//!   event <--- agenda.pop(), now = its time <- agenda.push(time, target)
//! ```

mod waker;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use machine::{Error, Instant, NodeId, Present, Result};

use crate::agenda::{Agenda, EventTarget, INDEX_END, Kind};
use crate::random::RandomStream;
use crate::settings::{Settings, TaskOrder};
use crate::table::IndexTable;
use crate::trace::Trace;
pub(crate) use waker::TaskKey;

type Task = Pin<Box<dyn Future<Output = Result<()>>>>;

/// Index of the main task, whose future is not in the table but with the caller of the run.
const MAIN: usize = 0;

/// Maximum number of polls in one instant before tasks are watched one by one.
const POLLS_AT_ONCE: u64 = 1_000_000;
/// Maximum number of further polls of one task in one instant, while no task ends, before it counts as one that never
/// waits. A server that takes no time may be polled for any number of other tasks in one instant, but these end.
const POLLS_OF_ONE_TASK: u64 = 100_000;
/// Maximum number of polls in one instant before tasks count as starting each other endlessly: this takes minutes.
const POLLS_MAX: u64 = 10_000_000_000;
/// Maximum number of tasks named in a report of waiting tasks.
const NAMES_MAX: usize = 40;

/// Target of a wake: one of our tasks, by its key, or the waker that a combinator put in its place.
#[derive(Clone, Debug)]
pub(crate) enum Waiter {
    Task(TaskKey),
    Foreign(Waker),
}

impl Waiter {
    pub(crate) fn of(context: &Context<'_>) -> Self {
        let waker = context.waker();
        TaskKey::of(waker).map_or_else(|| Waiter::Foreign(waker.clone()), Waiter::Task)
    }

    /// Returns true if `context` belongs to this waiter.
    pub(crate) fn is(&self, context: &Context<'_>) -> bool {
        match self {
            Waiter::Task(key) => TaskKey::of(context.waker()) == Some(*key),
            Waiter::Foreign(waker) => waker.will_wake(context.waker()),
        }
    }
}

/// Identity of a waker, unique as long as a clone of it is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakerId {
    vtable: NonZeroUsize,
    data: usize,
}

impl WakerId {
    #[inline]
    pub(crate) fn of(waker: &Waker) -> Self {
        let vtable = NonZeroUsize::from(NonNull::from_ref(waker.vtable()).addr());
        WakerId { vtable, data: waker.data().addr() }
    }
}

struct Slot {
    /// Taken out during a poll; `None` also in a free slot.
    future: Option<Task>,
    name: &'static str,
    node: u32,
    generation: u32,
    ready: bool,
    used: bool,
}

pub(crate) struct Executor {
    number: u16,
    now: Cell<u64>,
    current: Cell<TaskKey>,
    core: RefCell<Core>,
    /// Kept here because all users of it have the executor already, for the time.
    trace: Trace,
}

/// Mutable state, except the clock. Borrowed only briefly, never while a task is polled or dropped.
struct Core {
    events: Agenda,
    ready: VecDeque<u32>,
    /// Draws the next ready task; `None` for the first one.
    order: Option<RandomStream>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    foreign: IndexTable<Waker>,
    event_count: u64,
    digest: u64,
    polls_now: u64,
    /// Polls of each task since a task last ended, counted only after suspiciously many in this instant.
    restless: BTreeMap<u32, u64>,
}

thread_local! {
    /// Executors of this thread, for wakers; the running one is found first.
    static HERE: RefCell<Here> = const { RefCell::new(Here { running: None, all: Vec::new(), next: 0 }) };
}

struct Here {
    running: Option<Rc<Executor>>,
    all: Vec<(u16, Weak<Executor>)>,
    next: u16,
}

/// Wakes the task on its executor, anywhere on this thread; a key of an ended task has no effect.
pub(crate) fn wake_anywhere(key: TaskKey) {
    // While the thread's locals are being destroyed, no task is left to wake.
    let _ = HERE.try_with(|here| {
        let here = here.borrow();
        match &here.running {
            Some(executor) if executor.number == key.executor() => executor.wake(key),
            _ => {
                let found = here.all.iter().find(|(number, _)| *number == key.executor());
                if let Some(executor) = found.and_then(|(_, executor)| executor.upgrade()) {
                    executor.wake(key);
                }
            }
        }
    });
}

/// Makes an executor the running one until dropped, also by a panic.
struct Running(Option<Rc<Executor>>);

impl Running {
    fn new(executor: &Rc<Executor>) -> Self {
        HERE.with(|here| Running(here.borrow_mut().running.replace(executor.clone())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let outer = self.0.take();
        let ended = HERE.with(|here| std::mem::replace(&mut here.borrow_mut().running, outer));
        drop(ended);
    }
}

impl Executor {
    pub(crate) fn new(settings: &Settings) -> Rc<Self> {
        let number = HERE.with(|here| {
            let mut here = here.borrow_mut();
            here.all.retain(|(_, executor)| executor.strong_count() > 0);
            while here.all.iter().any(|(number, _)| *number == here.next) {
                here.next = here.next.wrapping_add(1);
            }
            let number = here.next;
            here.next = number.wrapping_add(1);
            number
        });
        let main =
            Slot { future: None, name: "main", node: u32::MAX, generation: 0, ready: false, used: true };
        let core = Core {
            events: Agenda::default(),
            ready: VecDeque::new(),
            order: (settings.task_order == TaskOrder::Drawn)
                .then(|| RandomStream::new(settings.seed, "order of tasks")),
            slots: vec![main],
            free: Vec::new(),
            foreign: IndexTable::default(),
            event_count: 0,
            digest: 0,
            polls_now: 0,
            restless: BTreeMap::new(),
        };
        let executor = Rc::new(Executor {
            number,
            now: Cell::new(0),
            current: Cell::new(TaskKey::new(number, 0, MAIN)),
            core: RefCell::new(core),
            trace: Trace::default(),
        });
        HERE.with(|here| here.borrow_mut().all.push((number, Rc::downgrade(&executor))));
        executor
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Returns the trace, if recording is on.
    #[inline(always)]
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.trace.is_on().then_some(&self.trace)
    }

    /// Returns the trace, on or off.
    pub(crate) fn trace_switch(&self) -> &Trace {
        &self.trace
    }

    /// Returns the number of timed events so far.
    pub(crate) fn event_count(&self) -> u64 {
        self.core.borrow().event_count
    }

    /// Returns a hash of the times and targets of all events so far.
    pub(crate) fn digest(&self) -> u64 {
        self.core.borrow().digest
    }

    /// Returns the task being polled.
    pub(crate) fn current(&self) -> TaskKey {
        self.current.get()
    }

    /// Returns the number of the task being polled, which is unique at this time, and its name.
    fn current_task(&self) -> (u64, &'static str) {
        let key = self.current();
        (u64::from(key.generation()) << 32 | key.index() as u64, self.core.borrow().slots[key.index()].name)
    }

    /// Spawns a task, which first runs in order of the ready queue.
    pub(crate) fn spawn(&self, name: &'static str, node: u32, task: Task) {
        let mut core = self.core.borrow_mut();
        let Core { slots, free, ready, .. } = &mut *core;
        let index = free.pop().unwrap_or_else(|| {
            assert!(slots.len() < INDEX_END, "fewer than {INDEX_END} tasks at once");
            slots.push(Slot { future: None, name, node, generation: 0, ready: false, used: false });
            slots.len() as u32 - 1
        });
        let slot = &mut slots[index as usize];
        let generation = slot.generation;
        *slot = Slot { future: Some(task), name, node, generation, ready: true, used: true };
        ready.push_back(index);
    }

    /// Puts the task at the end of the ready queue, unless it is queued already or has ended.
    pub(crate) fn wake(&self, key: TaskKey) {
        let mut core = self.core.borrow_mut();
        let index = key.index();
        let slot = &mut core.slots[index];
        if slot.generation == key.generation() && !slot.ready {
            slot.ready = true;
            core.ready.push_back(index as u32);
        }
    }

    #[inline]
    pub(crate) fn wake_waiter(&self, waiter: Waiter) {
        match waiter {
            Waiter::Task(key) if key.executor() == self.number => self.wake(key),
            Waiter::Task(key) => wake_anywhere(key),
            Waiter::Foreign(waker) => waker.wake(),
        }
    }

    /// Schedules `target` at `time`.
    #[inline]
    pub(crate) fn schedule(&self, time: u64, target: EventTarget) {
        debug_assert!(time >= self.now(), "no event in the past");
        self.core.borrow_mut().events.push(time, target);
    }

    /// Returns the time before which no other event happens. Call it while handling an event, when no task is ready.
    #[inline]
    pub(crate) fn quiet_until(&self) -> u64 {
        self.core.borrow().events.first_time().unwrap_or(u64::MAX)
    }

    /// Schedules a wake of `waker` at `time`.
    #[inline]
    pub(crate) fn schedule_wake(&self, time: u64, waker: &Waker) {
        let target = match TaskKey::of(waker) {
            Some(key) if key.executor() == self.number => EventTarget::new(Kind::Task, key.index()),
            _ => self.foreign_target(waker.clone()),
        };
        self.schedule(time, target);
    }

    #[cold]
    fn foreign_target(&self, waker: Waker) -> EventTarget {
        EventTarget::new(Kind::Foreign, self.core.borrow_mut().foreign.insert(waker))
    }

    /// Runs until `main` completes. Calls `fire` for each event that is not for a task; `fire` returns the task to wake
    /// in the end.
    pub(crate) fn run<T>(
        self: &Rc<Self>,
        mut main: Pin<&mut dyn Future<Output = T>>,
        fire: impl Fn(Kind, usize) -> Option<Waiter>,
    ) -> Result<T> {
        let _running = Running::new(self);
        let waker = self.begin_main().waker();
        let mut main_context = Context::from_waker(&waker);
        let mut outcome = None;
        let mut poll_main = || {
            if let Poll::Ready(value) = main.as_mut().poll(&mut main_context) {
                outcome = Some(value);
            }
            outcome.is_some()
        };
        self.drive(&mut poll_main, fire)?;
        outcome.ok_or_else(|| self.stalled().into())
    }

    /// Runs until no event is left.
    pub(crate) fn run_until_idle(
        self: &Rc<Self>,
        fire: impl Fn(Kind, usize) -> Option<Waiter>,
    ) -> Result<()> {
        let _running = Running::new(self);
        self.drive(&mut || false, fire)
    }

    /// Readies the main task under a new generation, so that wakers of an earlier run do not concern it.
    fn begin_main(&self) -> TaskKey {
        let mut core = self.core.borrow_mut();
        let slot = &mut core.slots[MAIN];
        slot.generation = (slot.generation + 1) % TaskKey::GENERATION_END;
        let key = TaskKey::new(self.number, slot.generation, MAIN);
        if !std::mem::replace(&mut slot.ready, true) {
            core.ready.push_back(MAIN as u32);
        }
        key
    }

    /// Runs the main loop until `poll_main` returns true (the main task is complete), or no event is left.
    // Not generic over the main task, so that there is one copy, with its callees inlined.
    #[inline(never)]
    fn drive(
        &self,
        poll_main: &mut dyn FnMut() -> bool,
        fire: impl Fn(Kind, usize) -> Option<Waiter>,
    ) -> Result<()> {
        let mut core = self.core.borrow_mut();
        loop {
            let index = match core.next_ready() {
                Some(index) => index as usize,
                None => {
                    let Some((time, target)) = core.events.pop() else { return Ok(()) };
                    core.count(&self.now, time, target);
                    match target.kind() {
                        // No task is ready, so the queue would return this same task at once.
                        Kind::Task => target.index(),
                        Kind::Foreign => {
                            let waker = core.foreign.remove(target.index());
                            drop(core);
                            waker.wake();
                            core = self.core.borrow_mut();
                            continue;
                        }
                        kind => {
                            drop(core);
                            let woken = fire(kind, target.index());
                            core = self.core.borrow_mut();
                            match woken {
                                None => continue,
                                // No other task was woken, so the queue would return this task at once.
                                Some(Waiter::Task(key)) if self.is_next(&core, key) => key.index(),
                                Some(waiter) => {
                                    drop(core);
                                    self.wake_waiter(waiter);
                                    core = self.core.borrow_mut();
                                    continue;
                                }
                            }
                        }
                    }
                }
            };
            core.polls_now += 1;
            if core.polls_now > POLLS_AT_ONCE {
                core.watch(index, self.now())?;
            }
            let Core { slots, free, .. } = &mut *core;
            let slot = &mut slots[index];
            let was_ready = std::mem::replace(&mut slot.ready, false);
            let key = TaskKey::new(self.number, slot.generation, index);
            self.current.set(key);
            let Some(mut task) = slot.future.take() else {
                if index == MAIN {
                    drop(core);
                    if poll_main() {
                        return Ok(());
                    }
                    core = self.core.borrow_mut();
                } else if was_ready && !slot.used {
                    free.push(index as u32);
                }
                continue;
            };
            drop(core);
            // Dropping our waker has no effect, but would cost a call.
            let waker = ManuallyDrop::new(key.waker());
            let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                // Drop the task before its slot is free, because its drop may wake and spawn.
                drop(task);
                core = self.core.borrow_mut();
                core.retire(index);
                if let Poll::Ready(Err(error)) = polled {
                    return Err(Error::Failed {
                        task: task_name(&core.slots[index]),
                        why: error.to_string(),
                    }
                    .into());
                }
            } else {
                core = self.core.borrow_mut();
                core.slots[index].future = Some(task);
            }
        }
    }

    /// Returns true if this task is one of ours and would run next if it were woken.
    #[inline]
    fn is_next(&self, core: &Core, key: TaskKey) -> bool {
        let same = core.slots.get(key.index()).is_some_and(|slot| slot.generation == key.generation());
        key.executor() == self.number && same && core.ready.is_empty()
    }

    #[cold]
    fn stalled(&self) -> Error {
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for slot in self.core.borrow().slots.iter().skip(1).filter(|slot| slot.used) {
            *waiting.entry(task_name(slot)).or_insert(0) += 1;
        }
        let mut names: Vec<String> = waiting
            .iter()
            .map(|(name, &count)| if count == 1 { name.clone() } else { format!("{name} ({count} times)") })
            .collect();
        if names.len() > NAMES_MAX {
            let more = names.len() - NAMES_MAX;
            names.truncate(NAMES_MAX);
            names.push(format!("and {more} more"));
        }
        let others = if names.is_empty() { "no other task".to_owned() } else { names.join(", ") };
        let now = Instant::from_nanos(self.now());
        Error::Failed {
            task: "main".to_owned(),
            why: format!("stalled at {now}: nothing is left to happen; also waiting: {others}"),
        }
    }

    /// Drops the tasks of a node, in any state.
    pub(crate) fn end_tasks_of(&self, node: u32) {
        let mut ended: Vec<Task> = Vec::new();
        let mut core = self.core.borrow_mut();
        for index in 1..core.slots.len() {
            if core.slots[index].used && core.slots[index].node == node {
                ended.extend(core.slots[index].future.take());
                core.retire(index);
            }
        }
        drop(core);
        // Drop them outside the borrow, because their drops may wake others.
        drop(ended);
    }

    /// Drops all tasks and events. Tasks hold the machine and the machine holds its tasks, so this cycle must be
    /// broken.
    pub(crate) fn clear(self: &Rc<Self>) {
        let _running = Running::new(self);
        loop {
            let mut core = self.core.borrow_mut();
            let tasks: Vec<Task> = core.slots.iter_mut().filter_map(|slot| slot.future.take()).collect();
            let foreign = std::mem::take(&mut core.foreign);
            core.events = Agenda::default();
            core.ready.clear();
            drop(core);
            drop(foreign);
            if tasks.is_empty() {
                break;
            }
        }
    }
}

impl Present for Executor {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.now())
    }

    fn task(&self) -> (u64, &'static str) {
        self.current_task()
    }
}

impl Core {
    /// Takes the next task out of the ready queue.
    #[inline]
    fn next_ready(&mut self) -> Option<u32> {
        match &mut self.order {
            None => self.ready.pop_front(),
            Some(_) if self.ready.is_empty() => None,
            Some(order) => self.ready.swap_remove_front(order.below(self.ready.len() as u64) as usize),
        }
    }

    /// Advances time to an event, and counts it.
    #[inline]
    fn count(&mut self, now: &Cell<u64>, time: u64, target: EventTarget) {
        if time != now.get() {
            now.set(time);
            self.polls_now = 0;
        }
        self.event_count += 1;
        let mixed = (self.digest ^ time).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(target.bits());
        self.digest = mixed.rotate_left(23);
    }

    fn retire(&mut self, index: usize) {
        self.restless.clear();
        let slot = &mut self.slots[index];
        slot.generation = (slot.generation + 1) % TaskKey::GENERATION_END;
        slot.used = false;
        // A task woken as it ended is still in the ready queue; its slot is freed when the queue reaches it.
        if !slot.ready {
            self.free.push(index as u32);
        }
    }

    /// Counts the polls of single tasks after suspiciously many polls in one instant.
    #[cold]
    fn watch(&mut self, index: usize, now: u64) -> Result<()> {
        if self.polls_now == POLLS_AT_ONCE + 1 {
            self.restless.clear();
        }
        let polls = self.restless.entry(index as u32).or_insert(0);
        *polls += 1;
        if *polls <= POLLS_OF_ONE_TASK && self.polls_now <= POLLS_MAX {
            return Ok(());
        }
        let now = Instant::from_nanos(now);
        Err(Error::Failed {
            task: task_name(&self.slots[index]),
            why: format!("still runs at {now}: tasks ran {} times and time did not pass", self.polls_now),
        }
        .into())
    }
}

fn task_name(slot: &Slot) -> String {
    if slot.node == u32::MAX {
        slot.name.to_owned()
    } else {
        format!("{} on {}", slot.name, NodeId(u64::from(slot.node)))
    }
}
