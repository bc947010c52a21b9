//! Things that are half done: temporary files, and files that are not whole yet.
//!
//! Such a thing is undone when its [`HalfDone`] is dropped, and when the program is interrupted. It is noted before it
//! is made, and made under a lock, which an interruption keeps until the program is gone. So nothing is left that was
//! made in time, nothing new is begun, and what is being made when there is no time left is named.

use std::fmt;
use std::io;
use std::process::exit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::signals::{INTERRUPTED, end_when_interrupted};

/// Held as long as something is being made, which may take as long as an agent is silent.
static MAKING: Mutex<()> = Mutex::new(());

/// Held for moments, until an interruption keeps it.
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
        let _making = lock(&MAKING);
        let number = note(left.into(), Box::new(undo));
        match make() {
            Ok(made) => Ok((made, HalfDone(number))),
            Err(error) => {
                take(number);
                Err(error)
            }
        }
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

/// Notes a thing; its number.
fn note(left: String, undo: Box<dyn FnOnce() + Send>) -> u64 {
    let mut noted = lock(&NOTED);
    // No number is used again: the `HalfDone` of a thing that was kept may still be about to be dropped.
    noted.last += 1;
    let number = noted.last;
    noted.things.push(Noted { number, left, undo });
    number
}

fn take(number: u64) -> Option<Noted> {
    let mut noted = lock(&NOTED);
    let index = noted.things.iter().position(|other| other.number == number)?;
    Some(noted.things.remove(index))
}

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let left: Vec<String> = lock(&NOTED).things.iter().map(|noted| noted.left.clone()).collect();
        let out_of_time = out_of_time.clone();
        thread::spawn(move || {
            thread::sleep(limit);
            out_of_time(&left);
            exit(INTERRUPTED);
        });
        let _making = lock(&MAKING);
        // Kept until the end: what is being undone cannot be said to stay.
        let mut noted = lock(&NOTED);
        // Backwards: what was begun first may be what others are part of.
        noted.things.drain(..).rev().for_each(|noted| (noted.undo)());
        exit(INTERRUPTED);
    })
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};

    use signal_hook::consts::SIGTERM;
    use signal_hook::low_level::raise;

    use super::*;

    /// Set in a process of the test that is interrupted.
    const IS_INTERRUPTED: &str = "STARFISH_TEST_IS_INTERRUPTED";

    #[test]
    fn what_takes_forever_to_be_made_is_named_and_holds_up_no_interruption() {
        if env::var_os(IS_INTERRUPTED).is_none() {
            let this =
                "half_done::tests::what_takes_forever_to_be_made_is_named_and_holds_up_no_interruption";
            let program = env::current_exe().expect("this one");
            let output =
                Command::new(program).args(["--exact", this, "--nocapture"]).env(IS_INTERRUPTED, "").output();
            let output = output.expect("a program");
            assert_eq!(output.status.code(), Some(INTERRUPTED));
            assert!(String::from_utf8_lossy(&output.stderr).contains("left: the file, the thing"));
            return;
        }
        let out_of_time = |left: &[String]| eprintln!("left: {}", left.join(", "));
        undo_when_interrupted(Duration::from_millis(100), out_of_time).expect("prepared");
        let _whole = HalfDone::begin("the file", || {});
        let made = HalfDone::make(
            "the thing",
            || {},
            || {
                // Where tests run in the background SIGINT is ignored.
                raise(SIGTERM).expect("sent");
                thread::sleep(Duration::from_secs(60));
                Err::<(), _>("the agent is silent")
            },
        );
        panic!("made {:?}", made.is_ok());
    }

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
