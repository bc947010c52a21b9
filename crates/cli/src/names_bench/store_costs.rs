//! What the store of metadata takes on this computer: the one that agents have, in a directory of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use futures_util::future::try_join_all;
use machine::{Machine, MetadataStore};
use nix::sys::resource::UsageWho;
use real::{Metadata, MetadataPlace, RealMachine, Settings};

use crate::this_node;
use crate::times::processor;

/// Entries in the store before anything is measured, and bytes of each: about an inode and its name.
const ENTRIES: u64 = 10_000;
const ENTRY_BYTES: usize = 200;

/// Transactions that are measured, with so few entries and so many.
const TRANSACTIONS: u64 = 4096;
const FEW: u64 = 2;
const MANY: u64 = 18;

/// Flushes that are measured.
const FLUSHES: usize = 31;

/// What transactions and flushes take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreCosts {
    /// A transaction, and each of its entries besides.
    transaction: Duration,
    entry: Duration,
    flush: Duration,
}

impl StoreCosts {
    /// Measures a new store in a directory, with so many transactions under way at once.
    pub(crate) fn measure(directory: &Path, under_way: u32) -> Result<StoreCosts> {
        let failed = |why: String| Failure::new("measuring the store of metadata", why);
        let metadata = Some(MetadataPlace::Directory(directory.to_owned()));
        let settings = Settings { metadata, ..this_node::settings()? };
        let measured = real::run(settings, move |machine: RealMachine| async move {
            let store = machine.metadata().expect("it has one").clone();
            measure(&store, under_way).await
        });
        let measured = measured.map_err(|error| failed(error.to_string()))?;
        measured.map_err(|error| failed(error.to_string()))
    }

    /// What is to be set of a machine for its store to take as long.
    pub(crate) fn set(&self) -> [String; 3] {
        let StoreCosts { transaction, entry, flush } = self;
        [("transaction", transaction), ("entry", entry), ("flush", flush)]
            .map(|(key, time)| format!("metadata.{key}={} ns", time.as_nanos()))
    }
}

async fn measure(store: &Metadata, under_way: u32) -> machine::Result<StoreCosts> {
    for first in (0..ENTRIES).step_by(1000) {
        let numbers = first..first + 1000;
        let fill = store.transact(move |t| {
            numbers.clone().try_for_each(|number| t.put(&key(number), &[7; ENTRY_BYTES]))?;
            Ok(Ok::<_, ()>(()))
        });
        fill.await?.expect("nothing refuses it");
    }
    let [few, many] = [of_each(store, under_way, FEW).await?, of_each(store, under_way, MANY).await?];
    let entry = many.saturating_sub(few) / (MANY - FEW) as u32;
    let mut flushes = Vec::new();
    for number in 0..FLUSHES as u64 {
        transact(store, number, FEW).await?;
        let begin = Instant::now();
        store.flush().await?;
        flushes.push(begin.elapsed());
    }
    flushes.sort_unstable();
    Ok(StoreCosts { transaction: few.saturating_sub(entry * FEW as u32), entry, flush: flushes[FLUSHES / 2] })
}

/// What a processor works for a transaction of so many entries.
async fn of_each(store: &Metadata, under_way: u32, entries: u64) -> machine::Result<Duration> {
    let before = processor(UsageWho::RUSAGE_SELF).sum();
    let lanes = (0..u64::from(under_way)).map(|lane| async move {
        for number in (lane..TRANSACTIONS).step_by(under_way as usize) {
            transact(store, number, entries).await?;
        }
        machine::Result::Ok(())
    });
    try_join_all(lanes).await?;
    Ok(processor(UsageWho::RUSAGE_SELF).sum().saturating_sub(before) / TRANSACTIONS as u32)
}

/// Half of the entries are read, and the others put.
async fn transact(store: &Metadata, number: u64, entries: u64) -> machine::Result<()> {
    let done = store.transact(move |t| {
        for entry in 0..entries / 2 {
            let place = number.wrapping_mul(7919).wrapping_add(entry);
            t.get(&key(place))?;
            t.put(&key(place), &[8; ENTRY_BYTES])?;
        }
        Ok(Ok::<_, ()>(()))
    });
    done.await?.expect("nothing refuses it");
    Ok(())
}

/// Keys that are not in the order of their numbers, and always the same.
fn key(number: u64) -> [u8; 8] {
    (number % ENTRIES).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}
