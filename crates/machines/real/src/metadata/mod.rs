//! Metadata store: a database, used by a separate thread.
//!
//! Reading order:
//!
//! - `erased_transaction.rs`: a transaction requested by a caller.
//! - `database.rs`: interface of the database.
//! - `sqlite.rs`: a SQLite file, and transactions on it.
//! - `reserve.rs`: space for these on a full disk.
//! - `entries.rs`: reads and changes of such a transaction.
//! - `failures.rs`: meaning of SQLite's errors.
//! - `postgres.rs`: a PostgreSQL database, with the feature `postgres`.
//! - `copies.rs`: copies of a file elsewhere.
//! - `reports.rs`: events that no caller learns of.
//!
//! This file has the thread. It runs all waiting transactions as one commit; a flush is a commit that waits for the
//! medium. Between commits it copies a SQLite file, some pages at a time.
//!
//! Passing a transaction to the thread and waking up for its answer takes twice as long as a read-only transaction
//! itself. The node therefore runs read-only transactions on its own thread while the store's thread is idle and the
//! whole database is in memory.

mod copies;
mod database;
mod entries;
mod erased_transaction;
mod failures;
#[cfg(feature = "postgres")]
mod postgres;
mod reports;
mod reserve;
mod sqlite;

use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use flume::RecvTimeoutError;
use machine::{Error, InFlight, MetadataStore, Result, Transaction};

use crate::computer;
use crate::hang_watch::HangWatch;
use crate::random::draw;
use crate::settings::{MetadataPlace, Settings};
use copies::{Copies, PATIENCE};
use database::Database;
use erased_transaction::{Body, ErasedTransaction};
#[cfg(feature = "postgres")]
use postgres::Postgres;
use reports::Reports;
use sqlite::{FILE, Sqlite};

/// Limit of transactions and flushes that wait for the thread. Beyond it the caller waits first.
const WAITING_MAX: usize = 256;

/// Time limit for closing a store: for the copy in flight, and for the last one.
pub(crate) const CLOSING: Duration = PATIENCE.saturating_mul(2);

/// A store hangs after this number of silence limits: a broken connection to a server is detected within one, and
/// restored within another.
const SILENCES: u32 = 2;

/// Limit of transactions in one commit.
const TOGETHER_MAX: usize = 64;

/// Metadata store of a real node. A clone is another handle.
///
/// Its file or tables are created when the first entry is stored. No transaction is lost if the node is killed. A power
/// cut may lose the last transactions, except flushed ones.
#[derive(Clone)]
pub struct Metadata {
    requests: flume::Sender<Request>,
    /// Requests in flight on the thread.
    handed_over: InFlight,
    store_thread: Arc<Mutex<StoreThread>>,
    run: Run,
    watch: Rc<HangWatch>,
    reports: Reports,
}

/// Incarnation of the store. The thread may detect that it has changed.
type Run = Arc<AtomicU64>;

/// Request to the thread.
enum Request {
    Transaction(Box<dyn ErasedTransaction>),
    Flush(flume::Sender<Result<()>>),
    Close(flume::Sender<()>),
}

