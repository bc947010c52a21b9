//! The node thread: a compute node of the real machine, with the client and its page cache.
//!
//! Other threads send it *jobs*: functions that run there as tasks. It ends when no sender of jobs is left.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use flume::{Receiver, Sender};
use machine::{InFlight, Machine};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use real::{Keys, Report};

use crate::client_node::ClientNode;
use crate::error::{Error, ErrorKind, Result};
use crate::key;
use crate::node_trace::NodeTrace;
use crate::open_file::OpenFiles;
use crate::pending::Pending;
use crate::queue_drain::QueueDrain;
use crate::random::new_node_id;
use crate::settings::Settings;
use crate::teams::Teams;
use crate::thread_clock::ThreadClock;
use crate::write_queue::WriteQueue;

/// Subject of write-cache errors that no call on a file caused.
const FLUSHING: &str = "cannot flush the write cache";

type Job = Box<dyn FnOnce(Rc<Node>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// State of the node thread.
pub(crate) struct Node {
    pub(crate) client: Rc<ClientNode>,
    pub(crate) files: OpenFiles,
    pub(crate) teams: Teams,
    /// Node thread's end of the write queue, if the session has a write cache.
    pub(crate) taker: Option<QueueDrain>,
    pub(crate) clock: ThreadClock,
}

impl Node {
    /// Moves queued writes into the write cache, if there is one.
    pub(crate) async fn take_in_writes(&self) -> Result<()> {
        match (&self.taker, &self.client.write_cache) {
            (Some(taker), Some(cache)) => taker.take_in(&self.files, cache).await,
            _ => Ok(()),
        }
    }

    /// Returns an unreported failure of the write cache, if there is one.
    pub(crate) async fn report_failed_flush(&self) -> Result<()> {
        let reported = match &self.client.write_cache {
            Some(cache) => self.client.explained(FLUSHING, cache.check()),
            None => Ok(()),
        };
        // Writes that did not fit into the cache are tried again; a failed flush is reported once.
        let taken = self.take_in_writes().await;
        reported.and(taken)
    }

    /// Closes the file of this number, with all its written data. If the data cannot be flushed, the file stays open
    /// until a later flush succeeds.
    pub(crate) async fn close_file(&self, number: u64, name: &str) -> Result<()> {
        // Empty the queue first: after the close, writes that do not fit into the cache would belong to no file.
        let closed = match self.take_in_writes().await {
            Ok(()) => self.files.close(number, name).await,
            Err(error) => Err(error),
        };
        if closed.is_err() {
            self.files.note_unclosed(number);
        }
        closed
    }

    /// Waits until the contents of unlinked files are removed.
    pub(crate) async fn contents_removed(&self) {
        self.client.tree.contents_removed().await;
    }

    /// Flushes all writes through the write cache, and leaves the job. Then closes files that could not be closed
    /// before.
    pub(crate) async fn end_write_cache(&self) -> Result<()> {
        let Some(cache) = &self.client.write_cache else { return Ok(()) };
        self.take_in_writes().await?;
        self.client.explained(FLUSHING, cache.leave().await)?;
        self.files.close_unclosed().await
    }
}

/// Handle of the node thread for other threads. Dropping it ends the thread.
pub(crate) struct NodeThread {
    /// Sender of jobs; `None` only during the drop.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Queue of writes to the write cache, if the session has one.
    pub(crate) writes: Option<Arc<WriteQueue>>,
    /// True if the node's work is recorded.
    pub(crate) is_traced: bool,
}

impl NodeThread {
    /// Starts the thread, and waits until it is connected to all agents.
    pub(crate) fn start(settings: Settings) -> Result<Self> {
        if settings.agents.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "cannot start a session", "no agents are named"));
        }
        let keys = key::find(settings.key.as_deref())?;
        let writes = settings.write_cache.as_ref().map(|_| Arc::<WriteQueue>::default());
        let (jobs, taken) = flume::unbounded();
        let (sender, started) = flume::bounded(1);
        let is_traced = settings.trace.is_some();
        let queue = writes.clone();
        let node = move || {
            // After a successful start the receiver is dropped, so this outcome is lost.
            let _ = sender.clone().send(run(settings, keys, queue, taken, sender));
        };
        let thread = without_signals(|| thread::Builder::new().name("starfish node".into()).spawn(node));
        let failed =
            |why: &dyn std::fmt::Display| Error::new(ErrorKind::Io, "cannot start the node thread", why);
        let thread = thread.map_err(|error| failed(&error))?;
        started.recv().unwrap_or_else(|_| Err(failed(&"it panicked; its message is on standard error")))?;
        Ok(NodeThread { jobs: Some(jobs), thread: Some(thread), writes, is_traced })
    }

    /// Begins to run `job` on the node thread. Errors contain its name.
    pub(crate) fn begin<T, F>(
        &self,
        what: &Arc<str>,
        job: impl FnOnce(Rc<Node>) -> F + Send + 'static,
    ) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        let (sender, answer) = flume::bounded(1);
        let job: Job = Box::new(move |node| {
            Box::pin(async move {
                let outcome = job(node).await;
                // The caller may have dropped its `Pending`.
                let _ = sender.send(outcome);
            })
        });
        // If the thread has ended, the job is dropped with its sender, and the `Pending` returns an error.
        let _ = self.jobs.as_ref().expect("there until the end").send(job);
        Pending::new(what.clone(), answer)
    }

    /// Makes the node thread run a short function. Functions run in the order of these calls.
    pub(crate) fn run(&self, function: impl FnOnce(&Node) + Send + 'static) {
        let job: Job = Box::new(move |node| {
            function(&node);
            Box::pin(std::future::ready(()))
        });
        // If the thread has ended, there is no state to change.
        let _ = self.jobs.as_ref().expect("there until the end").send(job);
    }

    /// Runs `job` on the node thread and waits for its result. Errors contain its name.
    pub(crate) fn call<T, F>(&self, what: &str, job: impl FnOnce(Rc<Node>) -> F + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.begin(&what.into(), job).wait()
    }
}

