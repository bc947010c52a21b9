//! Unfinished work to undo: temporary files, and files that are not yet complete.
//!
//! Each item is undone when its [`UndoGuard`] is dropped, or when the program is interrupted. It is registered before
//! it is created, and created under a lock. An interruption holds this lock until the process has ended. So an
//! interruption undoes all items that exist, and no item can be created after it. If the time limit expires first, the
//! program reports the items that are left.

use std::fmt;
use std::io;
use std::process::exit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::signals::{INTERRUPTED, end_when_interrupted};

/// Lock held while an item is created, which can last until a silent agent answers.
static MAKING: Mutex<()> = Mutex::new(());

/// Lock held briefly for each update. An interruption holds it until the process ends.
static NOTED: Mutex<UnfinishedItems> = Mutex::new(UnfinishedItems { last: 0, things: Vec::new() });

/// All unfinished items, in order of creation.
struct UnfinishedItems {
    last: u64,
    things: Vec<UnfinishedItem>,
}

struct UnfinishedItem {
    number: u64,
    /// Text that names the item. It is reported if there is no time to undo the item.
    left: String,
    undo: Box<dyn FnOnce() + Send>,
}

/// Guard that undoes an item when it is dropped, unless the item is kept.
#[must_use = "dropped at once, it is undone at once"]
pub struct UndoGuard(u64);

impl UndoGuard {
    /// Registers the item and creates it with `make`. `left` names the item in the report if there is no time to `undo`
    /// it.
    ///
    /// # Errors
    /// If `make` fails; the item is no longer registered then.
    pub fn make<T, E>(
        left: impl Into<String>,
        undo: impl FnOnce() + Send + 'static,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, UndoGuard), E> {
        let _making = lock(&MAKING);
        let number = note(left.into(), Box::new(undo));
        match make() {
            Ok(made) => Ok((made, UndoGuard(number))),
            Err(error) => {
                take(number);
                Err(error)
            }
        }
    }

    /// Registers an item that exists already, or is created later without [`make`](Self::make).
    pub fn begin(left: impl Into<String>, undo: impl FnOnce() + Send + 'static) -> UndoGuard {
        let made = UndoGuard::make(left, undo, || Ok::<_, std::convert::Infallible>(()));
        made.unwrap_or_else(|never| match never {}).1
    }

    /// Keeps the item, which is complete.
    pub fn keep(self) {
        take(self.0);
    }
}

impl Drop for UndoGuard {
    fn drop(&mut self) {
        if let Some(noted) = take(self.0) {
            (noted.undo)();
        }
    }
}

impl fmt::Debug for UndoGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HalfDone").field(&self.0).finish()
    }
}

/// Registers an item and returns its number.
fn note(left: String, undo: Box<dyn FnOnce() + Send>) -> u64 {
    let mut noted = lock(&NOTED);
    // Numbers are never reused, because the `UndoGuard` of a kept item may not have been dropped yet.
    noted.last += 1;
    let number = noted.last;
    noted.things.push(UnfinishedItem { number, left, undo });
    number
}

fn take(number: u64) -> Option<UnfinishedItem> {
    let mut noted = lock(&NOTED);
    let index = noted.things.iter().position(|other| other.number == number)?;
    Some(noted.things.remove(index))
}

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the reaction to an interruption: undo all unfinished items and end the program. Replaces any earlier reaction.
///
/// If undoing takes longer than `limit`, calls `out_of_time` with the items left and ends the program.
///
/// # Errors
/// The errors of [`on_interruption`](crate::on_interruption).
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
        // Hold the lock until the process ends, so that `keep` cannot keep an item that is being undone.
        let mut noted = lock(&NOTED);
        // In reverse order, because an earlier item may contain later ones.
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

    /// Environment variable that is set in the child process, which interrupts itself.
    const IS_INTERRUPTED: &str = "STARFISH_TEST_IS_INTERRUPTED";

    #[test]
    fn an_endless_creation_is_named_and_delays_no_interruption() {
        if env::var_os(IS_INTERRUPTED).is_none() {
            let this = "undo_guard::tests::an_endless_creation_is_named_and_delays_no_interruption";
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
        let _whole = UndoGuard::begin("the file", || {});
        let made = UndoGuard::make(
            "the thing",
            || {},
            || {
                // Not SIGINT, because a shell ignores SIGINT in tests that it runs in the background.
                raise(SIGTERM).expect("sent");
                thread::sleep(Duration::from_secs(60));
                Err::<(), _>("the agent is silent")
            },
        );
        panic!("made {:?}", made.is_ok());
    }

    #[test]
    fn dropped_work_is_undone_once_and_kept_work_stays() {
        let undone = Arc::new(AtomicU32::new(0));
        let undo = |by: u32| {
            let undone = undone.clone();
            move || {
                undone.fetch_add(by, Ordering::Relaxed);
            }
        };
        let first = UndoGuard::begin("first", undo(1));
        let (made, second) = UndoGuard::make("second", undo(10), || Ok::<_, ()>(7)).expect("it is made");
        let third = UndoGuard::begin("third", undo(100));
        assert!(UndoGuard::make("never", undo(1000), || Err::<(), _>("no room")).is_err());
        drop(second);
        first.keep();
        assert_eq!((made, undone.load(Ordering::Relaxed)), (7, 10));
        drop(third);
        assert_eq!(undone.load(Ordering::Relaxed), 110);
    }
}
