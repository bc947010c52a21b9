//! The writes of a file that are under way to the page cache.

use std::collections::VecDeque;

use node::{Error, Handle, Pending, Result};

/// Writes that may be under way at once: with fewer, two threads wake each other for nearly every page. Each has
/// memory, of a page at most.
const UNDER_WAY_MAX: usize = 16;

/// Writes under way in the order in which they were begun, and the first failure that was not told.
#[derive(Default)]
pub(crate) struct Writes {
    under_way: VecDeque<Write>,
    failure: Option<Error>,
}

struct Write {
    page: u64,
    outcome: Pending<()>,
}

impl Writes {
    /// Begins to write bytes of one page, once it may: an earlier write to the same page has to be over, since writes
    /// under way are carried out in any order.
    pub(crate) fn begin(&mut self, handle: &Handle, offset: u64, bytes: Vec<u8>) {
        let page = offset / handle.page_bytes();
        while self.under_way.len() >= UNDER_WAY_MAX || self.under_way.iter().any(|write| write.page == page) {
            self.wait_for_first();
        }
        self.under_way.push_back(Write { page, outcome: handle.begin_write(offset, bytes) });
    }

    /// Waits until none is under way.
    pub(crate) fn settle(&mut self) {
        while !self.under_way.is_empty() {
            self.wait_for_first();
        }
    }

    /// Notes what became of writes that are over, without waiting for others.
    pub(crate) fn note_those_that_ended(&mut self) {
        while self.under_way.front().is_some_and(|write| write.outcome.is_ready()) {
            self.wait_for_first();
        }
    }

    fn wait_for_first(&mut self) {
        if let Some(Err(error)) = self.under_way.pop_front().map(|write| write.outcome.wait()) {
            self.note(error);
        }
    }

    /// Keeps the first failure until it is told.
    pub(crate) fn note(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// Tells the first failure.
    pub(crate) fn take_failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
