//! Metadata store in a database of a real PostgreSQL server: conformance tests, a killed server, and another node that
//! uses the same database. Without a PostgreSQL server the tests are skipped, with a message.

mod common;
#[path = "common/postgres_server.rs"]
mod postgres_server;

use std::future::Future;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use common::{Reports, run_nodes};
use machine::conformance::{self, counted_transactions_left, make_counted_transactions};
use machine::{Error, Machine, MetadataStore, NodeId};
use postgres::{Client, NoTls};
use postgres_server::{Server, programs, signal};
use real::{Driver, Limits, Metadata, MetadataPlace, RealMachine, Report, Settings};

/// Runs `test` on the store at this address.
fn on_store<T: 'static, F: Future<Output = T> + 'static>(
    address: &str,
    test: impl FnOnce(Metadata) -> F,
) -> machine::Result<T> {
    on_reporting_store(address, &Reports::default(), test)
}

fn on_reporting_store<T: 'static, F: Future<Output = T> + 'static>(
    address: &str,
    reports: &Reports,
    test: impl FnOnce(Metadata) -> F,
) -> machine::Result<T> {
    let metadata = Some(MetadataPlace::Postgres(address.to_owned()));
    let settings = Settings {
        metadata,
        reporter: reports.reporter(),
        ..Settings::new(NodeId(1), common::stranger::keys())
    };
    real::run(settings, |machine: RealMachine| test(machine.metadata().expect("it has one").clone()))
}

/// Ends all sessions with the database of this address, like an administrator.
fn end_sessions(administrator: &mut Client, address: &str) {
    let database = address.rsplit('=').next().expect("its name");
    let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'");
    administrator.batch_execute(&end).expect("allowed");
}

/// Nodes with stores in databases of one server.
struct OnServer;

impl conformance::Testbed for OnServer {
    type Machine = RealMachine;

    fn run<T, F>(&self, nodes: usize, test: impl FnOnce(Vec<RealMachine>) -> F) -> machine::Result<T>
    where
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        static SERVER: OnceLock<Server> = OnceLock::new();
        let server = SERVER.get_or_init(|| Server::start().expect("it was there"));
        let adapt = |settings| Settings {
            metadata: Some(MetadataPlace::Postgres(server.new_database())),
            ..settings
        };
        run_nodes(Driver::default(), nodes as u64, &Reports::default(), adapt, test)
    }
}

#[test]
fn the_store_keeps_the_laws_of_metadata_stores() {
    if programs().is_none() {
        return;
    }
    conformance::transactions_of_many_tasks_are_serial(&OnServer);
    conformance::a_rejected_transaction_changes_nothing(&OnServer);
    conformance::entries_are_sorted_by_their_keys(&OnServer);
    conformance::a_cancelled_transaction_is_done_completely_or_not_at_all(&OnServer);
    conformance::a_read_only_transaction_sees_committed_changes(&OnServer);
}

#[test]
fn a_killed_server_loses_and_repeats_no_transaction() {
    let Some(mut server) = Server::start() else { return };
    let address = server.new_database();
    let working = {
        let address = address.clone();
        thread::spawn(move || {
            on_store(&address, |store| async move {
                let mut made = 0;
                let start = Instant::now();
                while start.elapsed() < Duration::from_secs(4) {
                    make_counted_transactions(&store, made..made + 20).await;
                    made += 20;
                    assert_eq!(counted_transactions_left(&store).await, made);
                }
                made
            })
        })
    };
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(700));
        server.kill();
    }
    let made = working.join().expect("all were carried out").expect("it starts");
    let left = on_store(&address, |store| async move { counted_transactions_left(&store).await });
    assert_eq!(left, Ok(made));
}

