//! Metadata store of a real node: its contents after kills and power cuts, rejected operations, and the effect of
//! defects.

mod common;

use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::Reports;
use machine::conformance::{counted_transactions_left, make_counted_transactions};
use machine::{Error, Machine, MetadataStore, NodeId, NodePart, Result};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use proptest::prelude::*;
use real::{Limits, Metadata, MetadataCopies, MetadataPlace, Report, Settings};
use rusqlite::Connection;
use tempfile::TempDir;

const FILE: &str = "namespace.db";
const JOURNAL: &str = "namespace.db-wal";

/// Runs `test` on the store in this directory.
fn on_store<T: 'static, F: Future<Output = T> + 'static>(
    directory: &Path,
    reports: &Reports,
    test: impl FnOnce(Metadata) -> F,
) -> T {
    let metadata = Some(MetadataPlace::Directory(directory.to_owned()));
    let reporter = reports.reporter();
    let settings = Settings { metadata, reporter, ..Settings::new(NodeId(1), common::stranger::keys()) };
    let test = |machine: real::RealMachine| test(machine.metadata().expect("it has one").clone());
    real::run(settings, test).expect("it starts")
}

fn left_in(directory: &Path) -> u64 {
    on_store(directory, &Reports::default(), |store| async move { counted_transactions_left(&store).await })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("room");
    for name in [FILE, JOURNAL] {
        fs::copy(from.join(name), to.join(name)).expect("it exists");
    }
}

fn copy_of_file(from: &Path, to: &Path) {
    fs::create_dir(to).expect("room");
    fs::copy(from.join(FILE), to.join(FILE)).expect("it exists");
}

fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let directory = place.path().join("store");
    (place, directory)
}

/// Files of a killed process keep its writes, so a copy of the files equals the state after a kill.
#[test]
fn a_killed_node_loses_no_transaction() {
    let (place, directory) = place();
    let from = directory.clone();
    on_store(&directory, &Reports::default(), |store| async move {
        for (number, copied) in [0, 7, 60, 200].into_iter().zip(["a", "b", "c", "d"]) {
            make_counted_transactions(&store, counted_transactions_left(&store).await..number + 1).await;
            copy(&from, &place.path().join(copied));
            // Opened on another thread, because this one has a runtime already.
            let copied = place.path().join(copied);
            let left = std::thread::spawn(move || left_in(&copied)).join().expect("it opens");
            assert_eq!(left, number + 1);
        }
    });
}

/// After a power cut the journal may lack unflushed writes, from any point on.
#[test]
fn a_power_cut_keeps_flushed_transactions_and_a_prefix_of_later_ones() {
    let (place, directory) = place();
    let from = directory.clone();
    let (flushed_bytes, all_bytes) = on_store(&directory, &Reports::default(), |store| async move {
        make_counted_transactions(&store, 0..10).await;
        store.flush().await.expect("a medium");
        let bytes = || fs::metadata(from.join(JOURNAL)).expect("it exists").len();
        let flushed = bytes();
        for number in 10..30 {
            make_counted_transactions(&store, number..number + 1).await;
        }
        copy(&from, &place.path().join("copy"));
        let all = bytes();
        let copied = place.path().join("copy");
        std::thread::spawn(move || check_power_cuts(&copied, flushed, all)).join().expect("it holds");
        (flushed, all)
    });
    assert!(flushed_bytes < all_bytes, "{flushed_bytes} of {all_bytes}");
}

fn check_power_cuts(whole: &Path, flushed: u64, all: u64) {
    let mut found = Vec::new();
    let step = (all - flushed) / 40;
    for cut in (flushed..=all).step_by(step as usize) {
        for garbage in [0, 9000] {
            let torn = whole.with_file_name(format!("cut-{cut}-{garbage}"));
            copy(whole, &torn);
            let journal = OpenOptions::new().write(true).open(torn.join(JOURNAL)).expect("it exists");
            journal.set_len(cut).expect("a file");
            journal.write_all_at(&vec![0xa5; garbage], cut).expect("room");
            let left = left_in(&torn);
            assert!((10..=30).contains(&left), "{left} after a cut at {cut}");
            found.push(left);
        }
    }
    assert!(found.is_sorted() && found[0] == 10 && found.last() == Some(&30), "{found:?}");
}

