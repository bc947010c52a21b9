//! What the disk of a node keeps to beyond the laws: foreign, stale and damaged files, the lock on the
//! directory, removed objects, more objects than open files, and modelled time.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::{Reports, drivers, settings};
use description::{Description, DiskDescription};
use machine::{Disk, Duration, Error, Machine, NodeId, Object, Payload};
use real::{DiskSettings, Driver, RealMachine, Settings};
use tempfile::TempDir;

/// Runs `test` on a node whose disk is `directory`/disk-1, with each driver in a directory of its own.
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
fn what_a_killed_node_left_half_made_is_removed_and_foreign_files_are_left_alone() {
    let prepare = |path: &Path| {
        for name in [".unborn-7", "README", "a%zz.stripe", "thing.stripe~"] {
            fs::write(path.join(name), "something").expect("room");
        }
        fs::create_dir(path.join("directory.stripe")).expect("room");
    };
    on_a_disk(prepare, async |machine, path| {
        create(&machine, "thing", b"contents").await;
        assert_eq!(machine.disks()[0].list().await, Ok(vec!["thing".to_owned()]));
        assert!(!path.join(".unborn-7").exists());
        for foreign in ["README", "a%zz.stripe", "thing.stripe~", "directory.stripe"] {
            assert!(path.join(foreign).exists(), "{foreign}");
        }
    });
}

#[test]
fn damage_is_told_with_the_path_and_what_is_wrong() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 8] = [
        ("shorter than the header", |bytes| bytes.truncate(4095)),
        ("shorter than the header", Vec::clear),
        ("checksum", |bytes| bytes[25] ^= 1),
        ("version 9", |bytes| bytes[8] = 9),
        ("version 1, which has no checksums: get the file", |bytes| bytes[8] = 1),
        ("shorter than the 8192 bytes before data", |bytes| bytes.truncate(5000)),
        ("has been cut: it had 8 bytes and has 3", |bytes| bytes.truncate(8192 + 4096 + 3)),
        ("does not begin as an object", |bytes| bytes[0] = b'X'),
    ];
    on_a_disk(
        |_| {},
        async |machine, path| {
            let file = path.join("thing.stripe");
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
                machine.disks()[0].remove("thing").await.expect("what is damaged can be removed");
            }
            create(&machine, "one", b"1").await;
            fs::rename(path.join("one.stripe"), path.join("two.stripe")).expect("the same directory");
            let renamed = machine.disks()[0].open("two").await.map_err(|error| *error);
            assert!(matches!(renamed, Err(Error::Damaged { why, .. }) if why.contains("`one`")));
        },
    );
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
fn a_missing_directory_is_made_but_not_all_the_way_to_it() {
    let directory = temporary();
    let missing = DiskSettings::plain(directory.path().join("not/there"));
    let settings = Settings { disks: vec![missing], ..Settings::new(NodeId(1)) };
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
            let object = machine.disks()[0].open("thing").await.expect("it is there");
            assert_eq!((object.bytes, object.label.as_slice()), (10_000, &b"label"[..]));
            assert_eq!(read(&machine, object, 10_000).await, Ok(vec![7; 10_000]));
        });
    }
}

#[test]
fn the_space_of_a_removed_object_is_free_and_so_is_its_name() {
    on_a_disk(
        |_| {},
        async |machine, path| {
            let (disk, old) = (&machine.disks()[0], create(&machine, "thing", b"old").await);
            assert_eq!(disk.open("thing").await.expect("it is there").id, old.id);
            disk.remove("thing").await.expect("it is there");
            let new = create(&machine, "thing", b"new").await;
            assert_ne!(old.id, new.id);
            // A file that is open has its space, although it has no name any more.
            let open = fs::read_dir("/proc/self/fd").expect("Linux").flatten().map(|entry| entry.path());
            let ours = open.filter(|open| fs::read_link(open).is_ok_and(|file| file.starts_with(&path)));
            let links: Vec<u64> = ours.flat_map(fs::metadata).map(|found| found.nlink()).collect();
            assert!(!links.is_empty() && !links.contains(&0), "{links:?}");
            let gone = read(&machine, old, 3).await.map_err(|error| *error);
            assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
            assert_eq!(read(&machine, new, 3).await, Ok(b"new".to_vec()));
        },
    );
}

#[test]
fn there_can_be_more_objects_than_open_files() {
    on_a_disk(
        |_| {},
        async |machine, _| {
            let mut objects = Vec::new();
            for number in 0..600_u32 {
                objects.push(create(&machine, &format!("object {number}"), &number.to_le_bytes()).await);
            }
            // The first has been closed to make room.
            machine.disks()[0].remove("object 0").await.expect("it is there");
            for (number, object) in (0_u32..).zip(objects).skip(1) {
                assert_eq!(read(&machine, object, 4).await, Ok(number.to_le_bytes().to_vec()));
            }
        },
    );
}

