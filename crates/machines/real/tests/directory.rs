//! Disk of a node beyond the conformance tests: foreign, stale and damaged files, the lock on the directory, removed
//! objects, more objects than open files, and modelled time.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::{Reports, drivers, settings};
use description::{Description, DiskDescription};
use machine::{Disk, Duration, Error, Machine, NodeId, Object, Payload};
use real::{DiskSettings, Driver, RealMachine, Settings};
use tempfile::TempDir;

/// Runs `test` on a node whose disk is `directory`/disk-1, with each driver in a separate directory.
fn on_a_disk(prepare: impl Fn(&Path), test: impl AsyncFn(RealMachine, PathBuf)) {
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        let path = directory.path().join("disk-1");
        fs::create_dir(&path).expect("a fresh directory");
        prepare(&path);
        run_on(driver, settings(1, directory.path(), &reports), async |machine| test(machine, path).await);
    }
}

fn run_on(driver: Driver, settings: Settings, test: impl AsyncFnOnce(RealMachine)) {
    let outcome = real::block_on(driver, async {
        let machine = RealMachine::start(settings).await?;
        test(machine.clone()).await;
        machine.finish().await;
        machine::Result::Ok(())
    });
    outcome.and_then(|outcome| outcome).expect("the node starts");
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

async fn create(machine: &RealMachine, name: &str, contents: &[u8]) -> Object {
    let disk = &machine.disks()[0];
    let object = disk.create(name, b"label").await.expect("a new object");
    disk.write(object.id, 0, Payload::from(contents)).await.expect("a disk with room");
    object
}

async fn read(machine: &RealMachine, object: Object, bytes: u64) -> machine::Result<Vec<u8>> {
    let buffer = machine.buffers().take(bytes).await;
    let buffer = machine.disks()[0].read(object.id, 0, buffer).await?;
    Ok(buffer.slice(0..bytes).to_vec().expect("real bytes"))
}

#[test]
fn incomplete_files_of_a_killed_node_are_removed_and_foreign_files_kept() {
    let prepare = |path: &Path| {
        for name in [".unborn-7", "README", "a%zz.stripe", "thing.begun~"] {
            fs::write(path.join(name), "something").expect("room");
        }
        fs::create_dir(path.join("directory.begun")).expect("room");
    };
    on_a_disk(prepare, async |machine, path| {
        create(&machine, "thing", b"contents").await;
        assert_eq!(machine.disks()[0].list().await, Ok(vec!["directory".to_owned(), "thing".to_owned()]));
        assert!(!path.join(".unborn-7").exists());
        for foreign in ["README", "a%zz.stripe", "thing.begun~", "directory.begun"] {
            assert!(path.join(foreign).exists(), "{foreign}");
        }
    });
}

#[test]
fn damage_is_reported_with_path_and_reason() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 7] = [
        ("shorter than the header", |bytes| bytes.truncate(4095)),
        ("shorter than the header", Vec::clear),
        ("checksum", |bytes| bytes[25] ^= 1),
        ("version 1, without checksums: read the file", |bytes| bytes[8] = 1),
        ("shorter than the 12288 bytes before data", |bytes| bytes.truncate(5000)),
        ("neither of its two flush records", |bytes| bytes[4096..12288].fill(0)),
        ("does not begin with the magic number", |bytes| bytes[0] = b'X'),
    ];
    on_a_disk(
        |_| {},
        async |machine, path| {
            let file = path.join("thing.begun");
            for (expected, damage) in damages {
                let object = create(&machine, "thing", b"contents").await;
                machine.disks()[0].flush(object.id).await.expect("a disk");
                let mut bytes = fs::read(&file).expect("an object's file");
                damage(&mut bytes);
                fs::write(&file, bytes).expect("room");
                match machine.disks()[0].open("thing").await.map_err(|error| *error) {
                    Err(Error::Damaged { what, why }) => {
                        assert!(
                            what.contains(&*file.to_string_lossy()) && why.contains(expected),
                            "{what}: {why}"
                        );
                    }
                    other => panic!("{other:?} for {expected}"),
                }
                machine.disks()[0].remove("thing").await.expect("a damaged object can be removed");
            }
            create(&machine, "one", b"1").await;
            fs::rename(path.join("one.new"), path.join("two.begun")).expect("the same directory");
            let renamed = machine.disks()[0].open("two").await.map_err(|error| *error);
            assert!(matches!(renamed, Err(Error::Damaged { why, .. }) if why.contains("`one`")));
        },
    );
}