#[test]
fn two_nodes_cannot_share_a_store() {
    let (_place, directory) = place();
    let again = directory.clone();
    on_store(&directory, &Reports::default(), |store| async move {
        make_counted_transactions(&store, 0..1).await;
        let other = std::thread::spawn(move || outcome_of_reading(&again).0).join().expect("it answers");
        let error = *other.expect_err("the first has it");
        assert!(matches!(error, Error::InUse { part: NodePart::Metadata, .. }), "{error:?}");
        assert_eq!(counted_transactions_left(&store).await, 1);
    });
    assert_eq!(left_in(&directory), 1);
}

/// Returns the number of entries in a store, or the error of reading them; and the reports.
fn outcome_of_reading(directory: &Path) -> (Result<usize>, Reports) {
    let reports = Reports::default();
    let read = on_store(directory, &reports, |store| async move {
        let all = store.transact(|t| Ok(Ok::<_, ()>(t.range(b"", &[0xff; 10], usize::MAX)?.len())));
        all.await.map(|count| count.expect("kept"))
    });
    (read, reports)
}

#[test]
fn a_foreign_database_is_rejected_and_stays_unchanged() {
    let (_place, directory) = place();
    left_in(&directory);
    assert!(!directory.exists(), "nothing was put");
    fs::create_dir(&directory).expect("room");
    let file = directory.join(FILE);
    let refused = |expected: &str| {
        let before = fs::read(&file).expect("it exists");
        let (outcome, reports) = outcome_of_reading(&directory);
        let text = outcome.expect_err("it is refused").to_string();
        assert!(text.contains(expected) && text.contains("namespace.db"), "{text}");
        assert!(reports.has_error_with(expected));
        assert!(fs::read(&file).expect("it exists") == before);
    };
    fs::write(&file, "a letter to somebody, which is longer than nothing\n".repeat(100)).expect("room");
    refused("not a database");
    fs::remove_file(&file).expect("it exists");
    let of_others = Connection::open(&file).expect("a database");
    of_others.execute_batch("CREATE TABLE theirs (dear INTEGER)").expect("room");
    drop(of_others);
    refused("of another program");
    fs::remove_file(&file).expect("it exists");
    on_store(&directory, &Reports::default(), |store| async move {
        make_counted_transactions(&store, 0..1).await;
    });
    let newer = Connection::open(&file).expect("a database");
    newer.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA user_version = 2").expect("room");
    drop(newer);
    refused("update Starfish");
}

#[test]
fn a_replaced_directory_is_not_mistaken_for_an_empty_store() {
    let (place, directory) = place();
    let path = place.path().to_owned();
    let outcome = on_store(&directory, &Reports::default(), |store| async move {
        let away = path.with_extension("away");
        fs::rename(&path, &away).expect("the same file system");
        fs::create_dir(&path).expect("room");
        let read = store.transact(|t| Ok(Ok::<_, ()>(t.get(b"")?))).await;
        fs::remove_dir(&path).expect("it is empty");
        fs::rename(&away, &path).expect("the same file system");
        read
    });
    assert!(outcome.expect_err("it is refused").to_string().contains("was replaced"));
}

#[test]
fn a_panic_fails_its_transaction_only() {
    let (_place, directory) = place();
    let reports = Reports::default();
    on_store(&directory, &reports, |store| async move {
        make_counted_transactions(&store, 0..5).await;
        let panicking = store.transact::<(), ()>(|t| {
            t.put(b"half", b"done")?;
            panic!("a defect on purpose")
        });
        // Both wait for the thread at the same time.
        let others = make_counted_transactions(&store, 5..60);
        let (mut panicking, mut others) = (Box::pin(panicking), Box::pin(others));
        let mut outcome = None;
        std::future::poll_fn(|context| {
            if outcome.is_none()
                && let std::task::Poll::Ready(ended) = panicking.as_mut().poll(context)
            {
                outcome = Some(ended);
            }
            others.as_mut().poll(context)
        })
        .await;
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => panicking.await,
        };
        let error = *outcome.expect_err("it has panicked");
        assert!(matches!(&error, Error::Failed { why, .. } if why.contains("on purpose")), "{error:?}");
        assert_eq!(counted_transactions_left(&store).await, 60);
    });
    let is_defect = |report: &Report| matches!(report, Report::Defect { part: "a transaction", .. });
    assert_eq!(reports.count(is_defect), 1);
}

