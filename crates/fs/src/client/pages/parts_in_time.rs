//! Parts of pages that were written and wait for the rest: they are sent without it after a while, so that what a
//! program writes little by little, and never flushes, does not stay in this node's memory.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use machine::{Class, Duration, Instant, Machine};

use super::Inner;

/// When parts of pages are to be sent.
#[derive(Default)]
pub(super) struct PartsInTime {
    /// Since when one may wait, if one does.
    oldest: Cell<Option<Instant>>,
    /// Whether somebody sees to it.
    is_timed: Cell<bool>,
}

impl<M: Machine> Inner<M> {
    /// Sees to it that a part of a page that was written is sent in time.
    pub(super) fn note_part(self: &Rc<Self>) {
        let (Some(limit), None) = (self.settings.send_parts_after, self.parts.oldest.get()) else { return };
        let machine = self.client.inner.endpoint.machine();
        self.parts.oldest.set(Some(machine.now()));
        if !self.parts.is_timed.replace(true) {
            machine.spawn("send parts in time", send_in_time(Rc::downgrade(self), limit));
        }
    }

    /// Begins to send all parts that can be sent now; whether that is all there are.
    fn send_parts(self: &Rc<Self>) -> bool {
        // Of a page that is being sent, more may have been written meanwhile.
        let mut is_all = self.write_list.places().is_empty();
        for file in self.files.all().into_iter().filter(|file| !file.stays_here()) {
            // What could not be sent before is the business of the next flush, which tells why.
            let places = self.table.borrow().unwritten(file.number, false);
            for place in places {
                is_all &= self.start_writing(place, Class::Background);
            }
        }
        is_all
    }
}

/// Has parts of pages sent whenever one has become too old, as long as there are any.
async fn send_in_time<M: Machine>(cache: Weak<Inner<M>>, limit: Duration) -> machine::Result<()> {
    while let Some(cache) = cache.upgrade() {
        let Some(oldest) = cache.parts.oldest.get() else {
            cache.parts.is_timed.set(false);
            break;
        };
        let (machine, due) = (cache.client.inner.endpoint.machine().clone(), oldest + limit);
        if machine.now() < due {
            drop(cache);
            machine.sleep_until(due).await;
        } else {
            cache.parts.oldest.set(None);
            if !cache.send_parts() {
                cache.parts.oldest.set(Some(machine.now()));
            }
        }
    }
    Ok(())
}