#[test]
fn a_file_of_a_newer_version_is_not_damaged() {
    on_a_disk(
        |_| {},
        async |machine, path| {
            let object = create(&machine, "thing", b"contents").await;
            machine.disks()[0].flush(object.id).await.expect("a disk");
            let file = path.join("thing.begun");
            let mut bytes = fs::read(&file).expect("an object's file");
            bytes[8] = 4;
            let hash = *blake3::hash(&bytes[..4064]).as_bytes();
            bytes[4064..4096].copy_from_slice(&hash);
            fs::write(&file, bytes).expect("room");
            let error = machine.disks()[0].open("thing").await.expect_err("of another version");
            assert!(matches!(&*error, Error::Io { .. }), "{error:?}");
            for part in ["thing.begun", "version 4", "Use the newer Starfish"] {
                assert!(error.to_string().contains(part), "{error}");
            }
        },
    );
}

/// Returns the file of an object as earlier programs wrote it.
fn version_2(name: &str, label: &[u8], contents: &[u8]) -> Vec<u8> {
    let xxh = twox_hash::XxHash3_64::oneshot_with_seed;
    let mut file = b"STARFISH".to_vec();
    [2, name.len() as u32, label.len() as u32].iter().for_each(|number| file.extend(number.to_le_bytes()));
    file.extend([name.as_bytes(), label].concat());
    file.resize(4064, 0);
    file.extend(*blake3::hash(&file).as_bytes());
    let identity = u64::from_le_bytes(file[4064..4072].try_into().expect("eight bytes"));
    let mut record = [1, contents.len() as u64].map(u64::to_le_bytes).concat();
    record.extend(xxh(identity, &record).to_le_bytes());
    file.resize(4096 + 2048, 0);
    file.extend(record);
    file.resize(8192, 0);
    for (group, data) in (0_u64..).zip(contents.chunks(1 << 20)) {
        let end = file.len() + 4096;
        for (unit, data) in (group * 256..).zip(data.chunks(UNIT)) {
            let whole = [data, &vec![0; UNIT - data.len()]].concat();
            let sum = xxh(identity ^ unit.wrapping_mul(0x9E37_79B9_7F4A_7C15), &whole).to_le_bytes();
            file.extend([sum, sum].concat());
        }
        file.resize(end, 0);
        file.extend(data);
    }
    file
}

#[test]
fn files_of_earlier_releases_are_read_and_written() {
    let bytes = (1 << 20) + 5 * UNIT + 77;
    let old = move |path: &Path| {
        fs::write(path.join("old.begun"), version_2("old", b"label", &contents(bytes))).expect("room");
    };
    on_a_disk(old, async |machine, path| {
        let (disk, mut expected) = (&machine.disks()[0], contents(bytes));
        let object = disk.open("old").await.expect("it exists");
        assert_eq!((object.bytes, object.label.as_slice()), (bytes as u64, b"label".as_slice()));
        assert!(read_part(&machine, &object, 0, bytes).await == Ok(expected.clone()));
        for (at, bytes) in [(100, 10), (UNIT, 2 * UNIT), ((1 << 20) - 7, 3 * UNIT), (bytes, 3 << 20)] {
            let data: Vec<u8> = contents(bytes).into_iter().rev().collect();
            disk.write(object.id, at as u64, Payload::from(data.as_slice())).await.expect("room");
            expected.resize(expected.len().max(at + bytes), 0);
            expected[at..at + bytes].copy_from_slice(&data);
            disk.flush(object.id).await.expect("a disk");
        }
        assert!(read_part(&machine, &object, 0, expected.len()).await == Ok(expected.clone()));
        disk.resize(object.id, 3 * UNIT as u64 + 1).await.expect("room");
        disk.resize(object.id, 5 << 20).await.expect("room");
        expected.truncate(3 * UNIT + 1);
        expected.resize(5 << 20, 0);
        assert!(read_part(&machine, &object, 0, 5 << 20).await == Ok(expected));
        assert_eq!(fs::read(path.join("old.begun")).expect("an object's file")[8], 2);
    });
}

