//! A store of metadata: a database, used by a thread of its own.
//!
//! Reading order: `asked.rs` (a transaction that somebody asks for), `database.rs` (which database), `sqlite.rs` (a
//! file of SQLite's, and transactions on it), `reserve.rs` (room for those on a full disk), `entries.rs` (what such a
//! transaction sees and changes), `failures.rs` (what SQLite's refusals mean), `postgres.rs` (a database of a
//! PostgreSQL server). Here is the thread: it takes all that wait, as one commit, and a flush is such a commit that
//! waits for the medium. Between them it copies a file of SQLite's elsewhere, some pages at a time.
//!
//! To hand a transaction over and be woken with its answer takes twice as long as one that only looks. So the node
//! looks by itself, as long as the thread has nothing to do and all of the database lies in memory.

mod asked;
mod database;
mod entries;
mod failures;
mod postgres;
mod reserve;
mod sqlite;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use flume::RecvTimeoutError;
use machine::{Error, InFlight, MetadataStore, NodeId, Result, Transaction};

use crate::computer;
use crate::disk::io_error;
use crate::random::draw;
use crate::report::{Report, Reporter};
use crate::settings::{MetadataCopies, MetadataPlace, Settings};
use asked::{Asked, Body};
use database::Database;
use sqlite::FILE;

/// Transactions and flushes that wait for the thread, beyond which who asks waits before.
const WAITING_MAX: usize = 256;

/// Transactions that become one commit.
const TOGETHER_MAX: usize = 64;

/// The store of metadata of a real node. Cloning gives another handle.
///
/// Its file, or its tables, are made when there is something to keep. A node that is killed loses no transaction; in a
/// power cut those may be lost that were not flushed, the last ones.
#[derive(Clone)]
pub struct Metadata {
    requests: flume::Sender<Request>,
    /// What was asked of the thread and has no answer.
    handed_over: InFlight,
    keeper: Arc<Mutex<Keeper>>,
    run: u64,
}

/// What the thread is asked for.
enum Request {
    Transaction(Box<dyn Asked>),
    Flush(flume::Sender<Result<()>>),
    Close(flume::Sender<()>),
}

impl Metadata {
    /// Whether there is a store in this directory.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(FILE).exists()
    }

    /// Begins the store of a node.
    pub(crate) fn start(place: &MetadataPlace, settings: &Settings) -> Result<Self> {
        let (requests, waiting) = flume::bounded(WAITING_MAX);
        let copies = settings.metadata_copies.as_ref();
        let copies = copies.map(|copies| Copies::of(place, copies)).transpose()?;
        let (node, reporter) = (settings.node, settings.reporter.clone());
        let keeper = Keeper { database: Database::at(place)?, copies, node, reporter };
        let keeper = Arc::new(Mutex::new(keeper));
        let thread = thread::Builder::new().name("metadata".to_owned());
        let served = keeper.clone();
        let started = thread.spawn(move || serve(&served, &waiting));
        started.map_err(|error| Error::Io {
            what: "starting the thread of the store of metadata".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Metadata { requests, handed_over: InFlight::new(), keeper, run: run_of(place)? })
    }

    /// Waits until all that was asked for is done and the file is closed; then nothing else is done.
    pub(crate) async fn close(&self) {
        let (tell, closed) = flume::bounded(1);
        if self.requests.send_async(Request::Close(tell)).await.is_ok() {
            // A thread that has ended has closed it, too.
            let _ = closed.recv_async().await;
        }
    }

    async fn ask<T>(&self, request: Request, answer: flume::Receiver<Result<T>>) -> Result<T> {
        let _handed_over = self.handed_over.begin();
        self.requests.send_async(request).await.map_err(|_| stopped())?;
        answer.recv_async().await.map_err(|_| stopped())?
    }
}

/// Looks with this transaction at once, if that can be done without waiting; otherwise gives it back.
fn look_at_once(metadata: &Metadata, mut asked: Box<dyn Asked>) -> Option<Box<dyn Asked>> {
    // What was asked for before comes before.
    let keeper = metadata.handed_over.is_empty().then(|| metadata.keeper.try_lock().ok()).flatten();
    match keeper {
        Some(keeper) if keeper.database.look(&mut *asked) => {
            keeper.answer(asked);
            None
        }
        _ => Some(asked),
    }
}

