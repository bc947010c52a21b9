//! Timer that processes an owner's waiting entries when the oldest one has waited for a time limit. Each owner has one
//! timer task, which runs only while an entry waits.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use machine::{Duration, Instant, Machine};

/// Timer state of an owner.
#[derive(Default)]
pub(super) struct DeadlineTimer {
    /// Time at which the oldest entry began to wait, if any entry waits.
    oldest: Cell<Option<Instant>>,
    /// True if a timer task is running.
    is_timed: Cell<bool>,
}

/// An owner of waiting entries.
pub(super) trait Timed: 'static {
    type Machine: Machine;

    fn machine(&self) -> &Self::Machine;

    fn in_time(&self) -> &DeadlineTimer;

    /// Processes all waiting entries. The timer is cleared before this call.
    fn do_it(self: &Rc<Self>);
}

impl DeadlineTimer {
    /// Records that an entry waits from now on, unless an older entry already waits.
    pub(super) fn wait(&self, machine: &impl Machine) {
        if self.oldest.get().is_none() {
            self.oldest.set(Some(machine.now()));
        }
    }

    /// Records that no entry waits any more.
    pub(super) fn clear(&self) {
        self.oldest.set(None);
    }
}

/// Records that an entry of `owner` waits, and ensures that a task called `name` processes it after the time `limit`.
pub(super) fn start_timer<T: Timed>(owner: &Rc<T>, limit: Duration, name: &'static str) {
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