#[test]
fn a_directory_belongs_to_one_agent() {
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        let first = || settings(1, directory.path(), &reports);
        let second = || Settings { disks: first().disks, ..settings(2, directory.path(), &reports) };
        run_on(driver, first(), async |_first| {
            let error = RealMachine::start(second()).await.err().expect("the directory is taken").to_string();
            let process = format!("process {}", std::process::id());
            for part in ["disk-1", "in use by another agent", "node 1", &process] {
                assert!(error.contains(part), "{error}");
            }
        });
        run_on(driver, second(), async |_second| {});
    }
}

#[test]
fn a_directory_without_a_parent_is_not_created() {
    let directory = temporary();
    let missing = DiskSettings::plain(directory.path().join("not/there"));
    let settings = Settings { disks: vec![missing], ..Settings::new(NodeId(1), common::stranger::keys()) };
    let error = real::run(settings, |_| async {}).expect_err("no such directory");
    assert!(matches!(&*error, Error::NotFound { what } if what.contains("not/there")), "{error}");
}

#[test]
fn objects_outlive_the_node() {
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let object = create(&machine, "thing", &[7; 10_000]).await;
            machine.disks()[0].flush(object.id).await.expect("a disk");
        });
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let object = machine.disks()[0].open("thing").await.expect("it exists");
            assert_eq!((object.bytes, object.label.as_slice()), (10_000, &b"label"[..]));
            assert_eq!(read(&machine, object, 10_000).await, Ok(vec![7; 10_000]));
        });
    }
}

#[test]
fn a_removed_object_frees_its_space_and_name() {
    on_a_disk(
        |_| {},
        async |machine, path| {
            let (disk, old) = (&machine.disks()[0], create(&machine, "thing", b"old").await);
            assert_eq!(disk.open("thing").await.expect("it exists").id, old.id);
            disk.remove("thing").await.expect("it exists");
            let new = create(&machine, "thing", b"new").await;
            assert_ne!(old.id, new.id);
            // An open file keeps its space, even if it has no name any more.
            let open = fs::read_dir("/proc/self/fd").expect("Linux").flatten().map(|entry| entry.path());
            let ours = open.filter(|open| fs::read_link(open).is_ok_and(|file| file.starts_with(&path)));
            let links: Vec<u64> = ours.flat_map(fs::metadata).map(|found| found.nlink()).collect();
            assert!(!links.is_empty() && !links.contains(&0), "{links:?}");
            let removed = read(&machine, old, 3).await.map_err(|error| *error);
            assert!(matches!(removed, Err(Error::NotFound { .. })), "{removed:?}");
            assert_eq!(read(&machine, new, 3).await, Ok(b"new".to_vec()));
        },
    );
}

#[test]
fn more_objects_can_exist_than_open_files() {
    on_a_disk(
        |_| {},
        async |machine, _| {
            let mut objects = Vec::new();
            for number in 0..600_u32 {
                objects.push(create(&machine, &format!("object {number}"), &number.to_le_bytes()).await);
            }
            // The first file has been closed to limit the number of open files.
            machine.disks()[0].remove("object 0").await.expect("it exists");
            for (number, object) in (0_u32..).zip(objects).skip(1) {
                assert_eq!(read(&machine, object, 4).await, Ok(number.to_le_bytes().to_vec()));
            }
        },
    );
}

#[test]
fn an_unopened_object_is_not_found() {
    on_a_disk(
        |_| {},
        async |machine, _| {
            let nothing = Object { id: machine::ObjectId(77), label: Vec::new(), bytes: 0 };
            assert!(matches!(
                read(&machine, nothing, 1).await.map_err(|error| *error),
                Err(Error::NotFound { .. })
            ));
        },
    );
}

#[test]
fn large_and_scattered_payloads_are_written_completely() {
    on_a_disk(
        |_| {},
        async |machine, _| {
            let parts: Vec<Payload> = (0..3000_u32)
                .map(|number| match number % 3 {
                    0 => Payload::zeros(1000),
                    _ => Payload::from(vec![number as u8; 100]),
                })
                .collect();
            let (disk, payload) = (&machine.disks()[0], Payload::concat(&parts));
            let object = disk.create("scattered", b"").await.expect("a new object");
            disk.write(object.id, 0, payload.clone()).await.expect("a disk with room");
            assert_eq!(
                Some(read(&machine, object, payload.len()).await.expect("it is readable")),
                payload.to_vec()
            );
            let zeros = Payload::zeros(300_000);
            let object = disk.create("zeros", b"").await.expect("a new object");
            disk.write(object.id, 5, zeros).await.expect("a disk with room");
            assert_eq!(disk.open("zeros").await.expect("it exists").bytes, 300_005);
        },
    );
}

