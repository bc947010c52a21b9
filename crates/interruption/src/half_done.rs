//! Things that are half done: temporary files, and files that are not whole yet.
//!
//! Such a thing is undone when its [`HalfDone`] is dropped, and when the program is interrupted. Making one and noting
//! it is one step under a lock, which an interruption keeps until the program is gone. So nothing is left that was made
//! in time, and nothing new is begun.

use std::fmt;
use std::io;
use std::process::exit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::signals::{INTERRUPTED, end_when_interrupted};

static NOTED: Mutex<Notes> = Mutex::new(Notes { last: 0, things: Vec::new() });

/// All that is half done, in the order in which it was begun.
struct Notes {
    last: u64,
    things: Vec<Noted>,
}

struct Noted {
    number: u64,
    /// What is left if there is no time to undo it.
    left: String,
    undo: Box<dyn FnOnce() + Send>,
}

/// Something that is undone when this is dropped, unless it is to stay.
#[must_use = "dropped at once, it is undone at once"]
pub struct HalfDone(u64);

impl HalfDone {
    /// Makes the thing; it is half done from then on. `left` says what is left of it if there is no time to `undo` it.
    ///
    /// # Errors
    /// If it cannot be made, with nothing noted.
    pub fn make<T, E>(
        left: impl Into<String>,
        undo: impl FnOnce() + Send + 'static,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, HalfDone), E> {
        let mut noted = noted();
        let made = make()?;
        // No number is used again: the `HalfDone` of a thing that was kept may still be about to be dropped.
        noted.last += 1;
        let number = noted.last;
        noted.things.push(Noted { number, left: left.into(), undo: Box::new(undo) });
        Ok((made, HalfDone(number)))
    }

    /// As [`make`](Self::make), for a thing that is there already, or will be.
    pub fn begin(left: impl Into<String>, undo: impl FnOnce() + Send + 'static) -> HalfDone {
        let made = HalfDone::make(left, undo, || Ok::<_, std::convert::Infallible>(()));
        made.unwrap_or_else(|never| match never {}).1
    }

    /// It is whole, and stays.
    pub fn keep(self) {
        take(self.0);
    }
}

impl Drop for HalfDone {
    fn drop(&mut self) {
        if let Some(noted) = take(self.0) {
            (noted.undo)();
        }
    }
}

impl fmt::Debug for HalfDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HalfDone").field(&self.0).finish()
    }
}

fn take(number: u64) -> Option<Noted> {
    let mut noted = noted();
    let index = noted.things.iter().position(|other| other.number == number)?;
    Some(noted.things.remove(index))
}

fn noted() -> MutexGuard<'static, Notes> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on an interruption undoes what is half done and ends the program. Replaces what was to happen before.
///
/// Undoing has no more time than `limit`: after it `out_of_time` is told what is left, and the program ends.
///
/// # Errors
/// As those of [`on_interruption`](crate::on_interruption).
pub fn undo_when_interrupted(
    limit: Duration,
    out_of_time: impl Fn(&[String]) + Send + Sync + 'static,
) -> io::Result<()> {
    let out_of_time = Arc::new(out_of_time);
    end_when_interrupted(move || {
        let mut noted = noted();
        let left: Vec<String> = noted.things.iter().map(|noted| noted.left.clone()).collect();
        let out_of_time = out_of_time.clone();
        thread::spawn(move || {
            thread::sleep(limit);
            out_of_time(&left);
            exit(INTERRUPTED);
        });
        // Backwards: what was begun first may be what others are part of.
        noted.things.drain(..).rev().for_each(|noted| (noted.undo)());
        exit(INTERRUPTED);
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn what_is_dropped_is_undone_once_and_what_is_kept_stays() {
        let undone = Arc::new(AtomicU32::new(0));
        let undo = |by: u32| {
            let undone = undone.clone();
            move || {
                undone.fetch_add(by, Ordering::Relaxed);
            }
        };
        let first = HalfDone::begin("first", undo(1));
        let (made, second) = HalfDone::make("second", undo(10), || Ok::<_, ()>(7)).expect("it is made");
        let third = HalfDone::begin("third", undo(100));
        assert!(HalfDone::make("never", undo(1000), || Err::<(), _>("no room")).is_err());
        drop(second);
        first.keep();
        assert_eq!((made, undone.load(Ordering::Relaxed)), (7, 10));
        drop(third);
        assert_eq!(undone.load(Ordering::Relaxed), 110);
    }
}
