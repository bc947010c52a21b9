//! Objects that belong to the process that made them, and not to its forked children.

use std::mem;
use std::process;

use node::{Error, ErrorKind, Result};

/// An object that depends on threads. A forked process lacks these threads: there, access fails, and dropping leaks the
/// object, since its destructor would wait for the threads indefinitely.
pub(crate) struct OfProcess<T> {
    process: u32,
    /// Set until it is dropped.
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
            let why = "it was opened before this process was forked, and belongs to the parent";
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
