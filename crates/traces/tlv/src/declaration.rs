//! Declarations in statics of Rust programs: states, counters and arguments.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use trace::{Amount, Colour, CounterId, CounterInfo, NameId, StateId, StateInfo};

use crate::{declared, record};

/// Number of a state, counter or name, assigned by its declaration at the first use.
#[derive(Debug)]
struct Once(AtomicU32);

impl Once {
    const NOT_YET: u32 = 0;
    const NONE: u32 = 1;
    const FIRST: u32 = 2;

    const fn new() -> Self {
        Once(AtomicU32::new(Self::NOT_YET))
    }

    /// Returns the number, or `None` if `declare` returned none. If two threads call `declare` at the same time, both
    /// get the same number.
    #[inline]
    fn get_or(&self, declare: impl FnOnce() -> Option<u32>) -> Option<u32> {
        match self.0.load(Ordering::Relaxed) {
            Self::NOT_YET => self.get_first(declare),
            Self::NONE => None,
            number => Some(number - Self::FIRST),
        }
    }

    #[cold]
    fn get_first(&self, declare: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let number = declare();
        self.0.store(number.map_or(Self::NONE, |number| number + Self::FIRST), Ordering::Relaxed);
        number
    }
}

/// State of a thread.
///
/// ```
/// static SORT: tlv::State = tlv::State::new("sort").coloured(tlv::Colour(0xd5, 0x5e, 0x00));
///
/// fn sort(numbers: &mut [u64]) {
///     let _scope = SORT.enter();
///     numbers.sort();
/// }
/// # sort(&mut [2, 1]);
/// ```
#[derive(Debug)]
pub struct State {
    name: &'static str,
    category: &'static str,
    colour: Option<Colour>,
    id: Once,
}

impl State {
    /// Returns a state of this name, in a colour that the viewer chooses.
    pub const fn new(name: &'static str) -> Self {
        State { name, category: "", colour: None, id: Once::new() }
    }

    /// Returns this state in the colour `colour`.
    pub const fn coloured(self, colour: Colour) -> Self {
        State { colour: Some(colour), ..self }
    }

    /// Returns this state in `category`, by which the viewer can select states.
    pub const fn in_category(self, category: &'static str) -> Self {
        State { category, ..self }
    }

    /// Begins the state on this thread; dropping the returned value ends it.
    #[inline]
    pub fn enter(&self) -> Scope {
        let state = if record::is_recording() { self.id() } else { None };
        Scope::enter(state)
    }

    /// Returns the state's number; `None` if there are too many states.
    #[inline]
    fn id(&self) -> Option<StateId> {
        self.id.get_or(|| self.declare()).map(StateId)
    }

    fn declare(&self) -> Option<u32> {
        let (name, category) = (self.name.to_owned(), self.category.to_owned());
        Some(declared::declare_state(&StateInfo { name, category, colour: self.colour }).ok()?.0)
    }
}

/// State of this thread until dropped. Not `Send`.
#[derive(Debug)]
#[must_use = "the state ends when this is dropped"]
pub struct Scope {
    /// The state; `None` if its begin was not recorded, so that its end is not recorded either.
    state: Option<StateId>,
    stays: PhantomData<*const ()>,
}

impl Scope {
    #[inline]
    fn enter(state: Option<StateId>) -> Self {
        let state = state.filter(|state| record::begin(*state).is_ok());
        Scope { state, stays: PhantomData }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(state) = self.state {
            // If the ring is full, the record is counted as dropped.
            let _ = record::end(state);
        }
    }
}

/// Begins a state declared by [`crate::declare_state`] on this thread; dropping the returned value ends it.
#[inline]
pub fn enter(state: StateId) -> Scope {
    Scope::enter(Some(state))
}

/// Value over time, such as the length of a queue.
///
/// ```
/// static QUEUE: tlv::Counter = tlv::Counter::new("queue").in_unit("requests");
/// QUEUE.set(3);
/// ```
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    unit: &'static str,
    id: Once,
}

impl Counter {
    /// Returns a counter of this name, without a unit.
    pub const fn new(name: &'static str) -> Self {
        Counter { name, unit: "", id: Once::new() }
    }

    /// Returns this counter with values in `unit`.
    pub const fn in_unit(self, unit: &'static str) -> Self {
        Counter { unit, ..self }
    }

    /// Records a new value of the counter.
    #[inline]
    pub fn set(&self, value: impl Into<Amount>) {
        if record::is_recording()
            && let Some(id) = self.id()
        {
            // If the ring is full, the record is counted as dropped.
            let _ = record::count(id, value.into());
        }
    }

    /// Returns the counter's number; `None` if there are too many counters.
    #[inline]
    fn id(&self) -> Option<CounterId> {
        self.id.get_or(|| self.declare()).map(CounterId)
    }

    fn declare(&self) -> Option<u32> {
        let info = CounterInfo { name: self.name.to_owned(), unit: self.unit.to_owned() };
        Some(declared::declare_counter(&info).ok()?.0)
    }
}

/// Argument of a state: a number or a text that varies between its occurrences.
///
/// ```
/// static SORT: tlv::State = tlv::State::new("sort");
/// static ITEMS: tlv::Argument = tlv::Argument::new("items");
///
/// fn sort(numbers: &mut [u64]) {
///     let _scope = SORT.enter();
///     ITEMS.number(numbers.len());
///     numbers.sort();
/// }
/// # sort(&mut [2, 1]);
/// ```
#[derive(Debug)]
pub struct Argument {
    name: &'static str,
    id: Once,
}

impl Argument {
    /// Returns an argument of this name.
    pub const fn new(name: &'static str) -> Self {
        Argument { name, id: Once::new() }
    }

    /// Adds this number to the state that this thread began last.
    #[inline]
    pub fn number(&self, value: impl Into<Amount>) {
        if record::is_recording()
            && let Some(id) = self.id()
        {
            // If the ring is full, the record is counted as dropped.
            let _ = record::argue(id, value.into());
        }
    }

    /// Adds this text, truncated to [`crate::TEXT_BYTES`] bytes, to the state that this thread began last.
    #[inline]
    pub fn text(&self, value: &str) {
        if record::is_recording()
            && let Some(id) = self.id()
        {
            // If the ring is full, the record is counted as dropped.
            let _ = record::argue_text(id, value.as_bytes());
        }
    }

    /// Returns the number of the name; `None` if there are too many names.
    #[inline]
    fn id(&self) -> Option<NameId> {
        self.id.get_or(|| Some(declared::declare_name(self.name).ok()?.0)).map(NameId)
    }
}
