//! A store in a PostgreSQL database, which others keep and replicate.
//!
//! Only one node at a time uses the store: it holds a lock of the server as long as its session lasts. So it may cache
//! what it has read, and send the changes of several transactions as one statement. Each statement also takes the store
//! from one number to the next, which is drawn at random: after a lost connection the number says whether the last
//! statement was carried out, and a statement is refused if anything else has changed the store.
//!
//! Every commit waits for the server's medium, as far as its administrator has set that up: this node would go on to
//! rely on what a failing server had lost. But a server that takes over may lack the last commits, an older backup may
//! be put back, and another node may have used the store while this one was cut off. The number tells: at one that this
//! node has not left it at, the store is in another run, what was read is out of date, and that is reported. What is
//! answered from memory is compared with the server's number, so that it is not out of date for long.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use machine::{Error, MetadataAttempt, MetadataChanges, MetadataEntries, MetadataEntry, NodePart, Result};
use postgres::config::Host;
use postgres::{Client, Config, NoTls};

use super::Run;
use super::asked::Asked;
use super::database::Database;
use super::reports::Reports;
use crate::random::draw;

/// The version of what is in the database.
const VERSION: i32 = 1;

/// The lock of a store: "Star" and "fish" as bytes.
const LOCK: &str = "SELECT pg_try_advisory_lock(1400136050, 1718186856)";

/// Limits the wait for a row lock of an administrator or of `pg_dump`. Statements have no limit, because a commit that
/// is cancelled while it waits for a replica is kept by the server alone.
const WAIT_FOR_LOCKS: &str = "SET lock_timeout = '10s'";

