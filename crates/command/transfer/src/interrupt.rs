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

/// Makes an interruption run `tidy_up` and then end the process. Replaces the previous handler.
pub fn tidy_up_and_exit(tidy_up: impl FnMut() + Send + 'static) -> Result<()> {
    interruption::end_when_interrupted(tidy_up).map_err(unprepared)
}

/// Makes an interruption undo half-done work and then end the process. Replaces the previous handler.
pub fn undo_and_exit() -> Result<()> {
    let out_of_time = |left: &[String]| left.iter().for_each(|left| say!("starfish: {left}"));
    interruption::undo_when_interrupted(UNDOING_MAX, out_of_time).map_err(unprepared)
}

/// Makes this process ignore interruptions while it waits for a child program: Ctrl-C interrupts the child as well, and
/// the child decides how to end. Replaces the previous handler.
pub fn leave_to_program() -> Result<()> {
    interruption::on_interruption(|_| {}).map_err(unprepared)
}

fn unprepared(error: std::io::Error) -> Failure {
    Failure::new("cannot handle Ctrl-C", error)
}

/// True if Ctrl-C has requested a clean end of the program.
static ENDED_BY_CTRL_C: AtomicBool = AtomicBool::new(false);

/// Returns the exit code of a program that ended cleanly. After Ctrl-C this is the usual code of interrupted programs,
/// so that loops in shell scripts stop.
pub fn code_of_success() -> ExitCode {
    match ENDED_BY_CTRL_C.load(Ordering::Acquire) {
        true => ExitCode::from(interruption::INTERRUPTED as u8),
        false => ExitCode::SUCCESS,
    }
}

/// Returns a channel that receives a message at each interruption, for programs that end cleanly themselves. Replaces
/// the previous handler.
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

/// Handle with which work registers itself as half done, so that a node undoes the work before an interruption ends the
/// process.
///
/// Without registered work (see [`begin`](Self::begin)) an interruption ends the process at once. Otherwise the node
/// has a few seconds to undo the work. Clones share the state.
#[derive(Clone)]
pub struct Interruption {
    /// `None` for [`never`](Self::never).
    sender: Option<flume::Sender<()>>,
    happened: flume::Receiver<()>,
}

/// Registration of half-done work, until this value is dropped. The node must undo the work, because only the node has
/// connections to the agents.
pub struct UnfinishedWork {
    noted: Option<interruption::UndoGuard>,
    /// Dropping this sender ends the handler's wait.
    being_undone: Option<flume::Sender<()>>,
}

impl Interruption {
    /// Makes interruptions end the process as described above. Replaces the previous handler.
    pub fn prepare() -> Result<Self> {
        undo_and_exit()?;
        let (sender, happened) = flume::unbounded();
        Ok(Interruption { sender: Some(sender), happened })
    }

    /// Returns a handle that never reports an interruption, for programs in which another handler reacts to Ctrl-C.
    pub fn never() -> Self {
        let (_, happened) = flume::unbounded();
        Interruption { sender: None, happened }
    }

    /// Registers half-done work, which an interruption must undo. `failure` is printed if there is no time to undo the
    /// work.
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
                // All senders are dropped, so no interruption can happen.
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
    /// Ends the process after half-done work was undone. Prints the failure of the undoing, or else `interrupted`, and
    /// returns `interrupted`.
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
