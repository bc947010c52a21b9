//! The executor: tasks, virtual time and the one loop that drives both.
//!
//! Tasks that can run do so in the order in which they were woken; only when none is left does time move on,
//! to the next event of the heap. Nothing here depends on the host: no clock, no threads, no addresses, no
//! hashing. So a run is a function of what was started, and its digest, a mix of the time and target of every
//! event, tells two runs apart or proves them alike.
//!
//! ```text
//!          wake                       poll
//!   ....---------> ready (FIFO) ----------------> task: schedules events, wakes others
//!   :                 ^                             :
//!   :                 | empty? then                 v
//!   event <--- heap.pop(), now = its time <------ heap.push(time, target)
//! ```
//!
//! The ready queue is the place for a second task order (seeded random, to hunt for bugs), should it be wanted.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use machine::{Error, NodeId, Result};

use crate::heap::{EventHeap, INDEX_END, Kind, Target};
use crate::table::Table;
use crate::waker::TaskKey;

type Task = Pin<Box<dyn Future<Output = Result<()>>>>;

/// The index of the main task, whose future is not in the table but with the caller of the run.
const MAIN: usize = 0;

/// So many polls in one instant are taken for work; beyond them, tasks are watched one by one.
const POLLS_AT_ONCE: u64 = 1_000_000;
/// So many further polls of one task in one instant are taken for a task that never waits.
const POLLS_OF_ONE_TASK: u64 = 100_000;

/// Whom to wake: one of our tasks, by its key, or whatever a combinator put in our place.
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

    /// Whether `context` belongs to this waiter.
    pub(crate) fn is(&self, context: &Context<'_>) -> bool {
        match self {
            Waiter::Task(key) => TaskKey::of(context.waker()) == Some(*key),
            Waiter::Foreign(waker) => waker.will_wake(context.waker()),
        }
    }
}

struct Slot {
    /// Taken out while it is polled; `None` also in a free slot.
    future: Option<Task>,
    name: &'static str,
    node: u32,
    generation: u32,
    ready: bool,
    used: bool,
}

/// Why a run ended before its main task did.
enum Stop {
    Failed(Error),
    Restless { task: String },
}

pub(crate) struct Executor {
    number: u16,
    now: Cell<u64>,
    events: RefCell<EventHeap>,
    ready: RefCell<VecDeque<u32>>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    foreign: RefCell<Table<Waker>>,
    current: Cell<TaskKey>,
    event_count: Cell<u64>,
    digest: Cell<u64>,
    polls_now: Cell<u64>,
    restless: RefCell<BTreeMap<u32, u64>>,
    stop: RefCell<Option<Stop>>,
}

thread_local! {
    /// The executors of this thread, for wakers; the one that runs is found first.
    static HERE: RefCell<Here> = const { RefCell::new(Here { running: None, all: Vec::new(), next: 0 }) };
}

struct Here {
    running: Option<Rc<Executor>>,
    all: Vec<(u16, Weak<Executor>)>,
    next: u16,
}

