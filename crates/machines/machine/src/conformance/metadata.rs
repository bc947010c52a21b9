//! Laws of metadata stores.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::task::Poll;

use super::{Testbed, error, ok};
use crate::{
    Duration, Error, METADATA_KEY_BYTES_MAX, METADATA_VALUE_BYTES_MAX, Machine, MetadataEntry, MetadataStore,
    Result, TaskGroup, Transaction,
};

/// Transactions of many tasks are serial: each sees the changes of all earlier transactions.
pub fn transactions_of_many_tasks_are_serial(testbed: &impl Testbed) {
    const TASKS: u64 = 8;
    const EACH: u64 = 10;
    ok(testbed.run(1, |nodes| async move {
        let (machine, group) = (nodes[0].clone(), TaskGroup::<Box<Error>>::new());
        for task in 0..TASKS {
            let store = store_of(&machine);
            group.spawn(&machine, "transactions", async move {
                for number in 0..EACH {
                    store
                        .transact(move |t| Ok(Ok::<_, ()>(count(t, &[task, number])?)))
                        .await?
                        .expect("kept");
                }
                Ok(())
            });
        }
        ok(group.join().await);
        let entries = all_entries(&store_of(&machine)).await;
        let places: Vec<u64> = entries.iter().map(|(_, value)| number_of(value)).collect();
        assert_eq!(entries.len() as u64, 1 + TASKS * EACH);
        let mut counted = places[1..].to_vec();
        counted.sort_unstable();
        assert_eq!((places[0], counted), (TASKS * EACH, (0..TASKS * EACH).collect()));
        // The transactions of one task are in the order of their calls, because the task waited for each.
        assert!(places[1..].chunks(EACH as usize).all(|of_task| of_task.is_sorted()));
    }));
}

/// Returns the store of a testbed's node.
fn store_of<M: Machine>(machine: &M) -> M::Metadata {
    machine.metadata().expect("a testbed's nodes have a store").clone()
}

fn number_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().expect("a number"))
}

/// Stores an entry under `name` whose value is the number of earlier entries.
fn count(t: &mut dyn Transaction, name: &[u64]) -> Result<u64> {
    let before = t.get(b"")?.map_or(0, |value| number_of(&value));
    let key: Vec<u8> = name.iter().flat_map(|number| number.to_be_bytes()).collect();
    t.put(&key, &before.to_be_bytes())?;
    t.put(b"", &(before + 1).to_be_bytes())?;
    Ok(before)
}

async fn all_entries(store: &impl MetadataStore) -> Vec<MetadataEntry> {
    let all =
        store.transact(|t| Ok(Ok::<_, ()>(t.range(b"", &[0xff; METADATA_KEY_BYTES_MAX], usize::MAX)?)));
    ok(all.await).expect("kept")
}

/// A rejected or failed transaction changes nothing, and its result is returned unchanged.
pub fn a_rejected_transaction_changes_nothing(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let store = store_of(&nodes[0]);
        let refused = store.transact(|t| {
            count(t, &[1])?;
            Ok(Err::<(), _>("not today"))
        });
        assert_eq!(refused.await, Ok(Err("not today")));
        assert_eq!(all_entries(&store).await, []);
        assert_eq!(store.transact(|t| Ok(Ok::<_, ()>(count(t, &[2])?))).await, Ok(Ok(0)));
        let failure = Error::Io { what: "a body".into(), why: "on purpose".into() };
        let returned = failure.clone();
        let failing = store.transact::<(), ()>(move |t| {
            t.remove(b"")?;
            Err(returned.clone().into())
        });
        assert_eq!(error(failing.await), failure);
        let too_long = store.transact(|t| {
            t.remove(b"")?;
            Ok(Ok::<_, ()>(t.put(&[7; METADATA_KEY_BYTES_MAX + 1], b"")?))
        });
        assert!(error(too_long.await).to_string().contains("513"));
        assert_eq!(all_entries(&store).await.len(), 2);
    }));
}

/// Entries are sorted by the bytes of their keys, and a range includes its first key and excludes its last. A range
/// also shows the transaction its own changes.
pub fn entries_are_sorted_by_their_keys(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let store = store_of(&nodes[0]);
        let longest = (vec![9; METADATA_KEY_BYTES_MAX], vec![8; METADATA_VALUE_BYTES_MAX]);
        let given = longest.clone();
        let filled = store.transact(move |t| {
            for key in [&b"b"[..], b"a\0", b"", b"a", b"\xff", b"b\0\xff", b"gone"] {
                t.put(key, key)?;
            }
            t.put(&given.0, &given.1)?;
            Ok(Ok::<_, ()>(t.remove(b"gone")?))
        });
        assert_eq!(ok(filled.await), Ok(()));
        let keys = |entries: &[MetadataEntry]| entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let all = all_entries(&store).await;
        let sorted = [&b""[..], &longest.0, b"a", b"a\0", b"b", b"b\0\xff", b"\xff"];
        assert_eq!(keys(&all), sorted);
        assert!(all.iter().all(|entry| entry.0 == entry.1 || *entry == longest));
        let seen = store.transact(|t| {
            t.put(b"aa", b"new")?;
            t.remove(b"b")?;
            let some = t.range(b"a", b"b\0\xff", 2)?;
            Ok(Ok::<_, ()>((some, t.range(b"a", b"\xff", 9)?, t.range(b"b", b"a", 9)?, t.get(b"b")?)))
        });
        let (some, more, none, removed) = ok(seen.await).expect("kept");
        assert_eq!(keys(&some), [&b"a"[..], b"a\0"]);
        assert_eq!(keys(&more), [&b"a"[..], b"a\0", b"aa", b"b\0\xff"]);
        assert_eq!((none, removed), (vec![], None));
        ok(store.flush().await);
        assert_eq!(all_entries(&store).await.len(), sorted.len());
    }));
}