const MAKE: &str = "
    CREATE TABLE IF NOT EXISTS starfish_entries (key bytea PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS starfish_store (version integer NOT NULL, number bigint NOT NULL);
    INSERT INTO starfish_store SELECT 1, 0 WHERE NOT EXISTS (SELECT FROM starfish_store);";

const STORE: &str = "SELECT version, number FROM starfish_store";

const GET: &str = "SELECT value FROM starfish_entries WHERE key = $1";

const RANGE: &str =
    "SELECT key, value FROM starfish_entries WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3";

/// All changes, if the store is at the number that it was left at; says at how many stores.
const CHANGE: &str = "
    WITH store AS (UPDATE starfish_store SET number = $2 WHERE number = $1 RETURNING number),
        removed AS (DELETE FROM starfish_entries WHERE key = ANY($5) AND EXISTS (SELECT FROM store)),
        put AS (
            INSERT INTO starfish_entries SELECT * FROM unnest($3::bytea[], $4::bytea[])
            WHERE EXISTS (SELECT FROM store)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
        )
    SELECT count(*) FROM store";

/// How long a server that is started anew, or has not noticed yet that the last session is over, is tried again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// For how long what is remembered is believed without a word from the server: as long as locks are leased. A server
/// ends the session of a node that is cut off, and then another node may have the store.
const BELIEVED: Duration = Duration::from_secs(5);

/// Bytes of entries that are remembered, as far as keys and values count.
const REMEMBERED_BYTES_MAX: usize = 256 << 20;

/// A database of a server.
pub(super) struct Postgres {
    config: Config,
    /// What errors call it: without a password.
    what: String,
    session: RefCell<Option<Client>>,
    /// The number that the store was left at.
    number: Cell<Option<i64>>,
    /// The number that it is at instead, if the last statement was carried out: nobody has said.
    unsure: Cell<Option<i64>>,
    remembered: RefCell<Remembered>,
    /// When the server has answered last.
    answered: Cell<Option<Instant>>,
    /// When the server was given up, unless it has answered since.
    given_up: Cell<Option<Instant>>,
    run: Run,
    reports: Reports,
}

/// Entries as they were read or written: none where there is none.
#[derive(Default)]
struct Remembered {
    entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Remembered {
    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        let (added, length) = (bytes(&value), key.len());
        match self.entries.insert(key, value) {
            Some(before) => self.bytes -= bytes(&before),
            None => self.bytes += length,
        }
        self.bytes += added;
        if self.bytes > REMEMBERED_BYTES_MAX {
            // Some are read once more then.
            *self = Remembered::default();
        }
    }
}

/// Why something could not be done.
enum Fault {
    /// The session is over, and another one may do it.
    Lost(Box<Error>),
    /// No session can.
    Refused(Box<Error>),
}

impl Postgres {
    /// The database at this address, `postgresql://USER@HOST/DATABASE`, which is connected to when it is needed.
    pub(super) fn at(address: &str, run: Run, reports: Reports) -> Result<Self> {
        let mut config: Config = address.parse().map_err(|error: postgres::Error| {
            let what = "the address of a PostgreSQL database".to_owned();
            Error::Io { what, why: with_causes(&error) }
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE / 2);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(PATIENCE);
        }
        keep_alive(&mut config);
        Ok(Postgres {
            what: describe(&config),
            config,
            session: RefCell::default(),
            number: Cell::default(),
            unsure: Cell::default(),
            remembered: RefCell::default(),
            answered: Cell::default(),
            given_up: Cell::default(),
            run,
            reports,
        })
    }

    #[cfg(test)]
    pub(super) fn give_up(&self) {
        self.given_up.set(Instant::now().checked_sub(2 * PATIENCE));
    }

    fn lose(&self) {
        *self.session.borrow_mut() = None;
    }

    fn try_commit(&self, all: &mut [Box<dyn Asked>], is_flush: bool) -> std::result::Result<(), Fault> {
        let is_believed = self.answered.get().is_some_and(|answered| answered.elapsed() < BELIEVED);
        self.connect(is_believed && !is_flush)?;
        let fault = RefCell::new(None);
        let mut together = MetadataAttempt::over(StoreEntries { store: self, fault: &fault });
        for asked in all {
            let mut attempt = MetadataAttempt::over(&mut together);
            let is_to_be_kept = asked.carry_out(&mut attempt);
            let changes = attempt.into_changes();
            if let Some(fault) = fault.take() {
                return Err(fault);
            }
            if is_to_be_kept {
                together.take_in(changes);
            }
        }
        let changes = together.into_changes();
        if changes.is_empty() { Ok(()) } else { self.change(changes) }
    }

    /// Makes changes.
    fn change(&self, changes: MetadataChanges) -> std::result::Result<(), Fault> {
        let before = self.number.get().expect("it was read");
        let number = draw("a number at random").map_err(Fault::Refused)?.cast_signed();
        match self.send(&changes, before, number) {
            Err(Fault::Lost(error)) => {
                self.lose();
                let started = Instant::now();
                while let Err(fault) = self.connect_knowing(&[before, number]) {
                    match fault {
                        Fault::Lost(_) if started.elapsed() < PATIENCE => thread::sleep(PAUSE),
                        // It is not known whether it was done; the next session begins with what is there then.
                        fault => {
                            self.unsure.set(Some(number));
                            *self.remembered.borrow_mut() = Remembered::default();
                            return Err(Fault::Refused(fault.into_error()));
                        }
                    }
                }
                if self.number.get() != Some(number) {
                    // It was not done, and what was read may be another now.
                    return Err(Fault::Lost(error));
                }
            }
            sent => sent?,
        }
        let mut remembered = self.remembered.borrow_mut();
        changes.into_iter().for_each(|(key, value)| remembered.put(key, value));
        Ok(())
    }

    fn send(&self, changes: &MetadataChanges, before: i64, number: i64) -> std::result::Result<(), Fault> {
        let put = || changes.iter().filter_map(|(key, value)| value.as_ref().map(|value| (key, value)));
        let keys: Vec<&[u8]> = put().map(|(key, _)| &**key).collect();
        let values: Vec<&[u8]> = put().map(|(_, value)| &**value).collect();
        let gone = changes.iter().filter(|(_, value)| value.is_none());
        let gone: Vec<&[u8]> = gone.map(|(key, _)| &**key).collect();
        let stores: i64 = self.ask(|session| {
            session.query_one(CHANGE, &[&before, &number, &keys, &values, &gone])?.try_get(0)
        })?;
        if stores == 1 {
            self.number.set(Some(number));
            return Ok(());
        }
        self.number.set(None);
        self.note_other_run()?;
        let why = "somebody else has changed it: another agent uses it, or it was restored".to_owned();
        Err(Fault::Refused(Error::Io { what: self.what.clone(), why }.into()))
    }

    /// Begins a session unless there is one, and has the store where it was left, unless that is believed of it.
    fn connect(&self, is_believed: bool) -> std::result::Result<(), Fault> {
        let known = self.number.get();
        if is_believed && self.session.borrow().is_some() && known.is_some() {
            return Ok(());
        }
        let expected: Vec<i64> = known.into_iter().chain(self.unsure.get()).collect();
        self.connect_knowing(&expected)
    }

    /// Begins a session unless there is one, expecting the store at one of these numbers, if any.
    fn connect_knowing(&self, expected: &[i64]) -> std::result::Result<(), Fault> {
        if self.session.borrow().is_none() {
            let client = self.begin_session()?;
            *self.session.borrow_mut() = Some(client);
        }
        let (version, number): (i32, i64) = self.ask(|session| {
            let store = session.query_one(STORE, &[])?;
            Ok((store.try_get(0)?, store.try_get(1)?))
        })?;
        if version != VERSION {
            let why = format!("it has version {version}, and this program knows {VERSION}: update Starfish");
            return Err(Fault::Refused(Error::Io { what: self.what.clone(), why }.into()));
        }
        if !expected.is_empty() && !expected.contains(&number) {
            self.note_other_run()?;
        }
        self.number.set(Some(number));
        self.unsure.set(None);
        Ok(())
    }

    /// Notes that the store is not as this node has left it.
    fn note_other_run(&self) -> std::result::Result<(), Fault> {
        *self.remembered.borrow_mut() = Remembered::default();
        let run = draw("the number of a run of the metadata store").map_err(Fault::Refused)?;
        self.run.store(run, Ordering::Relaxed);
        self.reports.changed_by_others(format!(
            "{} is not as this agent has left it: a server that took over or a backup that was put back lacks the last \
             changes of names, or another agent has made some",
            self.what
        ));
        Ok(())
    }

    /// A session that has the lock, and the tables.
    fn begin_session(&self) -> std::result::Result<Client, Fault> {
        let fault = |error| self.fault(error);
        let mut client = self.config.connect(NoTls).map_err(fault)?;
        let is_locked: bool = client.query_one(LOCK, &[]).and_then(|row| row.try_get(0)).map_err(fault)?;
        if is_locked {
            client.batch_execute(WAIT_FOR_LOCKS).map_err(fault)?;
            client.batch_execute(MAKE).map_err(fault)?;
            return Ok(client);
        }
        let why =
            "another agent uses it: stop that one, or wait until the server has noticed that it is gone";
        let (what, why) = (self.what.clone(), why.to_owned());
        Err(Fault::Lost(Error::InUse { part: NodePart::Metadata, what, why }.into()))
    }

    fn ask<T>(
        &self,
        ask: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error>,
    ) -> std::result::Result<T, Fault> {
        let mut session = self.session.borrow_mut();
        let session = session.as_mut().expect("there is one");
        let answer = ask(session).map_err(|error| self.fault(error))?;
        self.answered.set(Some(Instant::now()));
        Ok(answer)
    }

    fn fault(&self, error: postgres::Error) -> Fault {
        let what = self.what.clone();
        let Some(refusal) = error.as_db_error() else {
            return Fault::Lost(Error::Io { what, why: with_causes(&error) }.into());
        };
        let why = refusal.message().to_owned();
        match refusal.code().code() {
            // Classes of PostgreSQL's error codes: connections, and what an operator does to a server.
            code if code.starts_with("08") || code.starts_with("57P") => {
                Fault::Lost(Error::Io { what, why }.into())
            }
            "53100" => Fault::Refused(Error::NoSpace { what }.into()),
            "XX001" | "XX002" => Fault::Refused(Error::Damaged { what, why }.into()),
            _ => Fault::Refused(Error::Io { what, why }.into()),
        }
    }

    fn get(&self, key: &[u8]) -> std::result::Result<Option<Vec<u8>>, Fault> {
        if let Some(value) = self.remembered.borrow().entries.get(key) {
            return Ok(value.clone());
        }
        let value: Option<Vec<u8>> = self.ask(|session| {
            let row = session.query_opt(GET, &[&key])?;
            row.map(|row| row.try_get(0)).transpose()
        })?;
        self.remembered.borrow_mut().put(key.to_vec(), value.clone());
        Ok(value)
    }

    fn range(&self, from: &[u8], to: &[u8], most: usize) -> std::result::Result<Vec<MetadataEntry>, Fault> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self.ask(|session| session.query(RANGE, &[&from, &to, &most]))?;
        let entries = rows.into_iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        entries.collect::<std::result::Result<_, _>>().map_err(|error| self.fault(error))
    }
}