#[test]
fn a_modelled_disk_is_not_faster_than_its_model() {
    let model = DiskDescription::load("streaming-20").expect("a built-in disk");
    for driver in drivers() {
        let directory = temporary();
        let disk = DiskSettings::modelled(directory.path().join("disk"), model.clone());
        let settings = Settings { disks: vec![disk], ..Settings::new(NodeId(1), common::stranger::keys()) };
        run_on(driver, settings, async |machine| {
            let object = create(&machine, "thing", &vec![3; 1 << 20]).await;
            let start = machine.now();
            assert_eq!(read(&machine, object.clone(), 1 << 20).await, Ok(vec![3; 1 << 20]));
            // 1 MiB at 20 MiB/s; all later commands come after it.
            assert!(machine.now().since(start) >= Duration::from_millis(50));
            machine.disks()[0].flush(object.id).await.expect("a disk");
            let position = |offset| machine.disks()[0].position(object.id, offset);
            assert!(position(0) < position(1));
        });
    }
}

/// Offset in the file of the checksums of the first units of an object, 32 bytes for each.
const SUMS: usize = 12 * 1024;

/// Returns the offset in the file of the object's byte at `offset`: after 12 KiB, and 8 KiB of checksums before each
/// MiB.
fn in_file(offset: usize) -> usize {
    SUMS + (offset >> 20) * ((1 << 20) + 8192) + 8192 + offset % (1 << 20)
}

const UNIT: usize = 4096;

/// Returns bytes that differ everywhere.
fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).flat_map(|at| (at.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()).take(bytes).collect()
}

async fn read_part(
    machine: &RealMachine,
    object: &Object,
    at: usize,
    bytes: usize,
) -> machine::Result<Vec<u8>> {
    let buffer = machine.buffers().take(bytes as u64).await;
    let buffer = machine.disks()[0].read(object.id, at as u64, buffer).await?;
    Ok(buffer.slice(0..bytes as u64).to_vec().expect("real bytes"))
}

#[test]
fn a_changed_block_is_damaged_and_the_others_are_readable() {
    type Damage = fn(&mut [u8]);
    // Each function damages the unit at 2 * UNIT, or that unit of the second group.
    let far = (1 << 20) + 2 * UNIT;
    let damages: [(usize, Damage); 7] = [
        (2 * UNIT, |file| file[in_file(2 * UNIT)] ^= 1),
        (2 * UNIT, |file| file[in_file(3 * UNIT) - 1] ^= 0x80),
        // Not written, or written as zeros by a disk that lost the data.
        (2 * UNIT, |file| file[in_file(2 * UNIT)..in_file(3 * UNIT)].fill(0)),
        // Half of the unit overwritten.
        (2 * UNIT, |file| file[in_file(2 * UNIT) + UNIT / 2..in_file(3 * UNIT)].fill(7)),
        // Another unit, with its checksums.
        (2 * UNIT, |file| {
            file.copy_within(in_file(5 * UNIT)..in_file(6 * UNIT), in_file(2 * UNIT));
            file.copy_within(SUMS + 5 * 32..SUMS + 6 * 32, SUMS + 2 * 32);
        }),
        // The checksums of the unit.
        (2 * UNIT, |file| file[SUMS + 2 * 32..SUMS + 3 * 32].fill(0x55)),
        ((1 << 20) + 2 * UNIT, |file| file[in_file((1 << 20) + 2 * UNIT) + 9] ^= 4),
    ];
    let bytes = far + 10 * UNIT + 100;
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        let file = directory.path().join("disk-1/thing.begun");
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let object = create(&machine, "thing", &contents(bytes)).await;
            machine.disks()[0].flush(object.id).await.expect("a disk");
        });
        let sound = fs::read(&file).expect("an object's file");
        for (at, damage) in damages {
            let mut damaged = sound.clone();
            damage(&mut damaged);
            fs::write(&file, damaged).expect("room");
            run_on(driver, settings(1, directory.path(), &reports), async |machine| {
                let object = machine.disks()[0].open("thing").await.expect("it exists");
                for (from, bytes) in [(at, UNIT), (at - UNIT, 4 * UNIT), (at + 100, 10), (0, bytes)] {
                    match read_part(&machine, &object, from, bytes).await.map_err(|error| *error) {
                        Err(Error::Damaged { what, why }) => {
                            assert!(what.contains("thing.begun"), "{what}");
                            assert!(why.contains(&format!("at offset {at} ")), "{why} for {at}");
                        }
                        other => panic!("{:?} at {at}", other.map(|data| data.len())),
                    }
                }
                let whole = contents(bytes);
                for (from, until) in [(0, at), (at + UNIT, bytes)] {
                    let read = read_part(&machine, &object, from, until - from).await.expect("sound");
                    assert!(read == whole[from..until], "{at}");
                }
                // A part of a damaged unit cannot be overwritten, since the rest would then seem valid; the whole unit
                // can.
                let disk = &machine.disks()[0];
                let part = disk
                    .write(object.id, at as u64 + 5, Payload::from(vec![1; 10]))
                    .await
                    .map_err(|error| *error);
                assert!(matches!(part, Err(Error::Damaged { .. })), "{part:?}");
                disk.write(object.id, at as u64, Payload::from(&whole[at..at + UNIT])).await.expect("room");
                assert!(read_part(&machine, &object, 0, bytes).await == Ok(whole));
            });
        }
    }
}

