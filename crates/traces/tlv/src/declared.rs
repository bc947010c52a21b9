//! Declarations of this process: states, counters, names of arguments, and the numbered events of `TLV_AddState`.
//!
//! Declarations last as long as the process, with or without a recording, so that an assigned number stays valid; each
//! file contains all of them. Declaring the same object again returns the same number, so that a program may declare it
//! at the place of its use.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace::{CounterId, CounterInfo, NameId, StateId, StateInfo};

use crate::error::{Error, Result, invalid};

/// Maximum number of states, and also of counters and of names. A program that exceeds the limit probably makes a new
/// name for each value.
pub const DECLARATIONS_MAX: usize = 1 << 16;

/// Effect of a numbered event on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventMeaning {
    Begins(StateId),
    Ends(StateId),
}

/// All declarations so far.
#[derive(Default)]
pub(crate) struct Declarations {
    pub(crate) states: Vec<StateInfo>,
    pub(crate) counters: Vec<CounterInfo>,
    pub(crate) names: Vec<String>,
    pub(crate) events: BTreeMap<i32, EventMeaning>,
    state_ids: BTreeMap<(String, String), StateId>,
    counter_ids: BTreeMap<String, CounterId>,
    name_ids: BTreeMap<String, NameId>,
}

static DECLARED: Mutex<Declarations> = Mutex::new(Declarations::new());

/// Returns the locked declarations. The lock is never held for long.
pub(crate) fn declared() -> MutexGuard<'static, Declarations> {
    DECLARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Declarations {
    const fn new() -> Self {
        Declarations {
            states: Vec::new(),
            counters: Vec::new(),
            names: Vec::new(),
            events: BTreeMap::new(),
            state_ids: BTreeMap::new(),
            counter_ids: BTreeMap::new(),
            name_ids: BTreeMap::new(),
        }
    }

    fn state(&mut self, info: StateInfo) -> Result<StateId> {
        let key = (info.name.clone(), info.category.clone());
        if let Some(id) = self.state_ids.get(&key) {
            return Ok(*id);
        }
        let id = StateId(next(&self.states, "state", &info.name)?);
        self.states.push(info);
        self.state_ids.insert(key, id);
        Ok(id)
    }

    fn counter(&mut self, info: CounterInfo) -> Result<CounterId> {
        if let Some(id) = self.counter_ids.get(&info.name) {
            return Ok(*id);
        }
        let id = CounterId(next(&self.counters, "counter", &info.name)?);
        self.counter_ids.insert(info.name.clone(), id);
        self.counters.push(info);
        Ok(id)
    }

    fn name(&mut self, name: &str) -> Result<NameId> {
        if let Some(id) = self.name_ids.get(name) {
            return Ok(*id);
        }
        let id = NameId(next(&self.names, "argument", name)?);
        self.name_ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        Ok(id)
    }

    fn events(&mut self, begin: i32, end: i32, info: StateInfo) -> Result<StateId> {
        if begin == end {
            return Err(invalid(
                format!("event {begin}"),
                "the begin and the end of a state need different events",
            ));
        }
        let known = self.state_ids.get(&(info.name.clone(), info.category.clone())).copied();
        for (event, is_begin) in [(begin, true), (end, false)] {
            let meaning = |id| if is_begin { EventMeaning::Begins(id) } else { EventMeaning::Ends(id) };
            if self.events.get(&event).is_some_and(|&other| Some(other) != known.map(meaning)) {
                return Err(invalid(format!("event {event}"), "this event already belongs to another state"));
            }
        }
        if self.events.len() + 2 > 2 * DECLARATIONS_MAX {
            return Err(too_many("event", &begin.to_string()));
        }
        let id = self.state(info)?;
        self.events.insert(begin, EventMeaning::Begins(id));
        self.events.insert(end, EventMeaning::Ends(id));
        Ok(id)
    }
}

/// Returns the number of the next declaration.
fn next<T>(of: &[T], kind: &str, name: &str) -> Result<u32> {
    if name.is_empty() {
        return Err(invalid(format!("a {kind}"), "it has no name"));
    }
    if of.len() >= DECLARATIONS_MAX {
        return Err(too_many(kind, name));
    }
    Ok(of.len() as u32)
}

fn too_many(kind: &str, name: &str) -> Error {
    let why = format!(
        "the limit of {DECLARATIONS_MAX} names of this kind is reached: pass changing values as arguments"
    );
    invalid(format!("{kind} {name}"), why)
}

/// Declares a state. States of the same name and category are equal.
pub fn declare_state(info: &StateInfo) -> Result<StateId> {
    declared().state(info.clone())
}

/// Declares a state by the numbers of the events that begin and end it, for [`crate::event`].
pub fn declare_events(begin: i32, end: i32, info: &StateInfo) -> Result<StateId> {
    declared().events(begin, end, info.clone())
}

/// Declares a counter. Counters of the same name are equal.
pub fn declare_counter(info: &CounterInfo) -> Result<CounterId> {
    declared().counter(info.clone())
}

/// Declares the name of an argument.
pub fn declare_name(name: &str) -> Result<NameId> {
    declared().name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str) -> StateInfo {
        StateInfo { name: name.into(), category: String::new(), colour: None }
    }

    #[test]
    fn a_repeated_declaration_returns_the_same_number() {
        let mut declared = Declarations::default();
        let sort = declared.state(info("sort")).expect("a name");
        assert_ne!(declared.state(info("merge")).expect("a name"), sort);
        assert_eq!(declared.state(info("sort")).expect("a name"), sort);
        let other = declared.state(StateInfo { category: "other".into(), ..info("sort") }).expect("a name");
        assert_ne!(other, sort);
        assert_eq!(declared.name("bytes").expect("a name"), declared.name("bytes").expect("a name"));
        assert_eq!(declared.names, ["bytes"]);
    }

    #[test]
    fn an_event_has_one_meaning() {
        let mut declared = Declarations::default();
        let sort = declared.events(0, 1, info("sort")).expect("free");
        assert_eq!(declared.events(0, 1, info("sort")).expect("the same"), sort);
        for (begin, end, name) in
            [(0, 2, "merge"), (2, 1, "merge"), (1, 0, "sort"), (5, 5, "merge"), (6, 7, "")]
        {
            assert!(declared.events(begin, end, info(name)).is_err(), "{begin} {end} {name}");
        }
        assert_eq!(declared.events.len(), 2);
        declared.events(-3, i32::MAX, info("merge")).expect("free");
    }

    #[test]
    fn the_number_of_names_is_limited() {
        let mut declared = Declarations::default();
        (0..DECLARATIONS_MAX).for_each(|number| _ = declared.name(&number.to_string()).expect("room"));
        let error = declared.name("one more").expect_err("no room").to_string();
        assert!(error.contains("one more") && error.contains("argument"), "{error}");
        assert!(declared.name("0").is_ok());
    }
}
