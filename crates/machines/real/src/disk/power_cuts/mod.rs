//! Tests of the effects of a power failure: random programs of writes, flushes and resizes on a model of the disk
//! (`medium.rs`), interrupted at any point.
//!
//! After each failure the object is opened again and read completely. Units that were flushed and not touched since are
//! unchanged, and never reported as damaged. A touched unit has any of its versions since then, or is reported as
//! damaged. The length is between the least and the greatest since the flush. Then the program continues with the
//! contents found. Sometimes the agent is killed instead, or the disk is full. In other programs a sync fails, and from
//! then on every flush fails until the power does.
//!
//! Half of the objects have been flushed before. The others may disappear in a power cut, both in their directory and
//! in the model, until their first flush has completed.

mod medium;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::rc::Rc;

use machine::{BufferPool, Error, Payload};

use super::contents::read_contents;
use super::directory::Directory;
use super::layout::{GROUP_BYTES, UNIT_BYTES};
use super::name::{self, ObjectFileKind, Stage};
use super::open_object::{Fault, OpenObject};
use super::sync_failure::SyncFailure;
use super::units::Seal;
use crate::Driver;
use medium::ModelFile;

/// Variable with the number of power cuts to try. Default: 200.
const CUTS_VARIABLE: &str = "STARFISH_POWER_CUTS";

const CUTS: u64 = 200;

/// Number of power cuts of one object before a new one is created.
const CUTS_OF_ONE: u64 = 8;

/// Divisor: one in this number of objects has failing syncs.
const SYNCS_FAIL_IN: u64 = 5;

/// Number of groups: more than those whose checksums an open object keeps in memory.
const GROUPS: u64 = 22;

/// Small random number generator.
#[derive(Clone)]
pub(super) struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn up_to(&mut self, greatest: u64) -> u64 {
        self.below(greatest + 1)
    }

    fn bytes(&mut self, bytes: u64) -> Vec<u8> {
        let first = self.next() as u8;
        (0..bytes).map(|at| first.wrapping_add((at % 251) as u8)).collect()
    }
}

/// Expected state of an object. Units that are not listed are zeros.
#[derive(Default)]
struct Expected {
    bytes: u64,
    units: BTreeMap<u64, Vec<u8>>,
    /// Possible contents of the units touched since the last flush.
    touched: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Least and greatest possible length.
    lengths: (u64, u64),
}

const UNIT: usize = UNIT_BYTES as usize;

impl Expected {
    fn unit(&self, number: u64) -> Vec<u8> {
        self.units.get(&number).cloned().unwrap_or_else(|| vec![0; UNIT])
    }

    fn set_unit(&mut self, number: u64, unit: Vec<u8>) {
        let before = self.unit(number);
        self.touched.entry(number).or_insert_with(|| vec![before]).push(unit.clone());
        self.units.insert(number, unit);
    }

    fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.lengths = (self.lengths.0.min(bytes), self.lengths.1.max(bytes));
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        for number in offset / UNIT_BYTES..end.div_ceil(UNIT_BYTES) {
            let mut unit = self.unit(number);
            let start = number * UNIT_BYTES;
            let (first, last) = (offset.max(start), end.min(start + UNIT_BYTES));
            unit[(first - start) as usize..(last - start) as usize]
                .copy_from_slice(&data[(first - offset) as usize..(last - offset) as usize]);
            self.set_unit(number, unit);
        }
        self.set_bytes(self.bytes.max(end));
    }

    fn resize(&mut self, bytes: u64) {
        let behind: Vec<u64> = self.units.range(bytes / UNIT_BYTES..).map(|(number, _)| *number).collect();
        for number in behind {
            let mut unit = self.unit(number);
            unit[bytes.saturating_sub(number * UNIT_BYTES).min(UNIT_BYTES) as usize..].fill(0);
            self.set_unit(number, unit);
        }
        self.set_bytes(bytes);
    }

    /// Marks the whole state as flushed.
    fn flush(&mut self) {
        self.touched.clear();
        self.lengths = (self.bytes, self.bytes);
    }
}

enum Step {
    Write(u64, Vec<u8>),
    Resize(u64),
    Flush,
    Read(u64, u64),
    Kill,
}

