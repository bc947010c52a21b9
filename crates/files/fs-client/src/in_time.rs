//! What is done by itself when something has waited for long enough: one task of an owner sees to it, and only as long
//! as anything waits.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use machine::{Duration, Instant, Machine};

/// When something is to be done.
#[derive(Default)]
pub(super) struct InTime {
    /// Since when something waits, if it does.
    oldest: Cell<Option<Instant>>,
    /// Whether a task sees to it.
    is_timed: Cell<bool>,
}

/// An owner of what waits.
pub(super) trait Timed: 'static {
    type Machine: Machine;

    fn machine(&self) -> &Self::Machine;

    fn in_time(&self) -> &InTime;

    /// Does it. Nothing is said to wait when this begins.
    fn do_it(self: &Rc<Self>);
}

impl InTime {
    /// Something waits from now on, unless something has before.
    pub(super) fn wait(&self, machine: &impl Machine) {
        if self.oldest.get().is_none() {
            self.oldest.set(Some(machine.now()));
        }
    }

    /// Nothing waits any more.
    pub(super) fn clear(&self) {
        self.oldest.set(None);
    }
}

/// Something of `owner` waits: sees to it that it is done when it has waited for `limit`. `name` is the task's.
pub(super) fn see_to<T: Timed>(owner: &Rc<T>, limit: Duration, name: &'static str) {
    let in_time = owner.in_time();
    in_time.wait(owner.machine());
    if !in_time.is_timed.replace(true) {
        owner.machine().spawn(name, attend(Rc::downgrade(owner), limit));
    }
}

async fn attend<T: Timed>(owner: Weak<T>, limit: Duration) -> machine::Result<()> {
    while let Some(owner) = owner.upgrade() {
        let Some(oldest) = owner.in_time().oldest.get() else {
            owner.in_time().is_timed.set(false);
            break;
        };
        let (machine, due) = (owner.machine().clone(), oldest + limit);
        if machine.now() < due {
            drop(owner);
            machine.sleep_until(due).await;
        } else {
            owner.in_time().clear();
            owner.do_it();
        }
    }
    Ok(())
}