#[test]
fn zeros_in_place_of_flushed_data_are_damage_and_not_a_hole() {
    type Damage = fn(&mut Vec<u8>);
    const MIB: usize = 1 << 20;
    let bytes = 3 * MIB + 5 * UNIT + 100;
    // The reported text, the damage, and the begin and end of an undamaged range.
    let damages: [(&str, Damage, usize, usize); 5] = [
        ("offset 0 ", |file| file[SUMS..in_file(MIB - 1) + 1].fill(0), MIB, 3 * MIB + 5 * UNIT + 100),
        // One sector of checksums, and all data they cover.
        (
            "offset 65536 ",
            |file| {
                file[SUMS + 512..SUMS + 1024].fill(0);
                file[in_file(16 * UNIT)..in_file(32 * UNIT)].fill(0);
            },
            0,
            16 * UNIT,
        ),
        ("offset 0 ", |file| file[SUMS..].fill(0), 0, 0),
        ("those from 2097152 on are missing", |file| file.truncate(in_file(2 * MIB - 1) + 1), 0, 2 * MIB),
        (
            "those from 3166307 on are missing",
            |file| file.truncate(in_file(3 * MIB + 5 * UNIT + 100) - 1),
            MIB,
            3 * MIB,
        ),
    ];
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        let file = directory.path().join("disk-1/thing.begun");
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let object = create(&machine, "thing", &contents(bytes)).await;
            machine.disks()[0].flush(object.id).await.expect("a disk");
        });
        let sound = fs::read(&file).expect("an object's file");
        for (expected, damage, from, until) in damages {
            let reports = Reports::default();
            let mut damaged = sound.clone();
            damage(&mut damaged);
            fs::write(&file, damaged).expect("room");
            run_on(driver, settings(1, directory.path(), &reports), async |machine| {
                let object = machine.disks()[0].open("thing").await.expect("it exists");
                assert_eq!(object.bytes, bytes as u64);
                assert_eq!(
                    reports.has_error_with("was truncated"),
                    expected.contains("missing"),
                    "{expected}"
                );
                match read_part(&machine, &object, 0, bytes).await.map_err(|error| *error) {
                    Err(Error::Damaged { why, .. }) => {
                        assert!(why.contains(expected), "{why} for {expected}")
                    }
                    other => panic!("{:?} for {expected}", other.map(|data| data.len())),
                }
                let read = read_part(&machine, &object, from, until - from).await.expect("not touched");
                assert!(read == contents(bytes)[from..until], "{expected}");
            });
        }
    }
}

