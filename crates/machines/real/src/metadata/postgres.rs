//! Store in a PostgreSQL database, which the server's administrator operates and replicates.
//!
//! Only one node at a time uses the store: its session holds a lock of the server. The node may therefore cache
//! entries, and send the changes of several transactions as one statement. Each statement also changes the number of
//! the store to a random one. After a lost connection this number shows if the last statement was executed, and a
//! statement is rejected if anything else has changed the store.
//!
//! Every commit waits for the server's stable storage, as far as its administrator has configured that. Otherwise this
//! node could rely on data that a failing server had lost. But a server that takes over may lack the last commits, an
//! older backup may be restored, or another node may have used the store while this one was disconnected. The number
//! shows this. If it differs from the last number of this node, the store has a new incarnation: cached entries are
//! discarded, and the change is reported. Answers from the cache are validated against the server's number at
//! intervals, so they are not out of date for long.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use machine::{Error, MetadataAttempt, MetadataChanges, MetadataEntries, MetadataEntry, NodePart, Result};
use postgres::config::Host;
use postgres::{Client, Config, NoTls};

use super::Run;
use super::database::Database;
use super::erased_transaction::ErasedTransaction;
use super::reports::Reports;
use crate::random::draw;

/// Version of the contents of the database.
const VERSION: i32 = 1;

/// Takes the lock of a store: "Star" and "fish" as bytes.
const LOCK: &str = "SELECT pg_try_advisory_lock(1400136050, 1718186856)";

/// Limits the wait for a row lock of an administrator or of `pg_dump`. Statements have no time limit, because a commit
/// cancelled while it waits for a replica stays on the server alone.
const WAIT_FOR_LOCKS: &str = "SET lock_timeout = '10s'";

