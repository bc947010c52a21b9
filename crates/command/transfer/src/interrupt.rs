//! Handlers for Ctrl-C, SIGTERM and SIGHUP.

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

/// Makes interruptions end the process after `tidy_up`. Replaces the previous handler.
pub fn tidy_up_and_exit(tidy_up: impl FnMut() + Send + 'static) -> Result<()> {
    interruption::end_when_interrupted(tidy_up).map_err(unprepared)
}

/// Makes interruptions end the process after undoing half-done work. Replaces the previous handler.
pub fn undo_and_exit() -> Result<()> {
    let out_of_time = |left: &[String]| left.iter().for_each(|left| say!("starfish: {left}"));
    interruption::undo_when_interrupted(UNDOING_MAX, out_of_time).map_err(unprepared)
}

/// Makes this process ignore interruptions and leave them to a child program that it waits for, which Ctrl-C interrupts
/// as well. Replaces the previous handler.
pub fn leave_to_program() -> Result<()> {
    interruption::on_interruption(|_| {}).map_err(unprepared)
}

fn unprepared(error: std::io::Error) -> Failure {
    Failure::new("cannot handle Ctrl-C", error)
}

/// True if Ctrl-C has requested a clean end of the program.
static ENDED_BY_CTRL_C: AtomicBool = AtomicBool::new(false);

/// Returns the exit code of a program that ended cleanly. After Ctrl-C it is the usual code of interrupted programs, so
/// that loops of shells stop.
pub fn code_of_success() -> ExitCode {
    match ENDED_BY_CTRL_C.load(Ordering::Acquire) {
        true => ExitCode::from(interruption::INTERRUPTED as u8),
        false => ExitCode::SUCCESS,
    }
}

/// Returns a channel that receives every interruption, for programs that then end cleanly. Replaces the previous
/// handler.
pub fn channel() -> Result<flume::Receiver<()>> {
    let (sender, receiver) = flume::unbounded();
    let react = move |interrupt| {
        if interrupt == Interrupt::CtrlC {
            ENDED_BY_CTRL_C.store(true, Ordering::Release);
        }
        // The receiver may have been dropped.
        let _ = sender.send(());
    };
    interruption::on_interruption(react).map_err(unprepared)?;
    Ok(receiver)
}

/// End of the process on interruption, for a node's work that could leave something half done.
///
/// The process ends at once, unless half-done work exists then (see [`begin`](Self::begin)): its undoing has a few
/// seconds. Clones share the state.
#[derive(Clone)]
pub struct Interruption {
    /// `None` for [`never`](Self::never).
    sender: Option<flume::Sender<()>>,
    happened: flume::Receiver<()>,
}

/// Half-done work, until this value is dropped. The node undoes the work, since only the node has its connections.
pub struct UnfinishedWork {
    noted: Option<interruption::UndoGuard>,
    /// Dropping this sender ends the handler's wait.
    being_undone: Option<flume::Sender<()>>,
}

impl Interruption {
    /// Makes interruptions end the process this way. Replaces the previous handler.
    pub fn prepare() -> Result<Self> {
        undo_and_exit()?;
        let (sender, happened) = flume::unbounded();
        Ok(Interruption { sender: Some(sender), happened })
    }

    /// Returns an interruption that never happens: another handler reacts to Ctrl-C.
    pub fn never() -> Self {
        let (_, happened) = flume::unbounded();
        Interruption { sender: None, happened }
    }

    /// Registers half-done work, which must be undone if it does not complete. `failure` is printed if there is no time
    /// for that.
    pub fn begin(&self, failure: Failure) -> UnfinishedWork {
        let (being_undone, undone) = flume::bounded::<()>(0);
        let noted = self.sender.clone().map(|sender| {
            interruption::UndoGuard::begin(failure.to_string(), move || {
                // The receiver may have been dropped.
                let _ = sender.send(());
                let _ = undone.recv();
            })
        });
        UnfinishedWork { noted, being_undone: Some(being_undone) }
    }

    /// Returns the output of `work`, or `None` if the process is interrupted first.
    pub async fn unless<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let happened = async {
            if self.happened.recv_async().await.is_err() {
                // All senders are dropped: no interruption can happen.
                pending::<()>().await;
            }
        };
        unless(happened, work).await
    }
}

/// Returns the output of `work`, or `None` if `stop` completes first; `work` is dropped then.
pub async fn unless<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let stopped = async {
        stop.await;
        None
    };
    first_of(stopped, async { Some(work.await) }).await
}

impl UnfinishedWork {
    /// Completes the undoing. Prints the failure of the undoing, or else `interrupted`, and returns `interrupted`.
    pub fn undone(self, interrupted: Failure, outcome: node::Result<()>) -> Failure {
        // Print here: failures that occur while the process ends are not reported.
        match outcome.map_err(Failure::from) {
            Ok(()) => say!("starfish: {interrupted}"),
            Err(failure) => say!("starfish: {failure}"),
        }
        interrupted
    }
}

impl Drop for UnfinishedWork {
    fn drop(&mut self) {
        self.being_undone = None;
        if let Some(noted) = self.noted.take() {
            noted.keep();
        }
    }
}