/// Overwrites the rest of the file from each of its first pages, after one flush and after several that each extended
/// the object.
#[test]
fn a_lost_end_of_a_file_is_not_mistaken_for_an_earlier_length() {
    const MIB: usize = 1 << 20;
    for (driver, flushes) in
        drivers().into_iter().flat_map(|driver| (1..=3).map(move |flushes| (driver, flushes)))
    {
        let (directory, reports) = (temporary(), Reports::default());
        let file = directory.path().join("disk-1/thing.begun");
        let bytes = flushes * (MIB + 100);
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let disk = &machine.disks()[0];
            let object = disk.create("thing", b"").await.expect("room");
            for part in contents(bytes).chunks(MIB + 100).enumerate() {
                let (number, part) = (part.0, part.1.to_vec());
                disk.write(object.id, (number * (MIB + 100)) as u64, Payload::from(part))
                    .await
                    .expect("room");
                disk.flush(object.id).await.expect("a disk");
            }
        });
        let sound = fs::read(&file).expect("an object's file");
        for (from, lost) in (UNIT..6 * UNIT).step_by(UNIT).flat_map(|from| [(from, 0), (from, 0xA5)]) {
            let mut damaged = sound.clone();
            damaged[from..].fill(lost);
            fs::write(&file, damaged).expect("room");
            run_on(driver, settings(1, directory.path(), &reports), async |machine| {
                let read = match machine.disks()[0].open("thing").await {
                    Ok(object) => {
                        read_part(&machine, &object, 0, object.bytes as usize).await.map(|read| read.len())
                    }
                    Err(error) => Err(error),
                };
                let is_reported = read.as_ref().is_err_and(|error| matches!(**error, Error::Damaged { .. }));
                assert!(is_reported, "{lost:#x} from {from} on after {flushes} flushes: {read:?}");
            });
        }
        // The other record, and the ends of the units, have the same information as the lost record.
        for at in [UNIT, 2 * UNIT] {
            let mut damaged = sound.clone();
            damaged[at..at + UNIT].fill(0);
            fs::write(&file, damaged).expect("room");
            run_on(driver, settings(1, directory.path(), &reports), async |machine| {
                let object = machine.disks()[0].open("thing").await.expect("one record is whole");
                assert!(read_part(&machine, &object, 0, bytes).await == Ok(contents(bytes)), "{at}");
            });
        }
    }
}

#[test]
fn bytes_appended_to_the_file_of_an_object_are_ignored() {
    let bytes = UNIT + 100;
    let longer: [fn(&mut Vec<u8>); 4] = [
        |file| file.extend([0; 50]),
        |file| file.extend(vec![0; 5 << 20]),
        |file| file.extend(vec![9; 5000]),
        |file| file.extend(vec![9; 5 << 20]),
    ];
    for (driver, lengthen) in drivers().into_iter().flat_map(|driver| longer.map(|longer| (driver, longer))) {
        let (directory, reports) = (temporary(), Reports::default());
        let file = directory.path().join("disk-1/thing.begun");
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let object = create(&machine, "thing", &contents(bytes)).await;
            machine.disks()[0].flush(object.id).await.expect("a disk");
        });
        let mut lengthened = fs::read(&file).expect("an object's file");
        lengthen(&mut lengthened);
        fs::write(&file, lengthened).expect("room");
        run_on(driver, settings(1, directory.path(), &reports), async |machine| {
            let disk = &machine.disks()[0];
            let object = disk.open("thing").await.expect("it exists");
            assert_eq!(object.bytes, bytes as u64);
            let read = read_part(&machine, &object, 0, 10_000).await.expect("sound");
            assert!(read[..bytes] == contents(bytes) && read[bytes..].iter().all(|byte| *byte == 0));
            // Nor does the excess become part of the object.
            disk.write(object.id, 2 << 20, Payload::from(vec![5; 10])).await.expect("room");
            let read = read_part(&machine, &object, bytes, (2 << 20) - bytes).await.expect("sound");
            assert!(read.iter().all(|byte| *byte == 0));
        });
    }
}

#[test]
fn holes_and_offsets_over_4_gib_are_read_correctly() {
    on_a_disk(
        |_| {},
        async |machine, _| {
            let disk = &machine.disks()[0];
            let object = disk.create("sparse", b"").await.expect("a new object");
            let far = (5_u64 << 30) + 123;
            disk.write(object.id, far, Payload::from(vec![3; 10])).await.expect("room");
            disk.write(object.id, 77, Payload::from(vec![4; 10])).await.expect("room");
            disk.flush(object.id).await.expect("a disk");
            let object = disk.open("sparse").await.expect("it exists");
            assert_eq!(object.bytes, far + 10);
            let read = read_part(&machine, &object, far as usize - 5, 20).await.expect("sound");
            assert_eq!(read, [[0; 5].as_slice(), &[3; 10], &[0; 5]].concat());
            let read = read_part(&machine, &object, 70, 20).await.expect("sound");
            assert_eq!(read, [[0; 7].as_slice(), &[4; 10], &[0; 3]].concat());
            assert_eq!(read_part(&machine, &object, 3 << 30, 100_000).await, Ok(vec![0; 100_000]));
        },
    );
}