/// Returns the settings of a node whose store is copied at this interval.
fn copied(directory: &Path, to: &Path, every: Duration, reports: &Reports) -> Settings {
    Settings {
        metadata: Some(MetadataPlace::Directory(directory.to_owned())),
        metadata_copies: Some(MetadataCopies { directory: to.to_owned(), every }),
        reporter: reports.reporter(),
        ..Settings::new(NodeId(1), common::stranger::keys())
    }
}

#[test]
fn copies_are_made_of_a_store_in_use_and_on_close() {
    let (place, directory) = place();
    let copies = place.path().join("copies");
    fs::create_dir(&copies).expect("room");
    let reports = Reports::default();
    let settings = copied(&directory, &copies, Duration::from_millis(20), &reports);
    let found = copies.clone();
    real::run(settings, |machine| async move {
        let store = machine.metadata().expect("it has one").clone();
        assert_eq!(fs::read_dir(&found).expect("ours").count(), 0, "there is nothing to copy");
        // Only one transaction: with several, a copy might be made between them and another one after them.
        make_counted_transactions(&store, 0..1).await;
        let copy = found.join(FILE);
        common::until(&machine, || copy.exists()).await;
        let first = fs::metadata(&copy).expect("it exists").ino();
        machine.sleep_until(machine.now() + machine::Duration::from_millis(100)).await;
        assert_eq!(fs::metadata(&copy).expect("it exists").ino(), first, "nothing has changed");
        make_counted_transactions(&store, 1..7).await;
        common::until(&machine, || fs::metadata(&copy).is_ok_and(|copy| copy.ino() != first)).await;
        // The disk of the copies is unavailable for a while.
        fs::rename(&found, found.with_extension("away")).expect("the same file system");
        make_counted_transactions(&store, 7..8).await;
        let reported = reports.clone();
        common::until(&machine, || reported.has_error_with("copies")).await;
        fs::rename(found.with_extension("away"), &found).expect("the same file system");
        make_counted_transactions(&store, 8..9).await;
    })
    .expect("it starts");
    // The store is lost, and a copy replaces it.
    fs::remove_dir_all(&directory).expect("it exists");
    copy_of_file(&copies, &directory);
    assert_eq!(left_in(&directory), 9);
    assert_eq!(fs::read_dir(&copies).expect("ours").count(), 1);
}

#[test]
fn a_node_waits_for_the_last_copy_after_its_network_has_drained() {
    let (place, directory) = place();
    let copies = place.path().join("copies");
    fs::create_dir(&copies).expect("room");
    let settings = copied(&directory, &copies, Duration::from_secs(3600), &Reports::default());
    let settings = Settings { limits: Limits { drain: Duration::ZERO, ..Limits::default() }, ..settings };
    real::run(settings, |machine| async move {
        make_counted_transactions(machine.metadata().expect("it has one"), 0..9).await;
    })
    .expect("it starts");
    assert!(copies.join(FILE).exists());
}

/// A pipe without a reader blocks on opening, like a server that has disconnected.
#[test]
fn a_blocked_copy_is_reported_and_delays_no_transaction() {
    let (place, directory) = place();
    let copies = place.path().join("copies");
    fs::create_dir(&copies).expect("room");
    let pipe = copies.join("namespace.part");
    mkfifo(&pipe, Mode::S_IRWXU).expect("room");
    let reports = Reports::default();
    let settings = copied(&directory, &copies, Duration::from_millis(20), &reports);
    real::run(settings, |machine| async move {
        let store = machine.metadata().expect("it has one").clone();
        make_counted_transactions(&store, 0..1).await;
        common::until(&machine, || reports.has_error_with("still in progress")).await;
        make_counted_transactions(&store, 1..9).await;
        assert_eq!(counted_transactions_left(&store).await, 9);
        // The pipe responds again, but cannot store anything.
        File::open(&pipe).and_then(|mut pipe| pipe.read_to_end(&mut Vec::new())).expect("a copy");
        common::until(&machine, || copies.join(FILE).exists()).await;
    })
    .expect("it starts");
    let found = place.path().join("copies");
    assert_eq!(fs::read_dir(&found).expect("ours").count(), 1);
    fs::remove_dir_all(&directory).expect("it exists");
    copy_of_file(&found, &directory);
    assert_eq!(left_in(&directory), 9);
}