/// Object on the model, and its expected state.
struct Trial {
    file: ModelFile,
    /// True if the file name still marks the object as never flushed.
    is_new: bool,
    seal: Seal,
    object: Rc<OpenObject<ModelFile>>,
    expected: Expected,
    /// Offsets that are written repeatedly.
    hot: Vec<u64>,
    /// True if syncs sometimes fail.
    syncs_fail: bool,
    draw: Draw,
}

impl Trial {
    fn new(seed: u64, is_new: bool) -> Self {
        let (place, directory) = fresh_directory();
        let seal = directory.create("object", b"label").expect("room").contents.seal;
        if !is_new {
            directory.settle("object").expect("just made");
        }
        let bytes = std::fs::read(place.path().join(file_name(is_new))).expect("an object's file");
        let file =
            if is_new { ModelFile::unsettled(&bytes, seal.layout.groups) } else { ModelFile::of(&bytes) };
        let object = open(&file, seal);
        let mut draw = Draw(seed | 1 << 40);
        let hot = (0..6).map(|_| draw.below(GROUPS * GROUP_BYTES)).collect();
        Trial { file, is_new, seal, object, expected: Expected::default(), hot, syncs_fail: false, draw }
    }

    /// Returns true if the object still exists after a power cut, according to its directory. A never flushed object
    /// may be missing, and another one can then replace it.
    fn is_there(&self) -> bool {
        let (place, directory) = fresh_directory();
        std::fs::write(place.path().join(file_name(self.is_new)), self.file.contents()).expect("room");
        match directory.open("object", Stage::Pending).map_err(|error| *error) {
            Ok(found) => assert_eq!((found.is_new, found.contents.seal), (self.is_new, self.seal)),
            Err(Error::NotFound { .. }) if self.is_new => {
                let other = directory.create("object", b"another").expect("no file of this name exists");
                assert!(other.header.label == b"another");
                return false;
            }
            Err(error) => panic!("{error:?}"),
        }
        let again = directory.create("object", b"another").map(drop).map_err(|error| *error);
        assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
        true
    }

    fn step(&mut self) -> Step {
        let (hot, draw) = (&self.hot, &mut self.draw);
        let place = match draw.below(4) {
            0 => draw.below(GROUPS * GROUP_BYTES),
            1 => self.expected.bytes,
            2 => draw.below(20 * UNIT_BYTES),
            _ => hot[draw.below(hot.len() as u64) as usize],
        };
        match draw.below(20) {
            0 | 1 => Step::Resize(match draw.below(3) {
                0 => draw.below(GROUPS * GROUP_BYTES),
                1 => self.expected.bytes.saturating_sub(draw.below(10 * UNIT_BYTES)),
                _ => self.expected.bytes + draw.below(10 * UNIT_BYTES),
            }),
            2..=5 => Step::Flush,
            6 | 7 => Step::Read(place.saturating_sub(2 * UNIT_BYTES), 5 * UNIT_BYTES),
            8 => Step::Kill,
            9 => Step::Write(place / UNIT_BYTES * UNIT_BYTES, vec![0; 16 * UNIT_BYTES as usize]),
            kind => {
                let bytes = 1 + draw.below([100, 3 * UNIT_BYTES, 12 * UNIT_BYTES][(kind % 3) as usize]);
                let aligned = kind % 4 == 0;
                let (place, bytes) = if aligned {
                    (place / UNIT_BYTES * UNIT_BYTES, bytes.next_multiple_of(UNIT_BYTES))
                } else {
                    (place, bytes)
                };
                Step::Write(place, draw.bytes(bytes))
            }
        }
    }

