//! Promises about disks that return other data than written.

use fs::protocol::Label;
use fs::{
    Check, Checking, Client, FailureKind, FileId, Finding, FindingKind, IoNodeSettings, SalvagedExtent,
    Threads,
};
use layout::Extent;
use machine::conformance::Testbed;
use machine::{Disk, Machine, Memory};

use super::faulty::Faulty;
use super::{Base, bytes_of, contents, created_with, read, run, small, start, stored, write};

/// Four units. A unit is the smallest range for which damage is reported.
const BLOCK: u64 = 16 * 1024;
const UNIT: u64 = 4096;
const BYTES: u64 = 10 * BLOCK + 100;

/// Checks the files of these numbers.
async fn check<M: Machine>(client: &Client<M>, numbers: &[u64]) -> Check {
    let files: Vec<FileId> = numbers.iter().copied().map(FileId).collect();
    let check = client.check(&files, None, |_| ()).await.expect("all I/O nodes answer");
    assert_eq!(check.failures, []);
    check
}

fn findings(check: &Check, number: u64) -> Vec<(FindingKind, Option<u32>)> {
    check.files[&FileId(number)].findings.iter().map(|finding| (finding.kind, finding.stripe)).collect()
}

/// A check finds damage with the precision of the disk, before a client reads the data. Data next to the damage can be
/// read, even in the same block. The check also reports a stripe that belongs to another file. Missing stripes it
/// cannot report: only the namespace knows which stripes must exist. A check with a rate limit takes the time that the
/// limit requires.
pub fn damage_is_found_and_adjacent_data_are_readable(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let settings =
            IoNodeSettings { block_bytes_max: BLOCK, cache_blocks: 2, ..small(base, Threads::Pool(4)) };
        let client = &start(base, &nodes, 3, settings).await[0];
        let data = contents(BYTES);
        let file = created_with(client, 1, BLOCK).await;
        let single = client.new_numbered_on(FileId(2), BLOCK, &[0]).await.expect("it exists");
        let whole = client.numbered(single).await.expect("opened");
        for file in [&file, &whole] {
            write(file, 0, &data).await;
            file.flush().await.expect("flushed");
        }
        // The cache now has exactly these blocks of stripe 1.
        for block in [7, 10] {
            read(&file, block * BLOCK, 100).await;
        }
        let sound = check(client, &[1, 2]).await;
        assert!(sound.bytes == 2 * BYTES && sound.files.values().all(|file| file.findings.is_empty()));
        assert!(sound.files.values().all(|file| file.bytes == BYTES));

        // Damage the second unit of block 4 of the file, which is the second block of stripe 1.
        nodes[1].faults().damage(BLOCK + UNIT..BLOCK + 2 * UNIT);
        let lost = 4 * BLOCK + UNIT;
        let hurt = check(client, &[1, 2]).await;
        assert_eq!(findings(&hurt, 2), []);
        let [Finding { kind: FindingKind::Damaged, place, stripe: Some(1), damaged, .. }] =
            &*hurt.files[&file.id()].findings
        else {
            panic!("{:?}", hurt.files[&file.id()])
        };
        assert_eq!(*place, Some((nodes[1].node(), 0)));
        assert_eq!(*damaged, [Extent::new(lost, UNIT)]);
        read_next_to_damage(client, &data, lost).await;

        // First the disk lacks the stripe; then it has a stripe of another file.
        let (disk, name) = (&nodes[1].disks()[0], file.name().to_owned());
        disk.remove(&name).await.expect("removed behind its back");
        assert_eq!(findings(&check(client, &[1]).await, 1), []);
        let foreign =
            Label { file: FileId(77), stripe: 1, striping: file.striping(), begun: 0, replaces: None };
        disk.create(&name, &foreign.encode()).await.expect("created behind its back");
        assert_eq!(findings(&check(client, &[1]).await, 1), [(FindingKind::Foreign, Some(1))]);

        let (begun, files) = (nodes[3].now(), [whole.id(), FileId(9)]);
        let slow = client.check(&files, Some(10 * BYTES), |_: Checking| ()).await.expect("they answer");
        assert!(nodes[3].now().since(begun).as_secs_f64() > 0.05);
        assert_eq!((slow.files.len(), slow.failures.len()), (1, 1));
    });
}