impl Metadata {
    /// Returns true if this directory contains a store.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(FILE).exists()
    }

    /// Starts the store of a node.
    pub(crate) fn start(place: &MetadataPlace, settings: &Settings) -> Result<Self> {
        let (requests, waiting) = flume::bounded(WAITING_MAX);
        let reports = Reports { node: settings.node, reporter: settings.reporter.clone() };
        let copies = settings.metadata_copies.as_ref();
        let copies = copies.map(|copies| Copies::of(place, copies, &reports)).transpose()?;
        let run = Run::new(run_of(place)?.into());
        let database = database_at(place, &run, &reports)?;
        let watch = HangWatch::watch(database.described(), settings.limits.silence * SILENCES);
        let metadata_reports = reports.clone();
        let store_thread = StoreThread { database, copies, reports };
        let store_thread = Arc::new(Mutex::new(store_thread));
        let thread = thread::Builder::new().name("metadata".to_owned());
        let served = store_thread.clone();
        let started = thread.spawn(move || serve(&served, &waiting));
        started.map_err(|error| Error::Io {
            what: "cannot start the thread of the metadata store".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Metadata {
            requests,
            handed_over: InFlight::new(),
            store_thread,
            run,
            watch,
            reports: metadata_reports,
        })
    }

    /// Waits until all requests are complete and the file is closed. Later requests fail.
    pub(crate) async fn close(&self) {
        let (sender, closed) = flume::bounded(1);
        if self.requests.send_async(Request::Close(sender)).await.is_ok() {
            // A thread that has ended has closed the file, too.
            let _ = closed.recv_async().await;
        }
    }

    async fn ask<T: 'static>(&self, request: Request, answer: flume::Receiver<Result<T>>) -> Result<T> {
        let (handed_over, work) = (self.handed_over.begin(), self.watch.begin()?);
        let requests = self.requests.clone();
        let mut asked = Box::pin(async move {
            requests.send_async(request).await.map_err(|_| stopped())?;
            let outcome = answer.recv_async().await.map_err(|_| stopped())?;
            work.complete();
            drop(handed_over);
            outcome
        });
        match self.watch.unless_stuck(asked.as_mut()).await {
            Some(outcome) => outcome,
            None => {
                // Poll it to the end, since its completion ends the state "stuck".
                compio::runtime::spawn(asked).detach();
                let error = self.watch.error();
                self.reports.failed(&error);
                Err(error)
            }
        }
    }
}

/// Runs a read-only transaction at once if this needs no waiting; otherwise returns it.
fn look_at_once(
    metadata: &Metadata,
    mut asked: Box<dyn ErasedTransaction>,
) -> Option<Box<dyn ErasedTransaction>> {
    // Earlier requests must run first.
    let store = metadata.handed_over.is_empty().then(|| metadata.store_thread.try_lock().ok()).flatten();
    match store {
        Some(store) if store.database.look(&mut *asked) => {
            store.answer(asked);
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
        let (sender, answer) = flume::bounded(1);
        self.ask(Request::Transaction(Box::new(Body::new(body, sender))), answer).await
    }

    async fn look<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        let (sender, answer) = flume::bounded(1);
        match look_at_once(self, Box::new(Body::new(body, sender))) {
            None => answer.try_recv().expect("it has been answered"),
            Some(asked) => self.ask(Request::Transaction(asked), answer).await,
        }
    }

    async fn flush(&self) -> Result<()> {
        let (sender, answer) = flume::bounded(1);
        self.ask(Request::Flush(sender), answer).await
    }

    fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }
}

/// Returns the incarnation of a starting store. Writes to a file survive in the system's memory until the computer
/// restarts, so the boot identifies the incarnation. If the system does not identify the boot, each start is an
/// incarnation. A server keeps each commit in stable storage; its incarnation changes only if a commit is missing there
/// all the same (`postgres.rs`).
fn run_of(place: &MetadataPlace) -> Result<u64> {
    match place {
        MetadataPlace::Directory(_) => {
            computer::boot().map_or_else(|| draw("the number of a run of the metadata store"), Ok)
        }
        MetadataPlace::Postgres(_) => Ok(0),
    }
}

/// Returns the database at a place.
fn database_at(place: &MetadataPlace, run: &Run, reports: &Reports) -> Result<Box<dyn Database>> {
    match place {
        MetadataPlace::Directory(directory) => {
            Ok(Box::new(Sqlite::at(directory, run.load(Ordering::Relaxed))?))
        }
        MetadataPlace::Postgres(address) => of_server(address, run, reports),
    }
}

#[cfg(feature = "postgres")]
fn of_server(address: &str, run: &Run, reports: &Reports) -> Result<Box<dyn Database>> {
    Ok(Box::new(Postgres::at(address, run.clone(), reports.clone())?))
}

