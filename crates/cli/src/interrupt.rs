//! What happens on Ctrl-C, SIGTERM and SIGHUP.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use interruption::{INTERRUPTED, on_interruption};

use crate::failure::{Failure, Result};

/// Time limit for undoing half-done work after Ctrl-C.
const UNDOING_MAX: Duration = Duration::from_secs(3);

/// What to do when interrupted.
type Reaction = Box<dyn FnMut() + Send>;

/// The reaction that counts: the last one set. The system takes only one handler for the whole process.
static REACTION: Mutex<Option<Reaction>> = Mutex::new(None);

/// Whether the process is about to end because it was interrupted.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Waits for the end of the process if it is about to end because it was interrupted. What fails meanwhile,
/// fails because things are being tidied up, and need not be told.
pub(crate) fn wait_for_end() {
    while ENDING.load(Ordering::Acquire) {
        std::thread::park();
    }
}

/// Ends the process when interrupted, after `tidy_up`. Replaces what was to happen before.
pub(crate) fn tidy_up_and_exit(mut tidy_up: impl FnMut() + Send + 'static) -> Result<()> {
    set(Box::new(move || {
        ENDING.store(true, Ordering::Release);
        tidy_up();
        std::process::exit(INTERRUPTED);
    }))
}

/// A channel on which every interruption arrives. Replaces what was to happen before.
pub(crate) fn channel() -> Result<flume::Receiver<()>> {
    let (sender, receiver) = flume::unbounded();
    set(Box::new(move || {
        // Whoever listened may have ended meanwhile.
        let _ = sender.send(());
    }))?;
    Ok(receiver)
}

/// The end of the process on interruption, for work that would leave something half done.
///
/// The process ends at once, unless something is half done just then (see [`begin`](Self::begin)): that has
/// some seconds to be undone. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Interruption {
    happened: flume::Receiver<()>,
    half_done: Arc<Undoing>,
}

/// What is half done, if anything is: the failure if it stays so.
#[derive(Default)]
struct Undoing {
    what: Mutex<Option<Failure>>,
    ended: Condvar,
}

/// Something that is half done until this is dropped.
pub(crate) struct HalfDone(Arc<Undoing>);

impl Interruption {
    /// From now on the process ends this way when interrupted. Replaces what was to happen before.
    pub(crate) fn prepare() -> Result<Self> {
        let (tell, happened) = flume::unbounded();
        let half_done = Arc::<Undoing>::default();
        let undoing = half_done.clone();
        set(Box::new(move || {
            ENDING.store(true, Ordering::Release);
            // Whoever listened may have ended meanwhile.
            let _ = tell.send(());
            // Held until the process is gone, so that nothing new is begun.
            let what = undoing.lock();
            let waited = undoing.ended.wait_timeout_while(what, UNDOING_MAX, |what| what.is_some());
            let (what, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if let Some(what) = &*what {
                eprintln!("{what}");
            }
            std::process::exit(INTERRUPTED);
        }))?;
        Ok(Interruption { happened, half_done })
    }

    /// One that does not happen: somebody else decides what is done on Ctrl-C.
    pub(crate) fn never() -> Self {
        let (_, happened) = flume::unbounded();
        Interruption { happened, half_done: Arc::default() }
    }

    /// Begins something that has to be undone if it does not come to its end. `failure` is what is said if
    /// there is no time for that.
    pub(crate) fn begin(&self, failure: Failure) -> HalfDone {
        *self.half_done.lock() = Some(failure);
        HalfDone(self.half_done.clone())
    }

    /// What `work` comes to, or `None` if the process is interrupted first.
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let happened = async {
            if self.happened.recv_async().await.is_err() {
                // Then it never will.
                pending::<()>().await;
            }
        };
        unless(happened, work).await
    }
}

/// What `work` comes to, or `None` if `stop` comes first; the work is dropped then.
pub(crate) async fn unless<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut stop, mut work) = (pin!(stop), pin!(work));
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(context).map(Some),
    })
    .await
}

impl HalfDone {
    /// It has been undone, or could not be. Returns what the interrupted work has failed with.
    pub(crate) fn undone(self, what: &str, outcome: Result<()>) -> Failure {
        if let Err(failure) = outcome {
            // Nobody else says it: what fails while the process ends is not told.
            eprintln!("{failure}");
        }
        Failure::new(what, "interrupted")
    }
}

impl Drop for HalfDone {
    fn drop(&mut self) {
        self.0.lock().take();
        self.0.ended.notify_all();
    }
}

impl Undoing {
    fn lock(&self) -> MutexGuard<'_, Option<Failure>> {
        self.what.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set(reaction: Reaction) -> Result<()> {
    let first = reactions().replace(reaction).is_none();
    if first {
        let react = || {
            if let Some(react) = reactions().as_mut() {
                react();
            }
        };
        on_interruption(react).map_err(|error| Failure::new("preparing for Ctrl-C", error))?;
    }
    Ok(())
}

fn reactions() -> MutexGuard<'static, Option<Reaction>> {
    REACTION.lock().unwrap_or_else(PoisonError::into_inner)
}