impl Database for Postgres {
    /// Each commit is on the medium. Before a flush, the number shows whether the store is as this node left it. After
    /// a failure, transactions may have changed something if the server does not answer for long.
    fn commit(&self, all: &mut [Box<dyn Asked>], is_flush: bool) -> Result<()> {
        // Once the server was given up, no commit waits that long again until it has answered.
        let started = self.given_up.get().unwrap_or(Instant::now());
        loop {
            match self.try_commit(all, is_flush) {
                Err(Fault::Lost(error)) => {
                    self.lose();
                    if started.elapsed() > PATIENCE {
                        self.given_up.set(Some(started));
                        return Err(error);
                    }
                    thread::sleep(PAUSE);
                }
                answered => {
                    self.given_up.set(None);
                    return answered.map_err(Fault::into_error);
                }
            }
        }
    }

    fn described(&self) -> String {
        self.what.clone()
    }

    /// True if the server was given up, and has not answered since.
    fn is_away(&self) -> bool {
        self.given_up.get().is_some()
    }

    /// Ends the session, and with it the lock.
    fn close(&mut self) {
        self.lose();
    }
}

impl Fault {
    fn error(&self) -> &Error {
        match self {
            Fault::Lost(error) | Fault::Refused(error) => error,
        }
    }

    fn into_error(self) -> Box<Error> {
        match self {
            Fault::Lost(error) | Fault::Refused(error) => error,
        }
    }
}