#[test]
fn a_database_serves_only_one_node_at_a_time() {
    let Some(server) = Server::start() else { return };
    let address = server.new_database();
    let (other, third) = (address.clone(), address.clone());
    let mut meddler = server.client("postgres");
    let of_store = address.clone();
    on_store(&address, |store| async move {
        make_counted_transactions(&store, 0..10).await;
        let second = thread::spawn(move || {
            on_store(&other, |store| async move { store.transact(|_| Ok(Ok::<_, ()>(()))).await })
        });
        let refused = second.join().expect("it is answered").expect("it starts").expect_err("it is in use");
        assert!(matches!(*refused, Error::InUse { .. }), "{refused}");
        // An administrator ends the session. The store continues, since no other node has used it since.
        end_sessions(&mut meddler, &of_store);
        make_counted_transactions(&store, 10..20).await;
        assert_eq!(counted_transactions_left(&store).await, 20);
    })
    .expect("it starts");
    // After the end of the first node, another one can use the store.
    let left = on_store(&third, |store| async move { counted_transactions_left(&store).await });
    assert_eq!(left, Ok(20));
}

#[test]
fn foreign_changes_are_detected_and_a_newer_version_is_rejected() {
    let Some(server) = Server::start() else { return };
    let address = server.new_database();
    let mut meddler = {
        let text = address.clone();
        on_store(&address, |store| async move { make_counted_transactions(&store, 0..10).await })
            .expect("it starts");
        Client::connect(&text, NoTls).expect("a session")
    };
    let put = |store: Metadata| async move {
        store.transact(|t| Ok(Ok::<_, ()>(t.put(b"late", b"")?))).await.map(|kept| kept.expect("kept"))
    };
    let refused = on_store(&address, |store| async move {
        assert_eq!(counted_transactions_left(&store).await, 10);
        meddler.batch_execute("UPDATE starfish_store SET number = number + 1").expect("allowed");
        let refused = put(store.clone()).await.expect_err("another session has changed it");
        assert!(refused.to_string().contains("it was changed by another process"), "{refused}");
        // The store continues from the present contents.
        put(store).await.expect("no other session has changed it");
        meddler.batch_execute("UPDATE starfish_store SET version = 7").expect("allowed");
    });
    refused.expect("it starts");
    let newer = on_store(&address, |store| async move { put(store).await }).expect("it starts");
    let newer = newer.expect_err("it is of a later program");
    assert!(
        newer.to_string().contains("version 7") && newer.to_string().contains("update Starfish"),
        "{newer}"
    );
}

/// A server that takes over, or a restored backup, may lack the last commits: the store then has an earlier number. The
/// next user continues with the present contents, in a new incarnation.
#[test]
fn a_store_changed_by_others_gets_a_new_incarnation() {
    let Some(server) = Server::start() else { return };
    let address = server.new_database();
    let text = address.clone();
    let mut administrator = server.client("postgres");
    let reports = Reports::default();
    let reported = reports.clone();
    let test = |store: Metadata| async move {
        make_counted_transactions(&store, 0..10).await;
        let mut runs = vec![store.run()];
        let mut meddler = Client::connect(&text, NoTls).expect("a session");
        meddler.batch_execute("CREATE TABLE kept AS TABLE starfish_store").expect("allowed");
        meddler.batch_execute("CREATE TABLE entries AS TABLE starfish_entries").expect("allowed");
        let put_back = "UPDATE starfish_store SET number = kept.number FROM kept; TRUNCATE starfish_entries;
            INSERT INTO starfish_entries TABLE entries";
        let in_run =
            async || store.transact(|t| Ok(Ok::<_, ()>(t.run()))).await.expect("there").expect("kept");
        make_counted_transactions(&store, 10..20).await;
        assert_eq!((in_run().await, store.run()), (runs[0], runs[0]));
        // Another server has taken over.
        meddler.batch_execute(put_back).expect("allowed");
        end_sessions(&mut administrator, &text);
        assert_eq!(counted_transactions_left(&store).await, 10);
        runs.push(in_run().await);
        assert_eq!(store.run(), runs[1]);
        // A backup is restored during the session: a flush detects this.
        make_counted_transactions(&store, 10..15).await;
        let mut meddler = Client::connect(&text, NoTls).expect("a session");
        meddler.batch_execute(put_back).expect("allowed");
        store.flush().await.expect("it answers");
        runs.push(store.run());
        assert_eq!(counted_transactions_left(&store).await, 10);
        // Answers from the cache are validated after a while.
        make_counted_transactions(&store, 10..15).await;
        meddler.batch_execute(put_back).expect("allowed");
        assert_eq!(in_run().await, runs[2], "it is believed to be as it was");
        thread::sleep(Duration::from_secs(5));
        runs.push(in_run().await);
        runs.sort_unstable();
        assert!(runs.is_sorted_by(|one, next| one < next), "{runs:?}");
    };
    on_reporting_store(&address, &reports, test).expect("it starts");
    let is_change = |report: &Report| matches!(report, Report::MetadataChanged { .. });
    assert_eq!(reported.count(is_change), 3);
}

