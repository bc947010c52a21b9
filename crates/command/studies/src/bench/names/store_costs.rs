//! Measures the costs of operations on names on this computer, with a metadata store and a disk like those of agents,
//! in a temporary directory.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ::fs::REMOVED_AT_ONCE;
use command_line::failure::{Failure, Result};
use description::MachineDescription;
use futures_util::future::try_join_all;
use machine::{Disk, Machine, MetadataStore};
use nix::sys::resource::UsageWho;
use real::{DiskSettings, Metadata, MetadataPlace, RealMachine, Settings};
use transfer::cluster::agent_settings;

use crate::bench::times::processor;

/// Number of entries in the store before a measurement, and size of each in bytes: about the size of an inode and its
/// name.
const ENTRIES: u64 = 10_000;
const ENTRY_BYTES: usize = 200;

/// Number of measured transactions; number of transactions in flight when their shared cost should be small; number of
/// additional entries that some transactions read.
const TRANSACTIONS: u64 = 4096;
const TOGETHER: u32 = 64;
const MORE_READ: u64 = 16;

/// Number of objects that are created and removed, and size in bytes of an access to each.
const OBJECTS: u32 = 1000;
const ACCESS_BYTES: usize = 4096;

/// Number of measured flushes.
const FLUSHES: usize = 31;

/// Costs of transactions, objects and flushes.
#[derive(Clone, Copy, Debug)]
pub struct StoreCosts {
    /// Latency of work on another thread, in addition to its processor time.
    hand_over: Duration,
    /// Processor times of a commit, of each transaction in it, of each additional entry that is read, and of each one
    /// that is changed.
    commit: Duration,
    transaction: Duration,
    entry: Duration,
    change: Duration,
    /// Processor times of creating an object, of an access to the disk, of a lookup of a missing object, and of
    /// removing an existing object.
    make_object: Duration,
    access: Duration,
    find_object: Duration,
    remove_object: Duration,
    /// Latency of creating or writing an object on another thread, in addition to the processor time.
    disk_hand_over: Duration,
    flush: Duration,
}

impl StoreCosts {
    /// Measures a new store and a new disk in a directory.
    pub fn measure(directory: &Path) -> Result<StoreCosts> {
        let failed = |why: String| Failure::new("cannot measure the metadata store", why);
        let disk = directory.join("disk");
        fs::create_dir_all(&disk).map_err(|error| failed(error.to_string()))?;
        let metadata = Some(MetadataPlace::Directory(directory.join("metadata")));
        let disks = vec![DiskSettings::plain(disk)];
        let settings = Settings { metadata, disks, ..agent_settings(None)? };
        let measured = real::run(settings, |machine| async move { measure(&machine).await });
        let measured = measured.map_err(|error| failed(error.to_string()))?;
        measured.map_err(|error| failed(error.to_string()))
    }

    /// Returns the settings with which the store and the disks of a machine take these times.
    pub fn set(&self, machine: &MachineDescription) -> Vec<String> {
        let StoreCosts {
            hand_over,
            commit,
            transaction,
            entry,
            change,
            make_object,
            access,
            find_object,
            remove_object,
            disk_hand_over,
            flush,
        } = self;
        let times = [
            ("metadata.hand_over", hand_over),
            ("metadata.commit", commit),
            ("metadata.transaction", transaction),
            ("metadata.entry", entry),
            ("metadata.change", change),
            ("metadata.make_object", make_object),
            ("metadata.find_object", find_object),
            ("metadata.remove_object", remove_object),
            ("metadata.flush", flush),
            ("disks.hand_over", disk_hand_over),
        ];
        let times = times.map(|(key, time)| format!("{key}={} ns", time.as_nanos()));
        let cycles = access.as_secs_f64() * machine.processor.clock.value.0 as f64;
        let access = format!("processor.cost.complete_disk_request.cycles={}", cycles.round());
        times.into_iter().chain([access]).collect()
    }
}

async fn measure(machine: &RealMachine) -> machine::Result<StoreCosts> {
    let store = machine.metadata().expect("it has one");
    fill(store).await?;
    let alone = ProcessorTimer::begin();
    all_transact(store, 1, 1, Changes::One).await?;
    let (hand_over, alone) = (alone.waiting() / TRANSACTIONS as u32, alone.working() / TRANSACTIONS as u32);
    let mut of_each = Vec::new();
    for (read, changes) in [(1, Changes::One), (1 + MORE_READ, Changes::One), (1, Changes::OfNewFile)] {
        let spent = ProcessorTimer::begin();
        all_transact(store, TOGETHER, read, changes).await?;
        of_each.push(spent.working() / TRANSACTIONS as u32);
    }
    let [little, read, changed] = of_each.try_into().expect("three were measured");
    let entry = read.saturating_sub(little) / MORE_READ as u32;
    let change = changed.saturating_sub(little) / NEW_FILE_CHANGES;
    let mut flushes = Vec::new();
    for number in 0..FLUSHES as u64 {
        transact(store, number, 1, Changes::One).await?;
        let begin = Instant::now();
        store.flush().await?;
        flushes.push(begin.elapsed());
    }
    flushes.sort_unstable();
    let ([make_object, access, remove, find_object], disk_hand_over) = of_objects(machine).await?;
    Ok(StoreCosts {
        hand_over,
        commit: alone.saturating_sub(little),
        transaction: little.saturating_sub(entry + change),
        entry,
        change,
        make_object,
        access,
        find_object,
        remove_object: remove.saturating_sub(find_object),
        disk_hand_over,
        flush: flushes[FLUSHES / 2],
    })
}

