//! Publishing: writes that no caller flushes are sent to the I/O nodes and then reported to the metadata server. After
//! that, clients that ask for the attributes of the file get its new size and version.
//!
//! - Appends are published immediately, in the background: the client that has been assigned the next range waits until
//!   they are reported.
//! - Other writes are published when the oldest of them has waited for [`PageCacheSettings::send_parts_after`].
//! - A failure is reported by the next flush or close, as any failure of a background write.
//!
//! [`PageCacheSettings::send_parts_after`]: crate::PageCacheSettings::send_parts_after

use std::rc::{Rc, Weak};

use machine::Machine;

use super::open_file::{OpenTreeFile, TreeFileState};
use super::{Tree, TreeInner};
use crate::deadline_timer::{DeadlineTimer, Timed, start_timer};
use crate::error::Error;
use crate::protocol::{FileId, OpenFor};

impl<M: Machine> Tree<M> {
    /// Starts the timer that publishes writes.
    pub(super) fn publish_in_time(&self) {
        if let Some(limit) = self.cache().settings().send_parts_after {
            start_timer(&self.inner, limit, "publish writes in time");
        }
    }

    /// Starts publishing the writes to a file.
    pub(super) fn publish(&self, state: &Rc<TreeFileState>) {
        if !state.is_to_be_published.replace(true) {
            let (tree, state) = (Rc::downgrade(&self.inner), state.clone());
            self.machine().spawn("publish writes", async move {
                publish(tree, state).await;
                Ok(())
            });
        }
    }
}

async fn publish<M: Machine>(tree: Weak<TreeInner<M>>, state: Rc<TreeFileState>) {
    // The last close takes this permit, too. So a handle that is created here is dropped before the last close.
    let _turn = state.reporting.take().await;
    state.is_to_be_published.set(false);
    let Some(inner) = tree.upgrade().filter(|_| state.handles.get() > 0) else { return };
    let tree = Tree { inner };
    let Some(paged) = tree.cache().known_numbered(FileId(state.number().0)) else { return };
    let file = OpenTreeFile { tree, paged, state, used: OpenFor::Writing, had_other_writers: false };
    if file.publish().await.is_err_and(|error| may_succeed_later(&error)) {
        file.tree.publish_in_time();
    }
}

fn may_succeed_later(error: &Error) -> bool {
    !matches!(error, Error::Refused(_) | Error::Machine(machine::Error::Closed))
}

impl<M: Machine> Timed for TreeInner<M> {
    type Machine = M;

    fn machine(&self) -> &M {
        self.cache.client().inner.endpoint.machine()
    }

    fn in_time(&self) -> &DeadlineTimer {
        &self.unpublished
    }

    fn do_it(self: &Rc<Self>) {
        let tree = Tree { inner: self.clone() };
        for state in self.states.borrow().values().filter(|state| state.has_unreported()) {
            tree.publish(state);
        }
    }
}
