//! What belongs to the process that made it, and to none that this one forks.

use std::mem;
use std::process;

use node::{Error, ErrorKind, Result};

/// Something with threads behind it. The process that a fork makes does not have them: there, it answers with an
/// error, and is left behind when it is dropped, which would wait for them for ever.
pub(crate) struct OfProcess<T> {
    process: u32,
    /// There until it is dropped.
    thing: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(thing: T) -> Self {
        OfProcess { process: process::id(), thing: Some(thing) }
    }

    /// The thing itself.
    pub(crate) fn get(&self) -> Result<&T> {
        let thing = self.thing.as_ref().filter(|_| self.process == process::id());
        thing.ok_or_else(|| {
            let why = "it was opened before this process was forked, and belongs to the one before";
            Error::new(ErrorKind::Closed, "the file system", why).with_remedy("Open it again")
        })
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            mem::forget(self.thing.take());
        }
    }
}