/// A read-only transaction sees complete commits, also while other transactions are in flight. Its rejection or failure
/// is returned unchanged. Like any other transaction, it knows the incarnation of the store.
pub fn a_read_only_transaction_sees_committed_changes(testbed: &impl Testbed) {
    const TRANSACTIONS: u64 = 20;
    ok(testbed.run(1, |nodes| async move {
        let (machine, store) = (nodes[0].clone(), store_of(&nodes[0]));
        let counted = || store.look(|t| Ok(Ok::<_, ()>(t.get(b"")?.map(|value| number_of(&value)))));
        assert_eq!(counted().await, Ok(Ok(None)));
        let group = TaskGroup::<Box<Error>>::new();
        let counting = store.clone();
        group.spawn(&machine, "transactions", async move {
            for number in 0..TRANSACTIONS {
                counting.transact(move |t| Ok(Ok::<_, ()>(count(t, &[number])?))).await?.expect("kept");
            }
            Ok(())
        });
        let mut seen = 0;
        while seen < TRANSACTIONS {
            let look = store.look(|t| {
                let all = t.range(b"", &[0xff; METADATA_KEY_BYTES_MAX], usize::MAX)?;
                Ok(Ok::<_, ()>((all.len() as u64, t.get(b"")?.map_or(0, |value| number_of(&value)))))
            });
            let (entries, now) = ok(look.await).expect("kept");
            assert!(now >= seen && entries == if now == 0 { 0 } else { 1 + now }, "{entries} at {now}");
            seen = now;
            // Without this pause the lookups would leave no processor time to other tasks.
            machine.sleep_until(machine.now() + Duration::from_micros(50)).await;
        }
        ok(group.join().await);
        let run = Ok(Ok(store.run()));
        assert_eq!(store.look(|t| Ok(Ok::<_, ()>(t.run()))).await, run);
        assert_eq!(store.transact(|t| Ok(Ok::<_, ()>(t.run()))).await, run);
        assert_eq!(store.look(|_| Ok(Err::<(), _>("not today"))).await, Ok(Err("not today")));
        let failure = Error::Io { what: "a body".into(), why: "on purpose".into() };
        let returned = failure.clone();
        let failing = store.look::<(), ()>(move |_| Err(returned.clone().into()));
        assert_eq!(error(failing.await), failure);
        assert_eq!(counted().await, Ok(Ok(Some(TRANSACTIONS))));
    }));
}

/// A transaction whose caller stops waiting is executed completely or not at all, and the store continues to work.
pub fn a_cancelled_transaction_is_done_completely_or_not_at_all(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, store) = (nodes[0].clone(), store_of(&nodes[0]));
        for number in 0..5 {
            let mut transaction = Box::pin(store.transact(move |t| Ok(Ok::<_, ()>(count(t, &[number])?))));
            let mut flush = Box::pin(store.flush());
            poll_fn(|context| {
                let _ = (transaction.as_mut().poll(context), flush.as_mut().poll(context));
                Poll::Ready(())
            })
            .await;
        }
        machine.sleep_until(machine.now() + Duration::from_millis(5)).await;
        ok(store.flush().await);
        let entries = all_entries(&store).await;
        let counted = entries.first().map_or(0, |(_, value)| number_of(value));
        assert_eq!(counted, entries.len().saturating_sub(1) as u64);
    }));
}

/// Runs one transaction for each of `numbers` concurrently, and waits for all of them. Used before a crash.
pub async fn make_counted_transactions(store: &impl MetadataStore, numbers: Range<u64>) {
    let begin = |number| Box::pin(store.transact(move |t| Ok(Ok::<_, ()>(count(t, &[number])?))));
    let mut all: Vec<_> = numbers.map(begin).collect();
    poll_fn(|context| {
        all.retain_mut(|transaction| match transaction.as_mut().poll(context) {
            Poll::Ready(done) => {
                ok(done).expect("kept");
                false
            }
            Poll::Pending => true,
        });
        if all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Returns the number of the [counted transactions](make_counted_transactions) that survived a crash.
///
/// # Panics
/// If the surviving transactions are not the first ones, or a surviving transaction is incomplete.
pub async fn counted_transactions_left(store: &impl MetadataStore) -> u64 {
    let entries = all_entries(store).await;
    let Some(((_, counted), names)) = entries.split_first() else { return 0 };
    let mut places: Vec<u64> = names.iter().map(|(_, place)| number_of(place)).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        (0..number_of(counted)).collect::<Vec<_>>(),
        "the first transactions survived, and each completely"
    );
    number_of(counted)
}