/// Wakes the task wherever on this thread its executor is; a task that is gone is not woken.
pub(crate) fn wake_anywhere(key: TaskKey) {
    // While the thread's locals are being destroyed nobody is left to be woken.
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
    pub(crate) fn new() -> Rc<Self> {
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
        let executor = Rc::new(Executor {
            number,
            now: Cell::new(0),
            events: RefCell::default(),
            ready: RefCell::default(),
            slots: RefCell::new(vec![main]),
            free: RefCell::default(),
            foreign: RefCell::default(),
            current: Cell::new(TaskKey::new(number, 0, MAIN)),
            event_count: Cell::new(0),
            digest: Cell::new(0),
            polls_now: Cell::new(0),
            restless: RefCell::default(),
            stop: RefCell::new(None),
        });
        HERE.with(|here| here.borrow_mut().all.push((number, Rc::downgrade(&executor))));
        executor
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// How many timed events there have been.
    pub(crate) fn event_count(&self) -> u64 {
        self.event_count.get()
    }

    /// A mix of the times and targets of all events so far.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.get()
    }

    /// The task that is being polled.
    pub(crate) fn current(&self) -> TaskKey {
        self.current.get()
    }

    /// Starts a task; it first runs when its turn comes.
    pub(crate) fn spawn(&self, name: &'static str, node: u32, task: Task) {
        let mut slots = self.slots.borrow_mut();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            assert!(slots.len() < INDEX_END, "fewer than {INDEX_END} tasks at once");
            slots.push(Slot { future: None, name, node, generation: 0, ready: false, used: false });
            slots.len() as u32 - 1
        });
        let slot = &mut slots[index as usize];
        let generation = slot.generation;
        *slot = Slot { future: Some(task), name, node, generation, ready: true, used: true };
        self.ready.borrow_mut().push_back(index);
    }

    /// Puts the task at the end of the ready queue, unless it is there already or is gone.
    pub(crate) fn wake(&self, key: TaskKey) {
        let index = key.index();
        let slot = &mut self.slots.borrow_mut()[index];
        if slot.generation == key.generation() && !slot.ready {
            slot.ready = true;
            self.ready.borrow_mut().push_back(index as u32);
        }
    }

    pub(crate) fn wake_waiter(&self, waiter: Waiter) {
        match waiter {
            Waiter::Task(key) if key.executor() == self.number => self.wake(key),
            Waiter::Task(key) => wake_anywhere(key),
            Waiter::Foreign(waker) => waker.wake(),
        }
    }

    /// Lets `target` happen at `time`.
    pub(crate) fn schedule(&self, time: u64, target: Target) {
        debug_assert!(time >= self.now(), "no event in the past");
        self.events.borrow_mut().push(time, target);
    }

    /// Wakes `waiter` at `time`.
    pub(crate) fn schedule_wake(&self, time: u64, waiter: Waiter) {
        let target = match waiter {
            Waiter::Task(key) if key.executor() == self.number => Target::new(Kind::Task, key.index()),
            Waiter::Task(key) => Target::new(Kind::Foreign, self.foreign.borrow_mut().insert(key.waker())),
            Waiter::Foreign(waker) => Target::new(Kind::Foreign, self.foreign.borrow_mut().insert(waker)),
        };
        self.schedule(time, target);
    }

    /// Runs until `main` is over; `fire` is told of all events that are not for tasks.
    pub(crate) fn run<T>(
        self: &Rc<Self>,
        main: Pin<&mut dyn Future<Output = T>>,
        fire: impl Fn(Kind, usize),
    ) -> Result<T> {
        let running = Running::new(self);
        let key = self.begin_main();
        let waker = key.waker();
        let mut main = main;
        let result = self.drive(
            || match main.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => Some(value),
                Poll::Pending => None,
            },
            fire,
        );
        drop(running);
        result?.ok_or_else(|| self.stalled())
    }

    /// Runs until nothing is left to happen.
    pub(crate) fn run_until_idle(self: &Rc<Self>, fire: impl Fn(Kind, usize)) -> Result<()> {
        let _running = Running::new(self);
        self.drive(|| None::<()>, fire).map(|_| ())
    }

    /// Readies the main task under a new generation, so that wakers of an earlier run do not concern it.
    fn begin_main(&self) -> TaskKey {
        let slot = &mut self.slots.borrow_mut()[MAIN];
        slot.generation = (slot.generation + 1) % TaskKey::GENERATION_END;
        if !slot.ready {
            slot.ready = true;
            self.ready.borrow_mut().push_back(MAIN as u32);
        }
        TaskKey::new(self.number, slot.generation, MAIN)
    }

    /// The loop. Gives what `poll_main` gave, or nothing once there is nothing left to happen.
    fn drive<T>(
        &self,
        mut poll_main: impl FnMut() -> Option<T>,
        fire: impl Fn(Kind, usize),
    ) -> Result<Option<T>> {
        loop {
            loop {
                let Some(index) = self.ready.borrow_mut().pop_front() else { break };
                if let Some(value) = self.poll(index, &mut poll_main)? {
                    return Ok(Some(value));
                }
            }
            let event = self.events.borrow_mut().pop();
            let Some((time, target)) = event else { return Ok(None) };
            self.pass_to(time, target);
            let index = target.index();
            match target.kind() {
                // Nobody is ready, so the queue would give this very task back at once.
                Kind::Task => {
                    if let Some(value) = self.poll(index as u32, &mut poll_main)? {
                        return Ok(Some(value));
                    }
                }
                Kind::Foreign => {
                    let waker = self.foreign.borrow_mut().remove(index);
                    waker.wake();
                }
                kind => fire(kind, index),
            }
        }
    }

    fn pass_to(&self, time: u64, target: Target) {
        if time != self.now.get() {
            self.now.set(time);
            self.polls_now.set(0);
        }
        self.event_count.set(self.event_count.get() + 1);
        let mixed = (self.digest.get() ^ time).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(target.bits());
        self.digest.set(mixed.rotate_left(23));
    }

    #[inline]
    fn poll<T>(&self, index: u32, poll_main: &mut impl FnMut() -> Option<T>) -> Result<Option<T>> {
        let polls = self.polls_now.get() + 1;
        self.polls_now.set(polls);
        if polls > POLLS_AT_ONCE {
            self.watch(index);
        }
        if index == MAIN as u32 {
            let mut slots = self.slots.borrow_mut();
            slots[MAIN].ready = false;
            self.current.set(TaskKey::new(self.number, slots[MAIN].generation, MAIN));
            drop(slots);
            let value = poll_main();
            if value.is_some() {
                return Ok(value);
            }
        } else {
            self.poll_detached(index as usize);
        }
        if self.stop.borrow().is_some() { Err(self.take_stop()) } else { Ok(None) }
    }

    fn poll_detached(&self, index: usize) {
        let (mut task, generation) = {
            let slot = &mut self.slots.borrow_mut()[index];
            let was_ready = std::mem::replace(&mut slot.ready, false);
            match slot.future.take() {
                Some(task) => (task, slot.generation),
                None => {
                    if was_ready && !slot.used {
                        self.free.borrow_mut().push(index as u32);
                    }
                    return;
                }
            }
        };
        let key = TaskKey::new(self.number, generation, index);
        self.current.set(key);
        let waker = key.waker();
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.slots.borrow_mut()[index].future = Some(task),
            Poll::Ready(result) => {
                // Dropped before its slot is free: what it drops may wake and spawn.
                drop(task);
                self.retire(index, result);
            }
        }
    }

    fn retire(&self, index: usize, result: Result<()>) {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[index];
        slot.generation = (slot.generation + 1) % TaskKey::GENERATION_END;
        slot.used = false;
        // One that was woken as it ended still has its place in the queue, and is free once that has come up.
        if !slot.ready {
            self.free.borrow_mut().push(index as u32);
        }
        if let Err(error) = result {
            let failed = Error::Failed { task: task_name(slot), why: error.to_string() };
            self.stop.borrow_mut().get_or_insert(Stop::Failed(failed));
        }
    }

    /// Counts the polls of single tasks once there have been suspiciously many in one instant.
    #[cold]
    fn watch(&self, index: u32) {
        let mut restless = self.restless.borrow_mut();
        if self.polls_now.get() == POLLS_AT_ONCE + 1 {
            restless.clear();
        }
        let polls = restless.entry(index).or_insert(0);
        *polls += 1;
        if *polls > POLLS_OF_ONE_TASK {
            let task = task_name(&self.slots.borrow()[index as usize]);
            self.stop.borrow_mut().get_or_insert(Stop::Restless { task });
        }
    }

    #[cold]
    fn take_stop(&self) -> Error {
        let now = machine::Instant::from_nanos(self.now());
        match self.stop.take().expect("a reason to stop") {
            Stop::Failed(error) => error,
            Stop::Restless { task } => Error::Failed {
                task,
                why: format!("ran {POLLS_OF_ONE_TASK} times at {now} and time did not pass"),
            },
        }
    }

    #[cold]
    fn stalled(&self) -> Error {
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for slot in self.slots.borrow().iter().skip(1).filter(|slot| slot.used) {
            *waiting.entry(task_name(slot)).or_insert(0) += 1;
        }
        let mut names: Vec<String> = waiting
            .iter()
            .map(|(name, &count)| if count == 1 { name.clone() } else { format!("{name} ({count} times)") })
            .collect();
        if names.len() > 40 {
            let more = names.len() - 40;
            names.truncate(40);
            names.push(format!("and {more} more"));
        }
        let others = if names.is_empty() { "no other task".to_owned() } else { names.join(", ") };
        Error::Failed {
            task: "main".to_owned(),
            why: format!(
                "stalled at {}: nothing is left to happen; also waiting: {others}",
                machine::Instant::from_nanos(self.now())
            ),
        }
    }

    /// Drops all tasks and events. Tasks hold on to the machine and the machine to its tasks, so somebody has
    /// to let go.
    pub(crate) fn clear(self: &Rc<Self>) {
        let _running = Running::new(self);
        loop {
            let tasks: Vec<Task> =
                self.slots.borrow_mut().iter_mut().filter_map(|s| s.future.take()).collect();
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        let foreign = self.foreign.take();
        drop(foreign);
        self.events.take();
        self.ready.borrow_mut().clear();
    }
}

fn task_name(slot: &Slot) -> String {
    if slot.node == u32::MAX {
        slot.name.to_owned()
    } else {
        format!("{} on {}", slot.name, NodeId(u64::from(slot.node)))
    }
}
