//! Parts of pages that were written and wait for the rest: they are sent without it after a while, so that what a
//! program writes little by little, and never flushes, does not stay in this node's memory. What is written to files of
//! a namespace is sent by `tree/publishing.rs`, which reports it as well.

use std::rc::Rc;

use machine::{Class, Machine};

use super::Inner;
use crate::in_time::{InTime, Timed, see_to};

impl<M: Machine> Inner<M> {
    /// Sees to it that a part of a page that was written is sent in time.
    pub(super) fn note_part(self: &Rc<Self>) {
        if let Some(limit) = self.settings.send_parts_after {
            see_to(self, limit, "send parts in time");
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

impl<M: Machine> Timed for Inner<M> {
    type Machine = M;

    fn machine(&self) -> &M {
        self.client.inner.endpoint.machine()
    }

    fn in_time(&self) -> &InTime {
        &self.parts
    }

    fn do_it(self: &Rc<Self>) {
        if !self.send_parts() {
            self.parts.wait(self.machine());
        }
    }
}
