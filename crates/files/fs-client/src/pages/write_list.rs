//! The pages queued for sending, and those being sent.
//!
//! Pages wait in the order in which their writes began, and write agents take one after the other. The number of agents
//! limits the writes in flight. An agent starts when a page is added and a permit is free, and ends when the queue is
//! empty. A caller that waits for the pages of a file promotes all of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use machine::{Class, OperationInFlight, Permit, Permits};

use super::table::PageSlot;

/// The write list of a page cache.
pub(super) struct WriteList {
    waiting: RefCell<VecDeque<Waiting>>,
    being_sent: RefCell<BTreeMap<PageSlot, Class>>,
    /// One permit for each possible write agent.
    agents: Permits,
}

struct Waiting {
    place: PageSlot,
    class: Class,
    /// Counts as a write in flight of its file.
    operation: OperationInFlight,
}

impl WriteList {
    /// Returns an empty list; at most `agents` write agents send from it at once.
    pub(super) fn new(agents: u64) -> Self {
        WriteList {
            waiting: RefCell::default(),
            being_sent: RefCell::default(),
            agents: Permits::new(agents),
        }
    }

    /// Adds a page whose write has begun. Returns a permit if the caller should start another agent.
    #[must_use]
    pub(super) fn put(&self, place: PageSlot, class: Class, operation: OperationInFlight) -> Option<Permit> {
        self.waiting.borrow_mut().push_back(Waiting { place, class, operation });
        self.agents.try_take()
    }

    /// Takes the next page, which is being sent from now on.
    pub(super) fn next(&self) -> Option<(PageSlot, OperationInFlight)> {
        let Waiting { place, class, operation } = self.waiting.borrow_mut().pop_front()?;
        self.being_sent.borrow_mut().insert(place, class);
        Some((place, operation))
    }

    /// Returns the class of a page that is being sent.
    pub(super) fn class(&self, place: PageSlot) -> Class {
        self.being_sent.borrow()[&place]
    }

    /// Records that a page has been sent, or that sending it failed.
    pub(super) fn end(&self, place: PageSlot) {
        self.being_sent.borrow_mut().remove(&place);
    }

    /// Returns all pages of the list.
    pub(super) fn places(&self) -> Vec<PageSlot> {
        let waiting = self.waiting.borrow();
        let waiting = waiting.iter().map(|waiting| waiting.place);
        waiting.chain(self.being_sent.borrow().keys().copied()).collect()
    }

    /// Promotes pages to demand. Returns those that were being sent in the background.
    pub(super) fn promote_writes(&self, is_meant: impl Fn(PageSlot) -> bool) -> Vec<PageSlot> {
        for waiting in self.waiting.borrow_mut().iter_mut().filter(|waiting| is_meant(waiting.place)) {
            waiting.class = Class::Demand;
        }
        let mut being_sent = self.being_sent.borrow_mut();
        let meant =
            being_sent.iter_mut().filter(|(place, class)| **class == Class::Background && is_meant(**place));
        meant
            .map(|(&place, class)| {
                *class = Class::Demand;
                place
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use machine::InFlight;

    use super::*;

    fn put(list: &WriteList, place: PageSlot) -> Option<Permit> {
        list.put(place, Class::Background, InFlight::new().begin())
    }

    fn next(list: &WriteList) -> Option<PageSlot> {
        list.next().map(|(place, _)| place)
    }

    #[test]
    fn pages_are_sent_in_order_by_a_limited_number_of_tasks() {
        let list = WriteList::new(2);
        let agents = [put(&list, 7), put(&list, 5), put(&list, 6)];
        assert_eq!(agents.each_ref().map(Option::is_some), [true, true, false]);
        assert_eq!([next(&list), next(&list), next(&list), next(&list)], [Some(7), Some(5), Some(6), None]);
        drop(agents);
        assert!(put(&list, 8).is_some(), "an agent has ended");
    }

    #[test]
    fn queued_and_sent_pages_of_a_file_are_promoted() {
        let list = WriteList::new(1);
        for place in [0, 1, 2, 3] {
            let _ = put(&list, place);
        }
        assert_eq!((next(&list), next(&list)), (Some(0), Some(1)));
        let is_odd = |place: PageSlot| place % 2 == 1;
        assert_eq!(list.promote_writes(is_odd), [1], "3 has not been sent: it will be on demand");
        assert_eq!(list.promote_writes(is_odd), [0; 0]);
        assert_eq!((next(&list), next(&list)), (Some(2), Some(3)));
        let classes = [Class::Background, Class::Demand, Class::Background, Class::Demand];
        assert_eq!([0, 1, 2, 3].map(|place| list.class(place)), classes);
    }
}