impl Drop for NodeThread {
    fn drop(&mut self) {
        undisturbed(|| {
            self.jobs = None;
            if let Some(thread) = self.thread.take() {
                // If the thread panicked, all waiting callers have received errors.
                let _ = thread.join();
            }
        });
    }
}

/// Runs `end` on a thread that is not panicking. The runtime of the node thread ends the process if a panicking thread
/// wakes one of its tasks, and a program may panic while it has files open.
pub fn undisturbed(end: impl FnOnce() + Send) {
    if !thread::panicking() {
        return end();
    }
    thread::scope(|scope| {
        // Without another thread no job can be sent to the node thread, which then runs until the process ends.
        let _ = without_signals(|| thread::Builder::new().spawn_scoped(scope, end));
    });
}

/// Synchronous faults. Blocking these signals would not keep the process alive, only prevent the program's handlers
/// from running.
const FAULTS: [Signal; 6] =
    [Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGSEGV, Signal::SIGSYS, Signal::SIGTRAP];

/// Starts a thread with `start`. The thread, and threads that it starts, block all signals. Signals are for threads of
/// the program: they may have blocked a signal in order to wait for it, and its delivery to a thread that has not
/// blocked it would end the process.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut signals = SigSet::all();
    FAULTS.iter().for_each(|&fault| signals.remove(fault));
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).expect("a mask of signals that there are");
    let started = start();
    before.thread_set_mask().expect("the mask that there was");
    started
}

/// Runs the node thread. Reports when it is connected. Fails if it cannot connect.
fn run(
    settings: Settings,
    keys: Keys,
    writes: Option<Arc<WriteQueue>>,
    jobs: Receiver<Job>,
    started: Sender<Result<()>>,
) -> Result<()> {
    let mut machine_settings = real::Settings::new(new_node_id()?, keys);
    machine_settings.driver = settings.driver;
    machine_settings.sockets = settings.sockets;
    machine_settings.limits.silence = settings.silence;
    machine_settings.limits.recall = settings.silence;
    machine_settings.reporter = settings.reporter.clone();
    let lived = real::run(machine_settings, |machine| async move {
        let trace = NodeTrace::begin(&machine, settings.trace.as_deref())?;
        let reporter = settings.reporter.clone();
        let client = ClientNode::connect(machine.clone(), settings).await?;
        let taker = writes.map(|queue| {
            queue.set_date(machine.date());
            QueueDrain::new(queue)
        });
        let node = Rc::new(Node {
            client: Rc::new(client),
            files: OpenFiles::default(),
            teams: Teams::default(),
            taker,
            clock: ThreadClock::compare(&machine),
        });
        // If the receiver has been dropped, no jobs will arrive either.
        let _ = started.send(Ok(()));
        drop(started);
        let under_way = InFlight::new();
        while let Ok(job) = jobs.recv_async().await {
            let (task, operation) = (job(node.clone()), under_way.begin());
            machine.spawn("job", async move {
                task.await;
                drop(operation);
                Ok(())
            });
        }
        // No more jobs will arrive. Finish and answer the jobs in flight.
        under_way.none().await;
        // Ignore the outcome: a program that needs it finishes the session.
        drop(node.end_write_cache().await);
        node.contents_removed().await;
        if let Some(Err(error)) = trace.map(NodeTrace::end) {
            let why = machine::Error::Failed { task: "tracing".to_owned(), why: error.to_string() };
            reporter.report(&Report::TaskFailed { node: machine.node(), task: "tracing", error: why });
        }
        Ok(())
    });
    lived.map_err(|error| Error::new(ErrorKind::Io, "cannot start the node thread", error))?
}