#[test]
fn a_missing_server_is_reported() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let address = format!("host={} user=starfish dbname=none", place.path().display());
    let socket = place.path().join(".s.PGSQL.5432");
    let message = on_store(&address, |store| async move {
        let first = store.transact(|_| Ok(Ok::<_, ()>(()))).await.expect_err("no server runs");
        // After the first call has failed, each call makes only one attempt. The listener closes every connection.
        let listener = UnixListener::bind(&socket).expect("a socket");
        let attempts = Arc::<AtomicUsize>::default();
        let counted = attempts.clone();
        thread::spawn(move || listener.incoming().for_each(|_| _ = counted.fetch_add(1, Ordering::SeqCst)));
        for made in 1..=3 {
            store.transact(|_| Ok(Ok::<_, ()>(()))).await.expect_err("no server runs");
            assert_eq!(attempts.load(Ordering::SeqCst), made);
        }
        first.to_string()
    });
    let message = message.expect("it starts");
    assert!(message.contains("metadata store none at") && message.contains("No such file"), "{message}");
    let wrong = on_store("nonsense", |_| async {}).expect_err("no address");
    assert!(wrong.to_string().contains("the address of a PostgreSQL database"), "{wrong}");
}

/// SIGSTOP stops the server's process of the session, like a stalled disk; the kernel keeps the connection alive.
#[test]
fn a_wait_for_a_silent_connected_server_ends() {
    let Some(server) = Server::start() else { return };
    let address = server.new_database();
    let metadata = Some(MetadataPlace::Postgres(address.clone()));
    let limits = Limits { silence: Duration::from_millis(300), ..Limits::default() };
    let settings = Settings { metadata, limits, ..Settings::new(NodeId(1), common::stranger::keys()) };
    let mut administrator = server.client("postgres");
    let test = |machine: RealMachine| async move {
        let store = machine.metadata().expect("it has one").clone();
        make_counted_transactions(&store, 0..3).await;
        let database = address.rsplit('=').next().expect("its name");
        let find = format!("SELECT pid FROM pg_stat_activity WHERE datname = '{database}'");
        let process: i32 = administrator.query_one(&find, &[]).expect("one session").get(0);
        signal("STOP", &process.to_string());
        for _ in 0..2 {
            let error = store.flush().await.expect_err("it is silent").to_string();
            assert!(error.contains(database) && error.contains("has not answered for"), "{error}");
        }
        signal("CONT", &process.to_string());
        // The limit only bounds the time of a hanging test.
        let start = Instant::now();
        while let Err(error) = store.flush().await {
            assert!(start.elapsed() < Duration::from_secs(20), "{error}");
            machine.sleep_until(machine.now() + machine::Duration::from_millis(50)).await;
        }
        assert_eq!(counted_transactions_left(&store).await, 3);
    };
    real::run(settings, test).expect("it starts");
}
