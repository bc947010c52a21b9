//! The teams of a node thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use real::RealMachine;

/// Teams, by their numbers.
#[derive(Default)]
pub(crate) struct Teams {
    teams: RefCell<BTreeMap<u64, Rc<fs::TeamMembership<RealMachine>>>>,
    last: Cell<u64>,
}

impl Teams {
    /// Adds a team. Returns its number.
    pub(crate) fn enter(&self, team: fs::TeamMembership<RealMachine>) -> u64 {
        let number = self.last.get() + 1;
        self.last.set(number);
        self.teams.borrow_mut().insert(number, Rc::new(team));
        number
    }

    /// Returns the team of a number that `enter` has returned.
    pub(crate) fn get(&self, number: u64) -> Rc<fs::TeamMembership<RealMachine>> {
        self.teams.borrow()[&number].clone()
    }

    /// Removes a team from the table and returns it.
    pub(crate) fn remove(&self, number: u64) -> Option<Rc<fs::TeamMembership<RealMachine>>> {
        self.teams.borrow_mut().remove(&number)
    }
}