fn stopped() -> Box<Error> {
    Error::Failed { task: "a transaction".to_owned(), why: "the node has stopped".to_owned() }.into()
}

impl MetadataStore for Metadata {
    async fn transact<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        let (tell, answer) = flume::bounded(1);
        self.ask(Request::Transaction(Box::new(Body::new(body, tell))), answer).await
    }

    async fn look<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        let (tell, answer) = flume::bounded(1);
        match look_at_once(self, Box::new(Body::new(body, tell))) {
            None => answer.try_recv().expect("it has been answered"),
            Some(asked) => self.ask(Request::Transaction(asked), answer).await,
        }
    }

    async fn flush(&self) -> Result<()> {
        let (tell, answer) = flume::bounded(1);
        self.ask(Request::Flush(tell), answer).await
    }

    fn run(&self) -> u64 {
        self.run
    }
}

/// The run of a store that begins now. What is in a file is lost at the end of a run of the computer only: until then
/// the system has it. Where the system does not say which run of it this is, each start is one. A server has each
/// commit on its own medium.
fn run_of(place: &MetadataPlace) -> Result<u64> {
    match place {
        MetadataPlace::Directory(_) => {
            computer::boot().map_or_else(|| draw("the number of a run of the store of metadata"), Ok)
        }
        MetadataPlace::Postgres(_) => Ok(0),
    }
}

/// The thread's.
struct Keeper {
    database: Database,
    copies: Option<Copies>,
    node: NodeId,
    reporter: Reporter,
}

/// Whether the store goes on; if not, who waits until it is closed.
type Served = ControlFlow<Option<flume::Sender<()>>>;

/// Copies of the store.
struct Copies {
    file: PathBuf,
    every: Duration,
    due: Instant,
    /// The [changes](Database::changes) when the last one was begun.
    copied: Option<u64>,
}

impl Copies {
    /// Copies of a store. Fails if they would take its own place, or have none.
    fn of(store: &MetadataPlace, settings: &MetadataCopies) -> Result<Self> {
        let place = &settings.directory;
        let what = format!("directory for copies of metadata {}", place.display());
        let MetadataPlace::Directory(directory) = store else {
            let why =
                "the metadata are in a PostgreSQL server, which has means of its own to copy them".to_owned();
            return Err(Error::Io { what, why }.into());
        };
        let found = fs::canonicalize(place).map_err(|error| io_error(&what, error))?;
        if fs::canonicalize(directory).is_ok_and(|own| own == found) {
            let why = "a copy would take the place of the store itself: give another directory".to_owned();
            return Err(Error::Io { what, why }.into());
        }
        let due = Instant::now() + settings.every;
        Ok(Copies { file: place.join(FILE), every: settings.every, due, copied: None })
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    fn put_off(&mut self) {
        self.due = Instant::now() + self.every;
    }
}

/// What is done together.
#[derive(Default)]
struct Batch {
    transactions: Vec<Box<dyn Asked>>,
    flushes: Vec<flume::Sender<Result<()>>>,
    close: Option<flume::Sender<()>>,
}

impl Batch {
    fn add(&mut self, request: Request) {
        match request {
            Request::Transaction(asked) => self.transactions.push(asked),
            Request::Flush(tell) => self.flushes.push(tell),
            Request::Close(tell) => self.close = Some(tell),
        }
    }