/// Returns the processor times of creating an object, of an access to it, of its removal, and of a lookup that finds no
/// object. Returns also the wait for another thread that creates or accesses an object. Objects are removed in batches,
/// as by agents.
async fn of_objects(machine: &RealMachine) -> machine::Result<([Duration; 4], Duration)> {
    let (disk, mut objects) = (&machine.disks()[0], Vec::new());
    let name = |number: u32| format!("object {number}");
    let names: Vec<String> = (0..OBJECTS).map(name).collect();
    let remove_all = async || -> machine::Result<Duration> {
        let removing = ProcessorTimer::begin();
        for names in names.chunks(REMOVED_AT_ONCE) {
            disk.remove_all(names).await?;
        }
        Ok(removing.working())
    };
    let making = ProcessorTimer::begin();
    for name in &names {
        objects.push(disk.create(name, b"of a label that names its stripes").await?.id);
    }
    let (waiting, making, accessing) = (making.waiting(), making.working(), ProcessorTimer::begin());
    for object in objects {
        disk.write(object, 0, vec![9; ACCESS_BYTES].into()).await?;
    }
    let (waiting, accessing) = (waiting + accessing.waiting(), accessing.working());
    let (removing, finding_none) = (remove_all().await?, remove_all().await?);
    Ok(([making, accessing, removing, finding_none].map(|all| all / OBJECTS), waiting / (2 * OBJECTS)))
}

/// Timer for the elapsed time and for the processor time of this process.
struct ProcessorTimer {
    begin: Instant,
    worked: Duration,
}

impl ProcessorTimer {
    fn begin() -> ProcessorTimer {
        ProcessorTimer { begin: Instant::now(), worked: processor(UsageWho::RUSAGE_SELF).sum() }
    }

    /// Returns the processor time of this process since `begin`.
    fn working(&self) -> Duration {
        processor(UsageWho::RUSAGE_SELF).sum().saturating_sub(self.worked)
    }

    /// Returns the elapsed time minus the processor time: the time in which a single processor would have been idle.
    fn waiting(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.working())
    }
}

/// Entries that a transaction changes.
#[derive(Clone, Copy)]
enum Changes {
    /// One existing entry.
    One,
    /// One existing entry, and the new entries of a new file. The new keys are far from each other, because each kind
    /// of entry has a separate range of keys.
    OfNewFile,
}

/// Number of entries that are written for a new file: its inode, its name and its directory.
const NEW_FILE_CHANGES: u32 = 3;

/// Runs transactions, with a constant number in flight.
async fn all_transact(store: &Metadata, under_way: u32, read: u64, changes: Changes) -> machine::Result<()> {
    let lanes = (0..u64::from(under_way)).map(|lane| async move {
        for number in (lane..TRANSACTIONS).step_by(under_way as usize) {
            transact(store, number, read, changes).await?;
        }
        machine::Result::Ok(())
    });
    try_join_all(lanes).await.map(drop)
}

/// Creates all entries that transactions read and change.
async fn fill(store: &Metadata) -> machine::Result<()> {
    for first in (0..ENTRIES).step_by(1000) {
        let filled = store.transact(move |t| {
            for number in first..first + 1000 {
                t.put(&key(number), &[8; ENTRY_BYTES])?;
            }
            Ok(Ok::<_, ()>(()))
        });
        filled.await?.expect("no call is rejected");
    }
    Ok(())
}

/// Reads entries, beginning with one that depends on `number`, and makes the changes.
async fn transact(store: &Metadata, number: u64, read: u64, changes: Changes) -> machine::Result<()> {
    let first = number.wrapping_mul(7919);
    let done = store.transact(move |t| {
        for number in first..first + read {
            t.get(&key(number))?;
        }
        t.put(&key(first), &[8; ENTRY_BYTES])?;
        if let Changes::OfNewFile = changes {
            for kind in (1..).take(NEW_FILE_CHANGES as usize) {
                t.put(&new_key(kind, number), &[8; ENTRY_BYTES])?;
            }
        }
        Ok(Ok::<_, ()>(()))
    });
    done.await?.expect("no call is rejected");
    Ok(())
}

/// Returns the key of an existing entry. Keys are in the order of the numbers. So the entries that a transaction reads
/// are adjacent, like the names in a directory.
fn key(number: u64) -> [u8; 9] {
    new_key(0, number % ENTRIES)
}

/// Returns the key of a new entry of this kind.
fn new_key(kind: u8, number: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}