#[cfg(not(feature = "postgres"))]
fn of_server(_address: &str, _run: &Run, _reports: &Reports) -> Result<Box<dyn Database>> {
    let (what, why) = ("cannot open a PostgreSQL database", "this program was built without PostgreSQL");
    Err(Error::Io { what: what.to_owned(), why: why.to_owned() }.into())
}

/// State of the thread.
struct StoreThread {
    database: Box<dyn Database>,
    copies: Option<Copies>,
    reports: Reports,
}

/// Continues, or breaks to close the store, with the channel of the caller that waits for this.
type Served = ControlFlow<Option<flume::Sender<()>>>;

/// Requests served together.
#[derive(Default)]
struct Batch {
    transactions: Vec<Box<dyn ErasedTransaction>>,
    flushes: Vec<flume::Sender<Result<()>>>,
    close: Option<flume::Sender<()>>,
}

impl Batch {
    fn add(&mut self, request: Request) {
        match request {
            Request::Transaction(asked) => self.transactions.push(asked),
            Request::Flush(sender) => self.flushes.push(sender),
            Request::Close(sender) => self.close = Some(sender),
        }
    }

    fn is_full(&self) -> bool {
        self.transactions.len() >= TOGETHER_MAX || self.close.is_some()
    }
}

/// Serves requests until the store is closed or no handles are left. Then makes a last copy.
fn serve(store: &Mutex<StoreThread>, requests: &flume::Receiver<Request>) {
    let store = || store.lock().expect("whoever has it does not panic");
    let closed = loop {
        if let ControlFlow::Break(closed) = store().copy_if_due(requests) {
            break closed;
        }
        // The lock is free while the thread waits.
        let due = store().copies.as_ref().map(|copies| copies.due);
        let first = match due {
            None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => requests.recv_deadline(due),
        };
        let served = match first {
            Ok(first) => store().serve_batch(first, requests),
            Err(RecvTimeoutError::Timeout) => ControlFlow::Continue(()),
            Err(RecvTimeoutError::Disconnected) => ControlFlow::Break(None),
        };
        if let ControlFlow::Break(closed) = served {
            break closed;
        }
    };
    let mut store = store();
    store.copy_at_last();
    store.database.close();
    if let Some(sender) = closed {
        // A caller that no longer waits does not need the message.
        let _ = sender.send(());
    }
}

impl StoreThread {
    fn copy_if_due(&mut self, requests: &flume::Receiver<Request>) -> Served {
        match self.copies.as_ref().is_some_and(Copies::is_due) {
            true => self.copy(|store| store.serve_waiting(requests)),
            false => ControlFlow::Continue(()),
        }
    }

    /// Serves the waiting requests, if any.
    fn serve_waiting(&self, requests: &flume::Receiver<Request>) -> Served {
        requests.try_recv().map_or(ControlFlow::Continue(()), |first| self.serve_batch(first, requests))
    }

    /// Serves this request and those queued behind it.
    fn serve_batch(&self, first: Request, requests: &flume::Receiver<Request>) -> Served {
        let mut batch = Batch::default();
        batch.add(first);
        while !batch.is_full() {
            let Ok(next) = requests.try_recv() else { break };
            batch.add(next);
        }
        self.carry_out(batch.transactions, batch.flushes);
        batch.close.map_or(ControlFlow::Continue(()), |sender| ControlFlow::Break(Some(sender)))
    }