#[test]
fn objects_nobody_opened_are_unknown() {
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
fn large_and_scattered_payloads_are_written_whole() {
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
                Some(read(&machine, object, payload.len()).await.expect("it is there")),
                payload.to_vec()
            );
            let zeros = Payload::zeros(300_000);
            let object = disk.create("zeros", b"").await.expect("a new object");
            disk.write(object.id, 5, zeros).await.expect("a disk with room");
            assert_eq!(disk.open("zeros").await.expect("it is there").bytes, 300_005);
        },
    );
}

#[test]
fn a_modelled_disk_is_not_faster_than_its_model() {
    let model = DiskDescription::load("streaming-20").expect("a built-in disk");
    for driver in drivers() {
        let directory = temporary();
        let disk = DiskSettings::modelled(directory.path().join("disk"), model.clone());
        let settings = Settings { disks: vec![disk], ..Settings::new(NodeId(1)) };
        run_on(driver, settings, async |machine| {
            let object = create(&machine, "thing", &vec![3; 1 << 20]).await;
            let start = machine.now();
            assert_eq!(read(&machine, object.clone(), 1 << 20).await, Ok(vec![3; 1 << 20]));
            // 1 MiB at 20 MiB/s; and all that was asked for later comes after it.
            assert!(machine.now().since(start) >= Duration::from_millis(50));
            machine.disks()[0].flush(object.id).await.expect("a disk");
            let position = |offset| machine.disks()[0].position(object.id, offset);
            assert!(position(0) < position(1));
        });
    }
}

/// Where the byte at `offset` of an object lies in its file: behind 8 KiB, and 4 KiB of sums before each MiB.
fn in_file(offset: usize) -> usize {
    8192 + (offset >> 20) * ((1 << 20) + 4096) + 4096 + offset % (1 << 20)
}

const UNIT: usize = 4096;

/// Bytes that are different everywhere.
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
fn a_block_that_is_not_what_was_written_is_damaged_and_the_rest_is_not() {
    type Damage = fn(&mut [u8]);
    // Each touches the unit at 2 * UNIT, or that in the second group.
    let far = (1 << 20) + 2 * UNIT;
    let damages: [(usize, Damage); 7] = [
        (2 * UNIT, |file| file[in_file(2 * UNIT)] ^= 1),
        (2 * UNIT, |file| file[in_file(3 * UNIT) - 1] ^= 0x80),
        // Not written, or written as zeros by a disk that lost it.
        (2 * UNIT, |file| file[in_file(2 * UNIT)..in_file(3 * UNIT)].fill(0)),
        // Written to half of it.
        (2 * UNIT, |file| file[in_file(2 * UNIT) + UNIT / 2..in_file(3 * UNIT)].fill(7)),
        // That of another place, with the sums that belong to it.
        (2 * UNIT, |file| {
            file.copy_within(in_file(5 * UNIT)..in_file(6 * UNIT), in_file(2 * UNIT));
            file.copy_within(8192 + 5 * 16..8192 + 6 * 16, 8192 + 2 * 16);
        }),
        // Its sums.
        (2 * UNIT, |file| file[8192 + 2 * 16..8192 + 3 * 16].fill(0x55)),
        ((1 << 20) + 2 * UNIT, |file| file[in_file((1 << 20) + 2 * UNIT) + 9] ^= 4),
    ];
    let bytes = far + 10 * UNIT + 100;
    for driver in drivers() {
        let (directory, reports) = (temporary(), Reports::default());
        let file = directory.path().join("disk-1/thing.stripe");
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
                let object = machine.disks()[0].open("thing").await.expect("it is there");
                for (from, bytes) in [(at, UNIT), (at - UNIT, 4 * UNIT), (at + 100, 10), (0, bytes)] {
                    match read_part(&machine, &object, from, bytes).await.map_err(|error| *error) {
                        Err(Error::Damaged { what, why }) => {
                            assert!(what.contains("thing.stripe"), "{what}");
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
                // Part of a damaged unit cannot be replaced, since the rest would then seem sound; all of it can.
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
fn holes_and_lengths_over_4_gib_are_sound() {
    on_a_disk(
        |_| {},
        async |machine, _| {
            let disk = &machine.disks()[0];
            let object = disk.create("sparse", b"").await.expect("a new object");
            let far = (5_u64 << 30) + 123;
            disk.write(object.id, far, Payload::from(vec![3; 10])).await.expect("room");
            disk.write(object.id, 77, Payload::from(vec![4; 10])).await.expect("room");
            disk.flush(object.id).await.expect("a disk");
            let object = disk.open("sparse").await.expect("it is there");
            assert_eq!(object.bytes, far + 10);
            let read = read_part(&machine, &object, far as usize - 5, 20).await.expect("sound");
            assert_eq!(read, [[0; 5].as_slice(), &[3; 10], &[0; 5]].concat());
            let read = read_part(&machine, &object, 70, 20).await.expect("sound");
            assert_eq!(read, [[0; 7].as_slice(), &[4; 10], &[0; 3]].concat());
            assert_eq!(read_part(&machine, &object, 3 << 30, 100_000).await, Ok(vec![0; 100_000]));
        },
    );
}

/// A small stream of numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn random_writes_and_cuts_agree_with_a_vector_over_new_starts() {
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
                let object = object.expect("it is there");
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
                            // Some as several pieces.
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