/// The entries of the store, and why they could not be read, if they could not.
struct StoreEntries<'a> {
    store: &'a Postgres,
    fault: &'a RefCell<Option<Fault>>,
}

impl StoreEntries<'_> {
    fn note<T>(&self, outcome: std::result::Result<T, Fault>) -> Result<T> {
        outcome.map_err(|fault| {
            let error = Box::new(fault.error().clone());
            self.fault.replace(Some(fault));
            error
        })
    }
}

impl MetadataEntries for StoreEntries<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.note(self.store.get(key))
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        self.note(self.store.range(from, to, most))
    }

    fn run(&self) -> u64 {
        self.store.run.load(Ordering::Relaxed)
    }
}

/// Has the system ask a silent server whether it is there, unless the address says how often: one that vanishes while
/// an answer is awaited is given up after [`PATIENCE`].
fn keep_alive(config: &mut Config) {
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(PATIENCE / 5);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(PATIENCE / 5);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(4);
    }
}

/// The store as error messages call it.
fn describe(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    format!("metadata store {} at {}", config.get_dbname().unwrap_or("postgres"), hosts.join(","))
}

/// The library's messages leave out what lies behind them.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_asked_whether_it_is_there_as_often_as_its_address_says() {
        let kept_alive = |address: &str| {
            let mut config = address.parse().expect("an address");
            keep_alive(&mut config);
            (config.get_keepalives_idle(), config.get_keepalives_interval(), config.get_keepalives_retries())
        };
        let (idle, interval, retries) = kept_alive("postgresql://names@server/names");
        assert!(idle + interval.expect("given") * retries.expect("given") <= PATIENCE);
        let chosen = kept_alive(
            "postgresql://names@server/names?keepalives_idle=60&keepalives_interval=7&keepalives_retries=9",
        );
        assert_eq!(chosen, (Duration::from_secs(60), Some(Duration::from_secs(7)), Some(9)));
    }
}