    /// Runs steps until the power fails.
    async fn run(&mut self) {
        loop {
            let step = self.step();
            let has_failed = self.file.has_failed_sync();
            if self.draw.below(12) == 0 && !has_failed {
                self.file.be_full_after(self.draw.below(4));
            }
            if self.syncs_fail && !has_failed && self.draw.below(12) == 0 {
                self.file.fail_sync(&mut self.draw);
            }
            let outcome = match step {
                Step::Write(offset, data) => {
                    self.expected.write(offset, &data);
                    self.object.write(offset, &Payload::from(data)).await
                }
                Step::Resize(bytes) => {
                    self.expected.resize(bytes);
                    self.object.resize(bytes).await
                }
                Step::Flush => self.object.flush().await.map(|()| {
                    self.expected.flush();
                    self.is_new = false;
                }),
                Step::Read(offset, bytes) => {
                    read(&self.object, offset, bytes).await.map(|data| self.check(offset, &data))
                }
                // After a kill, the next agent may take data for flushed whose flush has failed.
                Step::Kill if has_failed => Ok(()),
                Step::Kill => {
                    self.file = self.file.after_kill();
                    return;
                }
            };
            match outcome {
                Ok(()) => {}
                Err(Fault::Io(error)) if error.kind() == ErrorKind::StorageFull => {
                    // The disk was full, so nothing was written: nothing has been damaged.
                    assert!(self.look().await.is_empty());
                }
                Err(_) if !self.file.has_power() => return,
                // All written data can still be read.
                Err(Fault::Io(_)) if self.file.has_failed_sync() => {
                    assert!(self.look().await.is_empty());
                    if self.draw.below(4) == 0 {
                        return self.file.fail_power_after(0);
                    }
                }
                Err(fault) => panic!("{fault:?}"),
            }
        }
    }

    /// Checks data that were read while the whole state is known.
    fn check(&self, offset: u64, data: &[u8]) {
        for (at, byte) in (offset..).zip(data) {
            let expected = self.expected.units.get(&(at / UNIT_BYTES));
            let expected = expected.map_or(0, |unit| unit[(at % UNIT_BYTES) as usize]);
            assert_eq!(*byte, expected, "byte {at}");
        }
    }

    /// Reads the whole object, checks it, and makes it the expected state. Returns the damaged units.
    async fn look(&mut self) -> BTreeSet<u64> {
        let (bytes, expected) = (self.object.bytes(), &mut self.expected);
        let (least, greatest) = expected.lengths;
        assert!((least..=greatest).contains(&bytes), "{bytes} bytes, not from {least} to {greatest}");
        expected.bytes = bytes;
        let known: BTreeSet<u64> = expected.units.keys().chain(expected.touched.keys()).copied().collect();
        let adjacent =
            known.iter().flat_map(|unit| [unit.saturating_sub(1), unit + 1]).collect::<BTreeSet<u64>>();
        let mut damaged = BTreeSet::new();
        for number in known.union(&adjacent).copied() {
            let touched = expected.touched.get(&number);
            match read(&self.object, number * UNIT_BYTES, UNIT_BYTES).await {
                Ok(unit) => {
                    let untouched = [expected.unit(number)];
                    let versions = touched.map_or(untouched.as_slice(), Vec::as_slice);
                    if touched.is_some() && number * UNIT_BYTES >= bytes {
                        // Beyond a permitted end, unflushed units have disappeared completely.
                        expected.units.remove(&number);
                        continue;
                    }
                    assert!(versions.contains(&unit), "unit {number} is none of {}", versions.len());
                    expected.units.insert(number, unit);
                }
                Err(Fault::Damaged(_)) if touched.is_some() => _ = damaged.insert(number),
                // Cleared sums beyond the old end may have been lost in a failed sync, at any time.
                Err(Fault::Damaged(_)) if self.syncs_fail && number * UNIT_BYTES >= least => {
                    damaged.insert(number);
                }
                Err(_) if !self.file.has_power() => return damaged,
                Err(fault) => panic!("unit {number}: {fault:?}"),
            }
        }
        damaged
    }

    /// Opens the object as found after a power cut or a kill, and rewrites damaged units.
    async fn open_again(&mut self, is_settled: bool) {
        self.object = open(&self.file, self.seal);
        let damaged = self.look().await;
        if is_settled {
            self.expected.touched.clear();
            // Unflushed data exist now, but only the last unit may record that the object ends there.
            let (least, found) = (self.expected.lengths.0, self.expected.bytes);
            self.expected.lengths = (least.min(found), found);
        }
        for number in damaged {
            let data = self.draw.bytes(UNIT_BYTES);
            self.expected.write(number * UNIT_BYTES, &data);
            self.object.write(number * UNIT_BYTES, &Payload::from(data)).await.expect("there is power");
        }
    }
}

fn fresh_directory() -> (tempfile::TempDir, Directory) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let directory = Directory::take(place.path(), machine::NodeId(1)).expect("a fresh directory");
    (place, directory)
}