#[test]
fn copies_never_replace_the_store() {
    let (place, directory) = place();
    on_store(&directory, &Reports::default(), |store| async move {
        make_counted_transactions(&store, 0..1).await;
    });
    let same = place.path().join("store/../store");
    for (to, expected) in [(same, "the store itself"), (place.path().join("none"), "does not exist")] {
        let settings = copied(&directory, &to, Duration::from_secs(60), &Reports::default());
        let refused = real::run(settings, |_| async {}).expect_err("it is refused");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

/// Returns a closed store of 300 entries.
fn filled() -> (TempDir, PathBuf) {
    let (place, directory) = place();
    on_store(&directory, &Reports::default(), |store| async move {
        let fill = store.transact(|t| {
            (0..300).try_for_each(|number| t.put(&key(number), &value(number)))?;
            Ok(Ok::<_, ()>(()))
        });
        fill.await.expect("room").expect("kept");
    });
    (place, directory)
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; (number as usize * 37) % 6000]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Arbitrary changed bytes of the file are never read as valid contents, and the node continues.
    #[test]
    fn no_wrong_entry_is_read_from_a_damaged_file(
        places in proptest::collection::vec((any::<u64>(), any::<u8>(), 1_usize..64), 1..5),
    ) {
        let (_place, directory) = filled();
        let file = OpenOptions::new().write(true).open(directory.join(FILE)).expect("it exists");
        let bytes = file.metadata().expect("a file").len();
        for (at, byte, count) in places {
            let at = at % bytes;
            file.write_all_at(&vec![byte; count.min((bytes - at) as usize)], at).expect("room");
        }
        on_store(&directory, &Reports::default(), |store| async move {
            let all = store.transact(|t| Ok(Ok::<_, ()>(t.range(b"", &[0xff; 10], 1000)?))).await;
            let singly = store.transact(|t| {
                Ok(Ok::<_, ()>((0..300).map(|number| t.get(&key(number))).collect::<Result<Vec<_>>>()?))
            });
            for (key, value) in all.map_or(vec![], |all| all.expect("kept")) {
                check(u64::from_be_bytes(key.try_into().expect("a key of ours")), &value);
            }
            for (number, value) in (0..).zip(singly.await.map_or(vec![], |all| all.expect("kept"))) {
                value.iter().for_each(|value| check(number, value));
            }
            // Both may succeed or fail.
            let _ = store.transact(|t| Ok(Ok::<_, ()>(t.put(b"new", b"value")?))).await;
            let _ = store.flush().await;
        });
    }
}

fn check(number: u64, found: &[u8]) {
    assert!(found == value(number), "the entry {number} is another one");
}

#[test]
fn a_damaged_entry_is_reported_and_others_are_readable() {
    let (_place, directory) = filled();
    let path = directory.join(FILE);
    let content = fs::read(&path).expect("it exists");
    // In the middle of the value of an entry that has a page alone.
    let damaged = 131;
    let run = vec![damaged; 1000];
    let at = content.windows(run.len()).position(|window| window == run).expect("it exists");
    let file: File = OpenOptions::new().write(true).open(&path).expect("it exists");
    file.write_all_at(b"x", at as u64 + 500).expect("room");
    let reports = Reports::default();
    on_store(&directory, &reports, |store| async move {
        let read = |number: u64| store.transact(move |t| Ok(Ok::<_, ()>(t.get(&key(number))?)));
        let error = *read(damaged.into()).await.expect_err("it is damaged");
        assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
        assert_eq!(read(130).await.expect("it is sound"), Ok(Some(value(130))));
    });
    assert!(reports.has_error_with("does not match its checksum"));
}