/// A bit flip in the memory of an I/O node, in data read from a disk or to be written, fails the operation: wrong data
/// are neither returned nor written.
pub fn a_bit_flip_in_memory_is_detected(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let settings =
            IoNodeSettings { block_bytes_max: BLOCK, cache_blocks: 2, ..small(base, Threads::Pool(4)) };
        let client = &start(base, &nodes, 2, settings).await[0];
        let data = contents(BYTES);
        let file = created_with(client, 1, BLOCK).await;
        write(&file, 0, &data).await;
        file.flush().await.expect("flushed");
        // After this read the last blocks are in the caches, so that none of the blocks below is prefetched with
        // another.
        let _ = read(&file, 7 * BLOCK, BYTES - 7 * BLOCK).await;
        for (block, start, bytes) in [(0, 0, BLOCK), (1, 0, BLOCK), (6, BLOCK / 2 - 10, 20)] {
            let node = &nodes[block as usize % 2];
            node.faults().flipped_reads.set(1);
            let memory = Memory::real(vec![0; bytes as usize]);
            let error =
                file.read(block * BLOCK + start, bytes, &memory, 0).await.expect_err("a bit has flipped");
            assert!(error.to_string().contains("do not match their checksum"), "{error}");
            assert_eq!(node.faults().flipped_reads.get(), 0);
        }
        let others = 2 * BLOCK..6 * BLOCK;
        let there = read(&file, others.start, 4 * BLOCK).await;
        assert!(there == data[others.start as usize..others.end as usize], "other blocks are right");

        let new = vec![0xAB; BLOCK as usize];
        nodes[1].faults().flipped_writes.set(1);
        let memory = Memory::real(new.clone());
        let written = file.write(3 * BLOCK, BLOCK, &memory, 0).await;
        let flushed = file.flush().await;
        let errors = [written.err(), flushed.err()].into_iter().flatten();
        let texts: Vec<String> = errors.map(|error| error.to_string()).collect();
        assert!(texts.iter().any(|text| text.contains("do not match their checksum")), "{texts:?}");
        assert_eq!(nodes[1].faults().flipped_writes.get(), 0);
        let memory = Memory::real(vec![0; BLOCK as usize]);
        if file.read(3 * BLOCK, BLOCK, &memory, 0).await.is_ok() {
            let there = bytes_of(memory);
            assert!(there == new || there == data[3 * BLOCK as usize..4 * BLOCK as usize], "old or new");
        }
        assert_eq!(findings(&check(client, &[1]).await, 1), []);
    });
}

/// Data next to damage are read, by requests and by salvage.
async fn read_next_to_damage<M: Machine>(client: &Client<M>, data: &[u8], lost: u64) {
    let file = client.numbered(stored(client, 1, BLOCK).await).await.expect("opened");
    for (offset, bytes) in [(lost - UNIT, UNIT), (lost + UNIT, 2 * UNIT), (lost + UNIT + 5, 10)] {
        assert!(read(&file, offset, bytes).await == data[offset as usize..(offset + bytes) as usize]);
    }
    for (offset, bytes) in [(lost, 1), (lost - 1, 2), (lost - UNIT, BLOCK)] {
        let memory = Memory::real(vec![0; bytes as usize]);
        let error = file.read(offset, bytes, &memory, 0).await.expect_err("it is damaged");
        assert!(error.is_remote(FailureKind::Damaged), "{error}");
    }
    let remains = file.remains();
    let (mut at, mut losses) = (0, Vec::new());
    for block in remains.blocks() {
        for remnant in remains.read(block).await.expect("the I/O nodes answer") {
            match &remnant {
                SalvagedExtent::Data(there) => {
                    let expected = &data[at as usize..(at + there.len()) as usize];
                    assert!(there.to_vec().expect("real bytes") == expected, "at {at}");
                }
                SalvagedExtent::Lost(bytes) => losses.push((at, *bytes)),
            }
            at += remnant.bytes();
        }
    }
    assert_eq!((at, losses), (BYTES, vec![(lost, UNIT)]));
    // Data written next to the damage, and not yet on the disk, are read correctly.
    write(&file, lost + 2 * UNIT, &[9; 10]).await;
    let there = read(&file, lost + 2 * UNIT - 5, 20).await;
    let before = (lost + 2 * UNIT - 5) as usize;
    assert_eq!(there, [&data[before..before + 5], &[9; 10], &data[before + 15..before + 20]].concat());
    file.flush().await.expect("flushed");
}
