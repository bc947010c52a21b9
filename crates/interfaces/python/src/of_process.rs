//! Objects that only the process that created them can use, not its forked children.

use std::mem;
use std::process;

use node::{Error, ErrorKind, Result};

/// An object that depends on threads. A forked process lacks these threads. In a forked process, access fails, and a
/// drop leaks the object, because its destructor would wait for the threads forever.
pub(crate) struct OfProcess<T> {
    process: u32,
    /// The object; `None` only after the drop.
    thing: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(thing: T) -> Self {
        OfProcess { process: process::id(), thing: Some(thing) }
    }

    /// Returns the object. Fails in a forked process.
    pub(crate) fn get(&self) -> Result<&T> {
        let thing = self.thing.as_ref().filter(|_| self.process == process::id());
        thing.ok_or_else(|| {
            let why = "the parent opened it before this process was forked, and only the parent can use it";
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
