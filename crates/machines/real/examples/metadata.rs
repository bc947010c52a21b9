//! Measures the metadata store with transactions that read an entry of 200 bytes and write another.
//!
//! `cargo run --release -p real --example metadata -- [DIRECTORY | postgresql://USER@HOST/DATABASE]`; without an
//! argument, in a temporary directory.

use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use machine::{Machine, MetadataStore, NodeId, Result};
use real::{Keys, Metadata, MetadataPlace, Settings};

/// Number of entries in the store before the measurement.
const ENTRIES: u64 = 100_000;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let named = std::env::args().nth(1).unwrap_or(place.path().display().to_string());
    let metadata = match named.starts_with("postgresql://") {
        true => MetadataPlace::Postgres(named.clone()),
        false => MetadataPlace::Directory(Path::new(&named).join("metadata")),
    };
    let settings = Settings { metadata: Some(metadata), ..Settings::new(NodeId(1), Keys::draw()?) };
    real::run(settings, move |machine| async move {
        let store = machine.metadata().expect("it has one").clone();
        measure_all(&store, &named).await
    })?
}

async fn measure_all(store: &Metadata, place: &str) -> Result<()> {
    println!("{ENTRIES} entries in {place}");
    for first in (0..ENTRIES).step_by(1000) {
        let fill = store.transact(move |t| {
            (first..first + 1000).try_for_each(|number| t.put(&key(number), &[7; 200]))?;
            Ok(Ok::<_, ()>(()))
        });
        fill.await?.expect("kept");
    }
    store.flush().await?;
    for under_way in [1, 8, 64] {
        let rate = measure(under_way, |number| transaction(store, number)).await?;
        println!("{under_way:2} under way: {rate:8.0} transactions/s");
    }
    for under_way in [1, 8, 64] {
        let flushed = |number| async move {
            transaction(store, number).await?;
            store.flush().await
        };
        let rate = measure(under_way, flushed).await?;
        println!("{under_way:2} under way: {rate:8.0} transactions/s, each of them flushed");
    }
    Ok(())
}

/// Reads an entry, and writes another one.
async fn transaction(store: &Metadata, number: u64) -> Result<()> {
    let done = store.transact(move |t| {
        t.get(&key(number))?;
        Ok(Ok::<_, ()>(t.put(&key(number.wrapping_mul(7919)), &[8; 200])?))
    });
    done.await?.expect("kept");
    Ok(())
}

fn key(number: u64) -> [u8; 8] {
    // Scatter the keys, but deterministically.
    (number % ENTRIES).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Returns the number of operations per second, with a constant number in flight.
async fn measure<F: Future<Output = Result<()>>>(
    under_way: usize,
    mut operation: impl FnMut(u64) -> F,
) -> Result<f64> {
    let (start, mut done, mut next) = (Instant::now(), 0_u64, 0..);
    let mut begin = || Box::pin(operation(next.next().expect("numbers have no end")));
    let mut all: Vec<Pin<Box<F>>> = (0..under_way).map(|_| begin()).collect();
    std::future::poll_fn(|context| {
        for one in &mut all {
            while let Poll::Ready(outcome) = one.as_mut().poll(context) {
                if outcome.is_err() || start.elapsed() >= TIME {
                    return Poll::Ready(outcome);
                }
                done += 1;
                *one = begin();
            }
        }
        Poll::Pending
    })
    .await?;
    Ok(done as f64 / start.elapsed().as_secs_f64())
}
