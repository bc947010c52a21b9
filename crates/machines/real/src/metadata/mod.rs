//! A metadata store: a database, used by a thread of its own.
//!
//! Reading order: `asked.rs` (a transaction that somebody asks for), `database.rs` (what is asked of its database),
//! `sqlite.rs` (a file of SQLite's, and transactions on it), `reserve.rs` (room for those on a full disk), `entries.rs`
//! (what such a transaction sees and changes), `failures.rs` (what SQLite's refusals mean), `postgres.rs` (a database
//! of a PostgreSQL server, with the feature `postgres`), `copies.rs` (copies of a file elsewhere), `reports.rs` (what
//! no caller is told). Here is the thread: it takes all that wait, as one commit, and a flush is such a commit that
//! waits for the medium. Between them it copies a file of SQLite's, some pages at a time.
//!
//! To hand a transaction over and be woken with its answer takes twice as long as one that only looks. So the node
//! looks by itself, as long as the thread has nothing to do and all of the database lies in memory.

mod asked;
mod copies;
mod database;
mod entries;
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
use asked::{Asked, Body};
use copies::{Copies, PATIENCE};
use database::Database;
#[cfg(feature = "postgres")]
use postgres::Postgres;
use reports::Reports;
use sqlite::{FILE, Sqlite};

/// Transactions and flushes that wait for the thread, beyond which who asks waits before.
const WAITING_MAX: usize = 256;

/// How long to wait for a store to close: for the copy on its way, and for the last one.
pub(crate) const CLOSING: Duration = PATIENCE.saturating_mul(2);

/// A store hangs after this number of silence limits: a broken connection to a server is detected within one, and
/// restored within another.
const SILENCES: u32 = 2;

/// Transactions that become one commit.
const TOGETHER_MAX: usize = 64;

/// The metadata store of a real node. Cloning gives another handle.
///
/// Its file, or its tables, are made when there is something to keep. A node that is killed loses no transaction; in a
/// power cut those may be lost that were not flushed, the last ones.
#[derive(Clone)]
pub struct Metadata {
    requests: flume::Sender<Request>,
    /// What was asked of the thread and has no answer.
    handed_over: InFlight,
    keeper: Arc<Mutex<Keeper>>,
    run: Run,
    watch: Rc<HangWatch>,
    reports: Reports,
}

/// The run of the store, which the thread may find to be another one.
type Run = Arc<AtomicU64>;

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
        let reports = Reports { node: settings.node, reporter: settings.reporter.clone() };
        let copies = settings.metadata_copies.as_ref();
        let copies = copies.map(|copies| Copies::of(place, copies, &reports)).transpose()?;
        let run = Run::new(run_of(place)?.into());
        let database = database_at(place, &run, &reports)?;
        let watch = HangWatch::watch(database.described(), settings.limits.silence * SILENCES);
        let told = reports.clone();
        let keeper = Keeper { database, copies, reports };
        let keeper = Arc::new(Mutex::new(keeper));
        let thread = thread::Builder::new().name("metadata".to_owned());
        let served = keeper.clone();
        let started = thread.spawn(move || serve(&served, &waiting));
        started.map_err(|error| Error::Io {
            what: "starting the thread of the metadata store".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Metadata { requests, handed_over: InFlight::new(), keeper, run, watch, reports: told })
    }

    /// Waits until all that was asked for is done and the file is closed; then nothing else is done.
    pub(crate) async fn close(&self) {
        let (tell, closed) = flume::bounded(1);
        if self.requests.send_async(Request::Close(tell)).await.is_ok() {
            // A thread that has ended has closed it, too.
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
                // Its completion ends the state "stuck".
                compio::runtime::spawn(asked).detach();
                let error = self.watch.error();
                self.reports.failed(&error);
                Err(error)
            }
        }
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
        self.run.load(Ordering::Relaxed)
    }
}

/// The run of a store that begins now. What is in a file is lost at the end of a run of the computer only: until then
/// the system has it. Where the system does not say which run of it this is, each start is one. A server has each
/// commit on its own medium, and it is another run when one is missing there all the same (`postgres.rs`).
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
    let (what, why) = ("opening a PostgreSQL database", "this program was built without PostgreSQL");
    Err(Error::Io { what: what.to_owned(), why: why.to_owned() }.into())
}

/// The thread's.
struct Keeper {
    database: Box<dyn Database>,
    copies: Option<Copies>,
    reports: Reports,
}

/// Whether the store goes on; if not, who waits until it is closed.
type Served = ControlFlow<Option<flume::Sender<()>>>;

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
    keeper.copy_at_last();
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

    /// Makes a copy, if there are to be any, the one before has ended, and anything has changed since; meanwhile
    /// `serve` is called every now and then.
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

    /// Makes a copy of what there is in the end, if there are to be any, and waits until it is in its place.
    fn copy_at_last(&mut self) {
        if self.has_last_copy_ended(PATIENCE) {
            let _ = self.copy(|_| ControlFlow::Continue(()));
            self.has_last_copy_ended(PATIENCE);
        }
    }

    /// Whether there are copies and none is on its way any more, after this time at most.
    fn has_last_copy_ended(&mut self, within: Duration) -> bool {
        self.copies.as_mut().is_some_and(|copies| copies.has_ended(within))
    }

    /// Carries out transactions, as one commit or, if that fails, one by one; and flushes with them or after them.
    fn carry_out(&self, mut all: Vec<Box<dyn Asked>>, flushes: Vec<flume::Sender<Result<()>>>) {
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
        self.database.commit(&mut [], true).inspect_err(|error| self.reports.failed(error))
    }

    fn answer(&self, mut asked: Box<dyn Asked>) {
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
    fn what_was_asked_for_together_fails_together_while_the_server_is_away() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("postgresql://names@{}/names", listener.local_addr().expect("bound"));
        let reports = Reports { node: NodeId(1), reporter: Reporter::new(|_| ()) };
        let run = Run::default();
        let server = Postgres::at(&address, run, reports.clone()).expect("an address");
        server.give_up();
        let keeper = Keeper { database: Box::new(server), copies: None, reports };
        let (tell, answers) = flume::unbounded();
        let ask = |_| -> Box<dyn Asked> {
            let body = |_: &mut dyn Transaction| Ok(Ok::<(), ()>(()));
            Box::new(Body::new(body, tell.clone()))
        };
        let (all, attempts) = ((0..3).map(ask).collect(), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                // Whoever calls is cut off, until the test itself calls.
                while let Ok((mut stream, _)) = listener.accept() {
                    let mut first = [0];
                    if stream.read(&mut first).unwrap_or(0) == 0 {
                        break;
                    }
                    attempts.fetch_add(1, Ordering::Relaxed);
                }
            });
            keeper.carry_out(all, Vec::new());
            drop(TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens"));
        });
        assert_eq!(answers.try_iter().filter(Result::is_err).count(), 3);
        assert_eq!(attempts.into_inner(), 1);
    }
}
