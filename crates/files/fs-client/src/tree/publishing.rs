//! Publishing: what was written to a file is sent to the I/O nodes, and then reported to the metadata server, though
//! nobody flushes it. Whoever asks for the file then sees its new size and version.
//!
//! - Appends are published at once, behind the writer's back: a client that was given the bytes after them waits until
//!   they are reported.
//! - Other writes are published when the oldest of them has waited for [`PageCacheSettings::send_parts_after`].
//! - A failure is reported by the next flush or close, as any failure of a write in the background.
//!
//! [`PageCacheSettings::send_parts_after`]: crate::PageCacheSettings::send_parts_after

use std::rc::{Rc, Weak};

use machine::Machine;

use super::open_file::{OpenTreeFile, TreeFileState};
use super::{Tree, TreeInner};
use crate::error::Error;
use crate::in_time::{InTime, Timed, see_to};
use crate::protocol::{FileId, OpenFor};

impl<M: Machine> Tree<M> {
    /// Has writes published in time.
    pub(super) fn publish_in_time(&self) {
        if let Some(limit) = self.cache().settings().send_parts_after {
            see_to(&self.inner, limit, "publish writes in time");
        }
    }

    /// Begins to publish what was written to a file.
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
    // The last close waits for its turn, too: a handle that is made here is gone before.
    let _turn = state.telling.take().await;
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

    fn in_time(&self) -> &InTime {
        &self.unpublished
    }

    fn do_it(self: &Rc<Self>) {
        let tree = Tree { inner: self.clone() };
        for state in self.states.borrow().values().filter(|state| state.has_untold()) {
            tree.publish(state);
        }
    }
}