    fn is_full(&self) -> bool {
        self.transactions.len() >= TOGETHER_MAX || self.close.is_some()
    }
}

/// Does what is asked for until the store is closed or nobody can ask any more; then there is a last copy.
fn serve(keeper: &Mutex<Keeper>, requests: &flume::Receiver<Request>) {
    let keeper = || keeper.lock().expect("whoever has it does not panic");
    let closed = loop {
        if let ControlFlow::Break(closed) = keeper().copy_if_due(requests) {
            break closed;
        }
        // Nobody has it while the thread waits.
        let due = keeper().copies.as_ref().map(|copies| copies.due);
        let first = match due {
            None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => requests.recv_deadline(due),
        };
        let served = match first {
            Ok(first) => keeper().serve_batch(first, requests),
            Err(RecvTimeoutError::Timeout) => ControlFlow::Continue(()),
            Err(RecvTimeoutError::Disconnected) => ControlFlow::Break(None),
        };
        if let ControlFlow::Break(closed) = served {
            break closed;
        }
    };
    let mut keeper = keeper();
    let _ = keeper.copy(|_| ControlFlow::Continue(()));
    keeper.database.close();
    if let Some(tell) = closed {
        // Who does not wait any more need not be told.
        let _ = tell.send(());
    }
}

impl Keeper {
    fn copy_if_due(&mut self, requests: &flume::Receiver<Request>) -> Served {
        match self.copies.as_ref().is_some_and(Copies::is_due) {
            true => self.copy(|keeper| keeper.serve_waiting(requests)),
            false => ControlFlow::Continue(()),
        }
    }

    /// Does what waits, if anything does.
    fn serve_waiting(&self, requests: &flume::Receiver<Request>) -> Served {
        requests.try_recv().map_or(ControlFlow::Continue(()), |first| self.serve_batch(first, requests))
    }

    /// Does what this request and those behind it ask for.
    fn serve_batch(&self, first: Request, requests: &flume::Receiver<Request>) -> Served {
        let mut batch = Batch::default();
        batch.add(first);
        while !batch.is_full() {
            let Ok(next) = requests.try_recv() else { break };
            batch.add(next);
        }
        self.carry_out(batch.transactions, batch.flushes);
        batch.close.map_or(ControlFlow::Continue(()), |tell| ControlFlow::Break(Some(tell)))
    }

    /// Makes a copy, if there are to be any and anything has changed since the last one; meanwhile `serve` is called
    /// every now and then.
    fn copy(&mut self, serve: impl Fn(&Self) -> Served) -> Served {
        let mut served = ControlFlow::Continue(());
        let Some(copies) =
            self.copies.as_ref().filter(|copies| copies.copied != Some(self.database.changes()))
        else {
            self.copies.iter_mut().for_each(Copies::put_off);
            return served;
        };
        let changes = self.database.changes();
        let outcome = self.database.copy(&copies.file, || {
            served = serve(self);
            served.is_continue()
        });
        match &outcome {
            Ok(()) if served.is_continue() => {
                self.copies.iter_mut().for_each(|copies| copies.copied = Some(changes));
            }
            Ok(()) => {}
            Err(error) => self.report(error),
        }
        self.copies.iter_mut().for_each(Copies::put_off);
        served
    }

    /// Carries out transactions, as one commit or, if that fails, one by one; and flushes with them or after them.
    fn carry_out(&self, mut all: Vec<Box<dyn Asked>>, flushes: Vec<flume::Sender<Result<()>>>) {
        let flushed = match self.database.commit(&mut all, !flushes.is_empty()) {
            Ok(()) => {
                all.into_iter().for_each(|asked| self.answer(asked));
                Ok(())
            }
            Err(error) if all.len() + flushes.len() <= 1 => {
                self.report(&error);
                all.into_iter().for_each(|asked| asked.answer(Err(error.clone())));
                Err(error)
            }
            // One of them may be to blame.
            Err(_) => {
                all.into_iter().for_each(|asked| self.carry_out(vec![asked], Vec::new()));
                if flushes.is_empty() { Ok(()) } else { self.flush() }
            }
        };
        // Who does not wait any more need not be told.
        flushes.into_iter().for_each(|tell| drop(tell.send(flushed.clone())));
    }

    fn flush(&self) -> Result<()> {
        self.database.commit(&mut [], true).inspect_err(|error| self.report(error))
    }

    fn answer(&self, mut asked: Box<dyn Asked>) {
        if let Some(error) = asked.take_defect() {
            let (node, part) = (self.node, "a transaction");
            self.reporter.report(&Report::Defect { node, part, error });
        }
        asked.answer(Ok(()));
    }

    fn report(&self, error: &Error) {
        self.reporter.report(&Report::DiskFailed { node: self.node, error: error.clone() });
    }
}
