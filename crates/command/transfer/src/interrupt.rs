//! What happens on Ctrl-C, SIGTERM and SIGHUP.

use std::future::{Future, pending};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use command_line::failure::{Failure, Result};
use command_line::say;
use interruption::Interrupt;
use machine::first_of;

/// Time limit for undoing half-done work after Ctrl-C.
const UNDOING_MAX: Duration = Duration::from_secs(3);

/// Ends the process when interrupted, after `tidy_up`. Replaces what was to happen before.
pub fn tidy_up_and_exit(tidy_up: impl FnMut() + Send + 'static) -> Result<()> {
    interruption::end_when_interrupted(tidy_up).map_err(unprepared)
}

/// Ends the process when interrupted, after undoing what is half done. Replaces what was to happen before.
pub fn undo_and_exit() -> Result<()> {
    let out_of_time = |left: &[String]| left.iter().for_each(|left| say!("starfish: {left}"));
    interruption::undo_when_interrupted(UNDOING_MAX, out_of_time).map_err(unprepared)
}

/// Leaves interruptions to a program that this one has started and waits for, which Ctrl-C interrupts as well. Replaces
/// what was to happen before.
pub fn leave_to_program() -> Result<()> {
    interruption::on_interruption(|_| {}).map_err(unprepared)
}

fn unprepared(error: std::io::Error) -> Failure {
    Failure::new("preparing for Ctrl-C", error)
}

/// Whether Ctrl-C has told a program to end that does so in order.
static ENDED_BY_CTRL_C: AtomicBool = AtomicBool::new(false);

/// The exit code of a program that has come to its end: after Ctrl-C that of all programs, for shells, whose loops go
/// on otherwise.
pub fn code_of_success() -> ExitCode {
    match ENDED_BY_CTRL_C.load(Ordering::Acquire) {
        true => ExitCode::from(interruption::INTERRUPTED as u8),
        false => ExitCode::SUCCESS,
    }
}

/// A channel on which every interruption arrives, for programs that end in order then. Replaces what was to happen
/// before.
pub fn channel() -> Result<flume::Receiver<()>> {
    let (sender, receiver) = flume::unbounded();
    let react = move |interrupt| {
        if interrupt == Interrupt::CtrlC {
            ENDED_BY_CTRL_C.store(true, Ordering::Release);
        }
        // Whoever listened may have ended meanwhile.
        let _ = sender.send(());
    };
    interruption::on_interruption(react).map_err(unprepared)?;
    Ok(receiver)
}

/// The end of the process on interruption, for work of a node that would leave something half done.
///
/// The process ends at once, unless something is half done just then (see [`begin`](Self::begin)): that has
/// some seconds to be undone. Cloning gives another handle.
#[derive(Clone)]
pub struct Interruption {
    /// None if it does not happen.
    tell: Option<flume::Sender<()>>,
    happened: flume::Receiver<()>,
}

/// Something that is half done until this is dropped. The node undoes it itself, since nobody else has its connections.
pub struct Undertaking {
    noted: Option<interruption::HalfDone>,
    /// With it goes whoever waits for the end.
    being_undone: Option<flume::Sender<()>>,
}

impl Interruption {
    /// From now on the process ends this way when interrupted. Replaces what was to happen before.
    pub fn prepare() -> Result<Self> {
        undo_and_exit()?;
        let (tell, happened) = flume::unbounded();
        Ok(Interruption { tell: Some(tell), happened })
    }

    /// One that does not happen: somebody else decides what is done on Ctrl-C.
    pub fn never() -> Self {
        let (_, happened) = flume::unbounded();
        Interruption { tell: None, happened }
    }

    /// Begins something that has to be undone if it does not come to its end. `failure` is what is said if
    /// there is no time for that.
    pub fn begin(&self, failure: Failure) -> Undertaking {
        let (being_undone, undone) = flume::bounded::<()>(0);
        let noted = self.tell.clone().map(|tell| {
            interruption::HalfDone::begin(failure.to_string(), move || {
                // Whoever listened may have ended meanwhile.
                let _ = tell.send(());
                let _ = undone.recv();
            })
        });
        Undertaking { noted, being_undone: Some(being_undone) }
    }

    /// What `work` comes to, or `None` if the process is interrupted first.
    pub async fn unless<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let happened = async {
            if self.happened.recv_async().await.is_err() {
                // Then it never will.
                pending::<()>().await;
            }
        };
        unless(happened, work).await
    }
}

/// The outcome of `work`, or `None` if `stop` does not come later; the work is dropped then.
pub async fn unless<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let stopped = async {
        stop.await;
        None
    };
    first_of(stopped, async { Some(work.await) }).await
}

impl Undertaking {
    /// It has been undone, or could not be. Prints why not, or else `interrupted`, and returns that.
    pub fn undone(self, interrupted: Failure, outcome: node::Result<()>) -> Failure {
        // Nobody else prints it: what fails while the process ends is not told.
        match outcome.map_err(Failure::from) {
            Ok(()) => say!("starfish: {interrupted}"),
            Err(failure) => say!("starfish: {failure}"),
        }
        interrupted
    }
}

impl Drop for Undertaking {
    fn drop(&mut self) {
        self.being_undone = None;
        if let Some(noted) = self.noted.take() {
            noted.keep();
        }
    }
}