    /// Makes a copy if copies are configured, the previous one has ended, and anything has changed since. Regularly
    /// calls `serve` during the copy.
    fn copy(&mut self, serve: impl Fn(&Self) -> Served) -> Served {
        let (mut served, changes) = (ControlFlow::Continue(()), self.database.changes());
        let is_wanted = self
            .copies
            .as_mut()
            .is_some_and(|copies| copies.has_ended(Duration::ZERO) && !copies.has(changes));
        let copied = match is_wanted {
            true => self.database.copy(&mut || {
                served = serve(self);
                served.is_continue()
            }),
            false => Ok(None),
        };
        match (copied, &mut self.copies) {
            (Ok(Some(file)), Some(copies)) => copies.send(file, changes),
            (Err(error), _) => self.reports.failed(&error),
            _ => {}
        }
        self.copies.iter_mut().for_each(Copies::put_off);
        served
    }

    /// Makes a copy of the final state, if copies are configured, and waits until it has arrived.
    fn copy_at_last(&mut self) {
        if self.has_last_copy_ended(PATIENCE) {
            let _ = self.copy(|_| ControlFlow::Continue(()));
            self.has_last_copy_ended(PATIENCE);
        }
    }

    /// Waits for a copy in flight, for at most this time. Returns true if copies are configured and no copy is in
    /// flight.
    fn has_last_copy_ended(&mut self, within: Duration) -> bool {
        self.copies.as_mut().is_some_and(|copies| copies.has_ended(within))
    }

    /// Runs transactions as one commit or, if that fails, one by one, and flushes with them or after them.
    fn carry_out(&self, mut all: Vec<Box<dyn ErasedTransaction>>, flushes: Vec<flume::Sender<Result<()>>>) {
        let flushed = match self.database.commit(&mut all, !flushes.is_empty()) {
            Ok(()) => {
                all.into_iter().for_each(|asked| self.answer(asked));
                Ok(())
            }
            Err(error) if all.len() + flushes.len() <= 1 || self.database.is_away() => {
                self.reports.failed(&error);
                all.into_iter().for_each(|asked| asked.answer(Err(error.clone())));
                Err(error)
            }
            // A single transaction may have caused the failure.
            Err(_) => {
                all.into_iter().for_each(|asked| self.carry_out(vec![asked], Vec::new()));
                if flushes.is_empty() { Ok(()) } else { self.flush() }
            }
        };
        // A caller that no longer waits does not need the outcome.
        flushes.into_iter().for_each(|sender| drop(sender.send(flushed.clone())));
    }

    fn flush(&self) -> Result<()> {
        self.database.commit(&mut [], true).inspect_err(|error| self.reports.failed(error))
    }

    fn answer(&self, mut asked: Box<dyn ErasedTransaction>) {
        if let Some(error) = asked.take_defect() {
            self.reports.defect(error);
        }
        asked.answer(Ok(()));
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use machine::NodeId;

    use super::*;
    use crate::report::Reporter;

    #[test]
    fn concurrent_transactions_fail_together_without_a_server() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("postgresql://names@{}/names", listener.local_addr().expect("bound"));
        let reports = Reports { node: NodeId(1), reporter: Reporter::new(|_| ()) };
        let run = Run::default();
        let server = Postgres::at(&address, run, reports.clone()).expect("an address");
        server.give_up();
        let store = StoreThread { database: Box::new(server), copies: None, reports };
        let (sender, answers) = flume::unbounded();
        let ask = |_| -> Box<dyn ErasedTransaction> {
            let body = |_: &mut dyn Transaction| Ok(Ok::<(), ()>(()));
            Box::new(Body::new(body, sender.clone()))
        };
        let (all, attempts) = ((0..3).map(ask).collect(), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                // Disconnects every caller, until the test itself connects.
                while let Ok((mut stream, _)) = listener.accept() {
                    let mut first = [0];
                    if stream.read(&mut first).unwrap_or(0) == 0 {
                        break;
                    }
                    attempts.fetch_add(1, Ordering::Relaxed);
                }
            });
            store.carry_out(all, Vec::new());
            drop(TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens"));
        });
        assert_eq!(answers.try_iter().filter(Result::is_err).count(), 3);
        assert_eq!(attempts.into_inner(), 1);
    }
}