#[test]
fn zeros_written_over_data_free_their_space() {
    const BYTES: usize = 3 << 20;
    on_a_disk(
        |_| {},
        async |machine, path| {
            let object = create(&machine, "thing", &contents(BYTES)).await;
            let disk = &machine.disks()[0];
            disk.flush(object.id).await.expect("a disk");
            let on_disk = || fs::metadata(path.join("thing.begun")).expect("it exists").blocks() * 512;
            let before = on_disk();
            // A range across the border of two groups of checksums; and a short one, whose zeros are written.
            let (mut expected, hole) = (contents(BYTES), 500 << 10..1600 << 10);
            for zeros in [hole.clone(), 2 << 20..(2 << 20) + 8192] {
                expected[zeros.clone()].fill(0);
                let data = Payload::from(vec![0; zeros.len()]);
                disk.write(object.id, zeros.start as u64, data).await.expect("room");
            }
            disk.flush(object.id).await.expect("a disk");
            // Except the space for new checksums.
            let after = on_disk();
            assert!(before - after >= hole.len() as u64 - 16384, "{before} {after}");
            let found = disk.data_after(object.id, hole.start as u64).await.expect("told").expect("data");
            assert_eq!(found.start, hole.end as u64);
            assert!(read(&machine, object.clone(), BYTES as u64).await == Ok(expected.clone()));
            // New data can replace the hole; zeros beyond the end are written.
            disk.write(object.id, 1 << 20, Payload::from(vec![9; 200_000])).await.expect("room");
            expected[1 << 20..(1 << 20) + 200_000].fill(9);
            expected.resize(BYTES + (1 << 20), 0);
            disk.write(object.id, BYTES as u64, Payload::from(vec![0; 1 << 20])).await.expect("room");
            disk.flush(object.id).await.expect("a disk");
            assert!(on_disk() >= after + (1 << 20), "{after}");
            assert!(read(&machine, object, expected.len() as u64).await == Ok(expected));
        },
    );
}

/// Small random number generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn random_writes_and_truncations_agree_with_a_vector_over_restarts() {
    const BYTES: usize = 3 << 20;
    for (driver, seed) in drivers().into_iter().zip(1..) {
        let (directory, reports) = (temporary(), Reports::default());
        let (mut draw, mut model) = (Draw(seed), Vec::<u8>::new());
        for start in 0..4 {
            run_on(driver, settings(1, directory.path(), &reports), async |machine| {
                let disk = &machine.disks()[0];
                let object = match start {
                    0 => disk.create("random", b"").await,
                    _ => disk.open("random").await,
                };
                let object = object.expect("it exists");
                assert_eq!(object.bytes, model.len() as u64);
                for step in 0..60 {
                    let (at, bytes) = (draw.below(BYTES), draw.below(1 << [5, 13, 18][step % 3]));
                    match draw.below(8) {
                        0 => {
                            let bytes = draw.below(BYTES);
                            disk.resize(object.id, bytes as u64).await.expect("room");
                            model.resize(bytes, 0);
                        }
                        1 => disk.flush(object.id).await.expect("a disk"),
                        2 | 3 => {
                            let mut expected = model.get(at..).unwrap_or_default().to_vec();
                            expected.resize(bytes, 0);
                            let read = read_part(&machine, &object, at, bytes).await;
                            assert!(read == Ok(expected), "{start}.{step}: {bytes} at {at}");
                        }
                        _ => {
                            // Some data in several pieces.
                            let data: Vec<u8> = (0..bytes).map(|_| draw.below(256) as u8).collect();
                            let cut = draw.below(bytes + 1) as u64;
                            let whole = Payload::from(data.as_slice());
                            let parts = [whole.slice(0..cut), whole.slice(cut..bytes as u64)];
                            let payload = Payload::concat(
                                &parts.map(|part| Payload::from(part.to_vec().expect("real bytes"))),
                            );
                            disk.write(object.id, at as u64, payload).await.expect("room");
                            if bytes > 0 {
                                model.resize(model.len().max(at + bytes), 0);
                                model[at..at + bytes].copy_from_slice(&data);
                            }
                        }
                    }
                }
                let read = read_part(&machine, &object, 0, model.len() + 10).await.expect("sound");
                assert!(read[..model.len()] == model && read[model.len()..] == [0; 10], "{start}");
            });
        }
    }
}

