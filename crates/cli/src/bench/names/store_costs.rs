//! What names take on this computer: a store of metadata and a disk as agents have them, in a directory of their own.

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

use crate::bench::times::processor;
use crate::this_node;

/// Entries in the store before anything is measured, and bytes of each: about an inode and its name.
const ENTRIES: u64 = 10_000;
const ENTRY_BYTES: usize = 200;

/// Transactions that are measured, and how many entries more they read or change than others.
const TRANSACTIONS: u64 = 4096;
const MORE: u64 = 16;

/// Objects that are made and removed, and bytes of an access to each.
const OBJECTS: u32 = 1000;
const ACCESS_BYTES: usize = 4096;

/// Flushes that are measured.
const FLUSHES: usize = 31;

/// What transactions, objects and flushes take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreCosts {
    /// The time beyond the processor's until another thread has done something.
    hand_over: Duration,
    /// What a processor works for a transaction, and for each entry that is read or changed besides.
    transaction: Duration,
    entry: Duration,
    change: Duration,
    /// What it works for making an object, for an access of the disk, for looking for an object, and for removing one
    /// that was found.
    make_object: Duration,
    access: Duration,
    find_object: Duration,
    remove_object: Duration,
    flush: Duration,
}

impl StoreCosts {
    /// Measures a new store and disk in a directory, with so many transactions under way at once.
    pub(crate) fn measure(directory: &Path, under_way: u32) -> Result<StoreCosts> {
        let failed = |why: String| Failure::new("measuring the store of metadata", why);
        let disk = directory.join("disk");
        fs::create_dir_all(&disk).map_err(|error| failed(error.to_string()))?;
        let metadata = Some(MetadataPlace::Directory(directory.join("metadata")));
        let disks = vec![DiskSettings::plain(disk)];
        let settings = Settings { metadata, disks, ..this_node::settings()? };
        let measured = real::run(settings, move |machine| async move { measure(&machine, under_way).await });
        let measured = measured.map_err(|error| failed(error.to_string()))?;
        measured.map_err(|error| failed(error.to_string()))
    }

    /// What is to be set of a machine for its store and disks to take as long.
    pub(crate) fn set(&self, machine: &MachineDescription) -> Vec<String> {
        let StoreCosts {
            hand_over,
            transaction,
            entry,
            change,
            make_object,
            access,
            find_object,
            remove_object,
            flush,
        } = self;
        let times = [
            ("hand_over", hand_over),
            ("transaction", transaction),
            ("entry", entry),
            ("change", change),
            ("make_object", make_object),
            ("find_object", find_object),
            ("remove_object", remove_object),
            ("flush", flush),
        ];
        let times = times.map(|(key, time)| format!("metadata.{key}={} ns", time.as_nanos()));
        let cycles = access.as_secs_f64() * machine.processor.clock.value.0 as f64;
        let access = format!("processor.cost.complete_disk_request.cycles={}", cycles.round());
        times.into_iter().chain([access]).collect()
    }
}

async fn measure(machine: &RealMachine, under_way: u32) -> machine::Result<StoreCosts> {
    let store = machine.metadata().expect("it has one");
    for first in (0..ENTRIES).step_by(1000) {
        transact(store, first, 0, 1000).await?;
    }
    let spent = ProcessorTimer::begin();
    all_transact(store, 1, 1, 1).await?;
    let hand_over = spent.waiting() / TRANSACTIONS as u32;
    let mut of_each = Vec::new();
    for (read, changed) in [(1, 1), (1 + MORE, 1), (1, 1 + MORE)] {
        let spent = ProcessorTimer::begin();
        all_transact(store, under_way, read, changed).await?;
        of_each.push(spent.working() / TRANSACTIONS as u32);
    }
    let [entry, change] = [1, 2].map(|more| of_each[more].saturating_sub(of_each[0]) / MORE as u32);
    let mut flushes = Vec::new();
    for number in 0..FLUSHES as u64 {
        transact(store, number, 1, 1).await?;
        let begin = Instant::now();
        store.flush().await?;
        flushes.push(begin.elapsed());
    }
    flushes.sort_unstable();
    let [make_object, access, remove, find_object] = of_objects(machine).await?;
    Ok(StoreCosts {
        hand_over,
        transaction: of_each[0].saturating_sub(entry + change),
        entry,
        change,
        make_object,
        access,
        find_object,
        remove_object: remove.saturating_sub(find_object),
        flush: flushes[FLUSHES / 2],
    })
}

/// What a processor works for making an object, for an access to it, for removing it, and for finding that there is
/// none. Objects are removed as agents do it, so many at once.
async fn of_objects(machine: &RealMachine) -> machine::Result<[Duration; 4]> {
    let (disk, mut objects) = (&machine.disks()[0], Vec::new());
    let name = |number: u32| format!("object {number}");
    let names: Vec<String> = (0..OBJECTS).map(name).collect();
    let remove_all = async || -> machine::Result<Duration> {
        let removing = ProcessorTimer::begin();
        for names in names.chunks(REMOVED_AT_ONCE) {
            disk.remove_pending(names).await?;
        }
        Ok(removing.working())
    };
    let making = ProcessorTimer::begin();
    for name in &names {
        objects.push(disk.create_unflushed(name, b"of a label that says whose it is").await?.id);
    }
    let (making, accessing) = (making.working(), ProcessorTimer::begin());
    for object in objects {
        disk.write(object, 0, vec![9; ACCESS_BYTES].into()).await?;
    }
    let accessing = accessing.working();
    let (removing, finding_none) = (remove_all().await?, remove_all().await?);
    Ok([making, accessing, removing, finding_none].map(|all| all / OBJECTS))
}

/// Tells the time from when it began, and how much of that processors have worked for this process.
struct ProcessorTimer {
    begin: Instant,
    worked: Duration,
}

impl ProcessorTimer {
    fn begin() -> ProcessorTimer {
        ProcessorTimer { begin: Instant::now(), worked: processor(UsageWho::RUSAGE_SELF).sum() }
    }

    /// What processors have worked for this process.
    fn working(&self) -> Duration {
        processor(UsageWho::RUSAGE_SELF).sum().saturating_sub(self.worked)
    }

    /// The time in which one processor would have had nothing to do.
    fn waiting(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.working())
    }
}

/// Makes transactions, so many of them under way at once.
async fn all_transact(store: &Metadata, under_way: u32, read: u64, changed: u64) -> machine::Result<()> {
    let lanes = (0..u64::from(under_way)).map(|lane| async move {
        for number in (lane..TRANSACTIONS).step_by(under_way as usize) {
            transact(store, number.wrapping_mul(7919), read, changed).await?;
        }
        machine::Result::Ok(())
    });
    try_join_all(lanes).await.map(drop)
}

/// Reads and changes entries from the one of this number on.
async fn transact(store: &Metadata, first: u64, read: u64, changed: u64) -> machine::Result<()> {
    let done = store.transact(move |t| {
        for number in first..first + read {
            t.get(&key(number))?;
        }
        for number in first..first + changed {
            t.put(&key(number), &[8; ENTRY_BYTES])?;
        }
        Ok(Ok::<_, ()>(()))
    });
    done.await?.expect("nothing refuses it");
    Ok(())
}

/// In the order of the numbers: what one transaction reads or changes is near each other, as the names of a directory.
fn key(number: u64) -> [u8; 8] {
    (number % ENTRIES).to_be_bytes()
}