const MAKE: &str = "
    CREATE TABLE IF NOT EXISTS starfish_entries (key bytea PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS starfish_store (version integer NOT NULL, number bigint NOT NULL);
    INSERT INTO starfish_store SELECT 1, 0 WHERE NOT EXISTS (SELECT FROM starfish_store);";

const STORE: &str = "SELECT version, number FROM starfish_store";

const GET: &str = "SELECT value FROM starfish_entries WHERE key = $1";

const RANGE: &str =
    "SELECT key, value FROM starfish_entries WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3";

/// Applies all changes if the store has the expected number. Returns the number of stores changed, 0 or 1.
const CHANGE: &str = "
    WITH store AS (UPDATE starfish_store SET number = $2 WHERE number = $1 RETURNING number),
        removed AS (DELETE FROM starfish_entries WHERE key = ANY($5) AND EXISTS (SELECT FROM store)),
        put AS (
            INSERT INTO starfish_entries SELECT * FROM unnest($3::bytea[], $4::bytea[])
            WHERE EXISTS (SELECT FROM store)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
        )
    SELECT count(*) FROM store";

/// Time for which to retry while a server restarts, or has not yet noticed the end of the last session.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Time for which cached entries are valid without contact to the server: as long as lock leases. A server ends the
/// session of a disconnected node, and then another node may use the store.
const BELIEVED: Duration = Duration::from_secs(5);

/// Limit of cached entries in bytes, counting keys and values.
const REMEMBERED_BYTES_MAX: usize = 256 << 20;

/// Database of a server.
pub(super) struct Postgres {
    config: Config,
    /// Name for error messages, without a password.
    what: String,
    session: RefCell<Option<Client>>,
    /// Number of the store after the last statement.
    number: Cell<Option<i64>>,
    /// Number of the store instead, if the last statement was executed: the server has not confirmed this.
    unsure: Cell<Option<i64>>,
    remembered: RefCell<CachedEntries>,
    /// Time of the last answer of the server.
    answered: Cell<Option<Instant>>,
    /// Time of the first failed attempt, if the server has been unreachable for too long and has not answered since.
    given_up: Cell<Option<Instant>>,
    run: Run,
    reports: Reports,
}

/// Entries as last read or written; `None` for a missing entry.
#[derive(Default)]
struct CachedEntries {
    entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl CachedEntries {
    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        let (added, length) = (bytes(&value), key.len());
        match self.entries.insert(key, value) {
            Some(before) => self.bytes -= bytes(&before),
            None => self.bytes += length,
        }
        self.bytes += added;
        if self.bytes > REMEMBERED_BYTES_MAX {
            // Some entries are then read once more.
            *self = CachedEntries::default();
        }
    }
}

/// Reason for which an operation failed.
enum Fault {
    /// The session has ended. Another session may succeed.
    Lost(Box<Error>),
    /// Another session would fail too.
    Refused(Box<Error>),
}

impl Postgres {
    /// Creates the database at this address, `postgresql://USER@HOST/DATABASE`. Connects on first use.
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

    fn try_commit(
        &self,
        all: &mut [Box<dyn ErasedTransaction>],
        is_flush: bool,
    ) -> std::result::Result<(), Fault> {
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

    /// Applies changes.
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
                        // The outcome is unknown; the next session starts from the state found then.
                        fault => {
                            self.unsure.set(Some(number));
                            *self.remembered.borrow_mut() = CachedEntries::default();
                            return Err(Fault::Refused(fault.into_error()));
                        }
                    }
                }
                if self.number.get() != Some(number) {
                    // The statement was not executed, and entries read before may have changed.
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
        let why = "it was changed by another process: another agent uses it, or it was restored".to_owned();
        Err(Fault::Refused(Error::Io { what: self.what.clone(), why }.into()))
    }

    /// Starts a session unless there is one. Validates the number of the store, unless the cache is still trusted.
    fn connect(&self, is_believed: bool) -> std::result::Result<(), Fault> {
        let known = self.number.get();
        if is_believed && self.session.borrow().is_some() && known.is_some() {
            return Ok(());
        }
        let expected: Vec<i64> = known.into_iter().chain(self.unsure.get()).collect();
        self.connect_knowing(&expected)
    }

    /// Starts a session unless there is one. Expects the store at one of these numbers, if any.
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
            let why =
                format!("it has version {version}, and this program supports {VERSION}: update Starfish");
            return Err(Fault::Refused(Error::Io { what: self.what.clone(), why }.into()));
        }
        if !expected.is_empty() && !expected.contains(&number) {
            self.note_other_run()?;
        }
        self.number.set(Some(number));
        self.unsure.set(None);
        Ok(())
    }

    /// Records that the store is not in the state in which this node left it.
    fn note_other_run(&self) -> std::result::Result<(), Fault> {
        *self.remembered.borrow_mut() = CachedEntries::default();
        let run = draw("the number of a run of the metadata store").map_err(Fault::Refused)?;
        self.run.store(run, Ordering::Relaxed);
        self.reports.changed_by_others(format!(
            "{} is not in the state in which this agent left it: a failover or a restored backup lost the \
             last changes of names, or another agent made changes",
            self.what
        ));
        Ok(())
    }

    /// Starts a session, which holds the lock, and creates missing tables.
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
            "another agent uses it: stop that agent, or wait until the server notices that it disconnected";
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
            // Classes of PostgreSQL's error codes: connection failures, and operator interventions.
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
    /// Each commit is in stable storage. Before a flush, the number shows if the store is as this node left it. If the
    /// commit fails because the server does not answer for long, its changes may still have been applied.
    fn commit(&self, all: &mut [Box<dyn ErasedTransaction>], is_flush: bool) -> Result<()> {
        // After one timeout, later commits do not wait as long again until the server has answered.
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

    /// True if the server was unreachable for too long, and has not answered since.
    fn is_away(&self) -> bool {
        self.given_up.get().is_some()
    }

    /// Ends the session, which releases the lock.
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

/// Entries of the store, and the reason of a failed read.
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

/// Enables TCP keepalive, unless the address configures it: a server that vanishes during a request is detected after
/// [`PATIENCE`].
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

/// Returns the name of the store for error messages.
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

/// Appends the causes of an error, which the library's messages omit.
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
    fn keepalive_settings_in_the_address_of_a_server_are_respected() {
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