fn file_name(is_new: bool) -> String {
    name::encode("object", if is_new { ObjectFileKind::New } else { ObjectFileKind::Pending })
}

fn contents(file: &ModelFile, seal: Seal) -> super::contents::FoundContents {
    read_contents(file, file.bytes(), seal).expect("the model can be read").expect("it can be opened")
}

fn open(file: &ModelFile, seal: Seal) -> Rc<OpenObject<ModelFile>> {
    OpenObject::new(file.clone(), contents(file, seal), SyncFailure::default()).into()
}

async fn read(object: &OpenObject<ModelFile>, offset: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    let into = BufferPool::new(bytes).try_take(bytes).expect("room");
    let read = object.read(offset, into).await?;
    Ok(read.slice(0..bytes).to_vec().expect("real bytes"))
}

#[test]
fn flushed_data_survive_power_cuts() {
    let cuts = std::env::var(CUTS_VARIABLE).map_or(CUTS, |cuts| cuts.parse().expect("a number of cuts"));
    for seed in 1..=cuts.div_ceil(CUTS_OF_ONE) {
        println!("seed {seed}");
        crate::block_on(Driver::Polling, cut_power(seed)).expect("a runtime");
    }
}

async fn cut_power(seed: u64) {
    let syncs_fail = seed.is_multiple_of(SYNCS_FAIL_IN);
    let mut trial = Trial { syncs_fail, ..Trial::new(seed, seed.is_multiple_of(2)) };
    for _ in 0..CUTS_OF_ONE {
        trial.file.fail_power_after(1 + trial.draw.below(60));
        trial.run().await;
        while trial.file.has_power() {
            // The agent was killed; the power has not failed.
            trial.open_again(false).await;
            trial.file.fail_power_after(1 + trial.draw.below(60));
            trial.run().await;
        }
        trial.file = trial.file.after_power_cut(&mut trial.draw);
        if !trial.is_there() {
            return;
        }
        trial.open_again(true).await;
    }
}

/// A power cut at any point between the creation of an object and its first flush leaves a readable object, or none.
/// After that flush the object always exists.
#[test]
fn an_unflushed_object_is_complete_or_missing_after_a_power_cut() {
    let (mut missing, mut kept) = (0, 0);
    for seed in 1..=400 {
        let trial = async {
            let mut trial = Trial::new(seed, true);
            trial.file.fail_power_after(1 + seed % 9);
            let data = trial.draw.bytes(1 + seed * 37 % (3 * UNIT_BYTES));
            trial.expected.write(0, &data);
            if trial.object.write(0, &Payload::from(data)).await.is_ok() && trial.object.flush().await.is_ok()
            {
                trial.expected.flush();
                trial.is_new = false;
            }
            let was_flushed = !trial.is_new;
            trial.file = trial.file.after_power_cut(&mut trial.draw);
            if trial.is_there() {
                trial.open_again(true).await;
                return (0, 1);
            }
            assert!(!was_flushed);
            (1, 0)
        };
        let outcome = crate::block_on(Driver::Polling, trial).expect("a runtime");
        (missing, kept) = (missing + outcome.0, kept + outcome.1);
    }
    assert!(missing > 50 && kept > 50, "{missing} missing, {kept} kept");
}

#[test]
fn reads_concurrent_with_truncations_and_writes_find_no_damage() {
    const LONGEST: u64 = 40 * UNIT_BYTES;
    let trial = async {
        let Trial { object, mut draw, .. } = Trial::new(1, false);
        let (reader, is_done) = (object.clone(), Rc::new(Cell::new(false)));
        let done = is_done.clone();
        let reading = compio::runtime::spawn(async move {
            for _ in 0..500 {
                read(&reader, 0, LONGEST).await.expect("nothing is damaged");
            }
            done.set(true);
        });
        while !is_done.get() && !reading.is_finished() {
            object.resize(draw.below(LONGEST)).await.expect("room");
            let data = draw.bytes(UNIT_BYTES);
            object.write(draw.below(LONGEST - UNIT_BYTES), &Payload::from(data)).await.expect("room");
        }
        assert!(is_done.get(), "the reader has failed");
    };
    crate::block_on(Driver::Polling, trial).expect("a runtime");
}