/// The system keeps the writes of a killed agent, so they exist although nothing was flushed.
#[test]
fn an_unflushed_object_outlives_its_agent_unless_it_is_incomplete() {
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        let path = directory.path().join("disk-1");
        let mut identities = Vec::new();
        for is_again in [false, true] {
            run_on(driver, settings(1, directory.path(), &reports), async |machine| {
                let disk = &machine.disks()[0];
                identities.push(disk.identity().await.expect("it can be made"));
                if !is_again {
                    for name in ["whole", "torn", "flushed"] {
                        let object = disk.create(name, b"label").await.expect("room");
                        disk.write(object.id, 0, Payload::from(b"contents".to_vec())).await.expect("room");
                    }
                    let flushed = disk.open("flushed").await.expect("just made");
                    disk.flush(flushed.id).await.expect("flushed");
                    return;
                }
                for name in ["whole", "flushed"] {
                    let object = disk.open(name).await.expect("it was made");
                    assert_eq!((object.bytes, &*object.label), (8, &b"label"[..]));
                    assert_eq!(read(&machine, object, 8).await.as_deref(), Ok(&b"contents"[..]));
                }
                let torn = disk.open("torn").await.map_err(|error| *error);
                assert!(matches!(torn, Err(Error::NotFound { .. })), "{torn:?}");
                let object = disk.create("torn", b"new").await.expect("no object of this name exists");
                assert_eq!((object.bytes, &*object.label), (0, &b"new"[..]));
            });
            let has = |name: &str| path.join(name).exists();
            if !is_again {
                assert!(has("whole.new") && has("torn.new") && has("flushed.begun") && !has("flushed.new"));
                let torn = fs::OpenOptions::new().write(true).open(path.join("torn.new")).expect("ours");
                torn.set_len(5000).expect("cut");
            }
        }
        assert_eq!(identities[0], identities[1]);
        let torn = fs::metadata(path.join("torn.new")).expect("it is another one");
        assert!(torn.len() > 5000);
    }
}

/// Returns the error of starting a node whose disk is `path`.
fn refused(driver: Driver, directory: &Path) -> Error {
    let outcome = real::block_on(driver, async {
        RealMachine::start(settings(1, directory, &Reports::default())).await.map(drop)
    });
    *outcome.and_then(|outcome| outcome).expect_err("it does not start")
}

#[test]
fn a_disk_with_a_damaged_or_missing_identity_does_not_start() {
    for driver in drivers() {
        let directory = temporary();
        let path = directory.path().join("disk-1");
        fs::create_dir(&path).expect("a fresh directory");
        let identity = path.join(".starfish.disk");
        for text in ["", "12", "0123456789ABCDEF\n", "0123456789abcdef", "0123456789abcdef\n\n", "\u{fffd}"] {
            fs::write(&identity, text).expect("room");
            let error = refused(driver, directory.path());
            let Error::Damaged { what, why } = error else { panic!("{error:?} for {text:?}") };
            assert!(
                what.contains(".starfish.disk") && why.contains("16 hexadecimal digits"),
                "{what}: {why}"
            );
            assert_eq!(fs::read_to_string(&identity).expect("text"), text);
        }
        fs::remove_file(&identity).expect("it exists");
        fs::write(path.join("%2F0123456789abcdef.begun"), "a stripe").expect("room");
        let error = refused(driver, directory.path());
        assert!(matches!(&error, Error::Damaged { why, .. } if why.contains("it is missing")), "{error:?}");
        assert!(!identity.exists(), "it is to be restored");
        fs::write(&identity, "0123456789abcdef\n").expect("room");
        run_on(driver, settings(1, directory.path(), &Reports::default()), async |machine| {
            assert_eq!(machine.disks()[0].identity().await, Ok(0x0123_4567_89ab_cdef));
        });
    }
}
