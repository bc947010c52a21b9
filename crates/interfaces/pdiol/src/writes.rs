//! Writes of a file that are in flight to the page cache.

use std::collections::VecDeque;

use node::{Error, Handle, Pending, Result};

/// Limit of writes in flight. With a lower limit, the two threads would wake each other for nearly every page. A write
/// uses at most the memory of a page.
const UNDER_WAY_MAX: usize = 16;

/// Writes in flight in the order in which they began, and the first unreported failure.
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
    /// Begins to write bytes of one page. First waits for an earlier write to the same page, since concurrent writes
    /// may be carried out in any order.
    pub(crate) fn begin(&mut self, handle: &Handle, offset: u64, bytes: Vec<u8>) {
        let page = offset / handle.page_bytes();
        while self.under_way.len() >= UNDER_WAY_MAX || self.under_way.iter().any(|write| write.page == page) {
            self.wait_for_first();
        }
        self.under_way.push_back(Write { page, outcome: handle.begin_write(offset, bytes) });
    }

    /// Waits until no write is in flight.
    pub(crate) fn settle(&mut self) {
        while !self.under_way.is_empty() {
            self.wait_for_first();
        }
    }

    /// Records the outcomes of completed writes, without waiting for others.
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

    /// Keeps the first failure until it is reported.
    pub(crate) fn note(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// Returns the first failure, and clears it.
    pub(crate) fn take_failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
