//! Tests of accesses whose times were computed by hand, to the nanosecond.
//!
//! The spindles in these tests start at angle 0, so sector slot `k` begins `k / 72` of a revolution of 14,992,504 ns
//! after the start. Sector 0 lies on cylinder 1, head 4, hence at angle (162 + 4 * 8) mod 72 = 50. The skews of each
//! whole cylinder add up to 18 * 8 + 18 = 162 sectors. The arm starts at cylinder 0, head 0.

use description::{Description, DiskDescription, MechanicalDisk, Sourced, Time};
use disk::Model;
use machine::{Duration, Instant};

const OVERHEAD: Duration = Duration::from_micros(2_200);
const BUS: Duration = Duration::from_nanos(819_200);
const MILLISECOND: Duration = Duration::from_millis(1);
const SECTORS: u64 = 16;

/// Number of sectors in the first region of the disk, which ends with track 646:3.
const REGION: u64 = 645 * 19 * 72;

fn hp97560() -> Model {
    Model::new(&DiskDescription::load("hp97560").unwrap(), 0.0)
}

fn changed(change: impl FnOnce(&mut MechanicalDisk)) -> Model {
    let mut description = DiskDescription::load("hp97560").unwrap();
    if let DiskDescription::Mechanical(disk) = &mut description {
        change(disk);
    }
    Model::new(&description, 0.0)
}

/// Returns the beginning of slot `k`.
fn slot(k: u64) -> Instant {
    Instant::from_nanos((k * 14_992_504).div_ceil(72))
}

fn at(nanoseconds: u64) -> Instant {
    Instant::from_nanos(nanoseconds)
}

fn write(disk: &mut Model, now: Instant, first: u64) -> Instant {
    let arrived = disk.write_ready(now, first, SECTORS) + BUS;
    disk.write(arrived, first, SECTORS)
}

#[test]
fn the_disk_has_the_visible_size_of_the_drive() {
    assert_eq!(hp97560().capacity_sectors(), 1935 * 19 * 72);
    assert_eq!(hp97560().sector_bytes(), 512);
}

#[test]
fn a_read_takes_overhead_seek_rotation_and_transfer() {
    let mut disk = hp97560();
    // The arm arrives 2.2 + 3.64 ms after the start; then slot 50 is the first slot with angle 50.
    assert_eq!(disk.read(Instant::START, 0, SECTORS), slot(66));
    let statistics = disk.statistics(slot(66));
    assert_eq!(statistics.overhead, OVERHEAD);
    assert_eq!(statistics.seek, Duration::from_micros(3_640));
    assert_eq!(statistics.rotation, slot(50).since(at(5_840_000)));
    assert_eq!(statistics.transfer, slot(66).since(slot(50)));
    assert_eq!(statistics.busy() + OVERHEAD, slot(66).since(Instant::START));
    assert_eq!(statistics.movements, 1);
}

#[test]
fn a_sequential_reader_waits_only_for_the_medium() {
    let mut disk = hp97560();
    let mut now = disk.read(Instant::START, 0, SECTORS);
    for block in 1..19 {
        // A track ends before each of the sectors 72, 144, 216 and 288; each track end costs the skew of eight slots.
        let skew = 8 * ((block * SECTORS + SECTORS - 1) / 72);
        now = disk.read(now + BUS, block * SECTORS, SECTORS);
        assert_eq!(now, slot(66 + block * SECTORS + skew));
    }
    // The first read needs a movement, and so do the reads at sectors 144 and 288, where a block begins with a head
    // switch.
    assert_eq!(disk.movements(), 3);
}

#[test]
fn the_skews_allow_the_published_sequential_rate() {
    let mut disk = hp97560();
    let track = 72;
    let first = disk.read(Instant::START, 0, track);
    let second = disk.read(first, track, track);
    assert_eq!(second.since(first), slot(50 + 72 + 80).since(slot(50 + 72)));
    let mib_per_second = 36_864.0 / 1_048_576.0 / second.since(first).as_secs_f64();
    assert!((mib_per_second - 2.1104).abs() < 1e-4);
}

#[test]
fn continuing_on_the_next_cylinder_takes_the_cylinder_skew() {
    let mut disk = hp97560();
    let last_track_of_cylinder_1 = 14 * 72;
    // Track 1:18 begins at angle 162 + 18 * 8 = 18 (mod 72); the arm arrives in slot 28.
    let first = disk.read(Instant::START, last_track_of_cylinder_1, 72);
    assert_eq!(first, slot(90 + 72));
    assert_eq!(disk.read(first, last_track_of_cylinder_1 + 72, 72), slot(162 + 18 + 72));
}

#[test]
fn continuing_in_the_next_region_takes_a_seek_over_the_spare_tracks() {
    let mut disk = hp97560();
    // Track 646:3 begins at angle 646 * 162 + 3 * 8 = 60 (mod 72); the arm arrives after 2.2 + 13.168 ms, in
    // slot 73.
    let first = disk.read(Instant::START, REGION - 72, 72);
    assert_eq!(first, slot(132 + 72));
    // From track 646:3 to track 654:0 the skews add up to 8 * 162 - 3 * 8 = 48 (mod 72) sectors. The seek over
    // eight cylinders takes 4.372 ms, less than 21 slots.
    assert_eq!(disk.read(first, REGION, SECTORS), slot(204 + 48 + SECTORS));
}

#[test]
fn data_in_the_cache_cost_only_the_overhead() {
    let mut disk = hp97560();
    let now = disk.read(Instant::START, 0, SECTORS) + MILLISECOND * 20;
    assert_eq!(disk.read(now, 0, SECTORS), now + OVERHEAD);
    assert_eq!(disk.read(now + OVERHEAD, 32, SECTORS), now + OVERHEAD + OVERHEAD);
    assert_eq!(disk.movements(), 1);
}

#[test]
fn a_read_that_skips_ahead_repositions_the_disk() {
    let mut disk = hp97560();
    let now = disk.read(Instant::START, 0, SECTORS);
    // The overhead lasts until slot 66 + 10.6. Sector 24 has passed by then, in slot 74, and passes again a turn later.
    let now = disk.read(now, 24, SECTORS);
    assert_eq!(now, slot(74 + 72 + SECTORS));
    // The head, which was at sector 40, could reach sector 56 in time, but the disk still had to reposition.
    assert_eq!(disk.read(now, 56, SECTORS), slot(74 + 72 + 32 + SECTORS));
    assert_eq!(disk.movements(), 3);
}

#[test]
fn sixteen_readers_of_adjacent_parts_are_not_sequential_to_the_drive() {
    let mut disk = hp97560();
    let mut now = Instant::START;
    for block in 0..5 {
        for reader in 0..16 {
            now = disk.read(now, (reader * 5 + block) * SECTORS, SECTORS) + BUS;
        }
    }
    assert_eq!(disk.movements(), 80, "published: 1280 on sixteen disks");
}

#[test]
fn read_ahead_pauses_when_the_cache_is_full() {
    let mut disk = hp97560();
    let now = disk.read(Instant::START, 0, SECTORS) + MILLISECOND * 500;
    // 128 KiB are 256 sectors: the 16 sectors of the first command, and 240 more.
    let read = disk.statistics(now).transfer.as_nanos() * 72 / 14_992_504;
    assert_eq!(read, 256);
    assert_eq!(disk.read(now, SECTORS, SECTORS), now + OVERHEAD);
    assert_eq!(disk.movements(), 2, "the end of the pause costs a movement, even on a hit");
}

#[test]
fn blocks_overwritten_by_read_ahead_are_read_again() {
    let mut disk = hp97560();
    let mut now = disk.read(Instant::START, 0, SECTORS);
    for block in 1..=20 {
        now = disk.read(now, block * SECTORS, SECTORS);
    }
    let movements = disk.movements();
    assert!(disk.read(now, 0, SECTORS) > now + OVERHEAD);
    assert_eq!(disk.movements(), movements + 1);
}

#[test]
fn a_read_elsewhere_stops_read_ahead_at_once() {
    let mut disk = hp97560();
    let now = disk.read(Instant::START, 0, SECTORS);
    let later = now + MILLISECOND;
    disk.read(later, REGION, SECTORS);
    let statistics = disk.statistics(later);
    // Cylinder 654 is 653 cylinders away: the seek takes 8 + 5.224 ms.
    assert_eq!(statistics.seek, Duration::from_micros(3_640 + 13_224));
    // The first sixteen requested sectors, four sectors read ahead in the millisecond, and the second sixteen requested
    // sectors.
    assert_eq!(statistics.transfer.as_nanos() * 72 / 14_992_504, 16 + 4 + 16);
}

#[test]
fn a_full_stroke_takes_the_time_of_the_seek_curve() {
    let mut disk = changed(|disk| {
        disk.regions.value = vec![description::Region {
            first: description::TrackAddress { cylinder: 1961, head: 0 },
            last: description::TrackAddress { cylinder: 1961, head: 0 },
        }];
    });
    disk.read(Instant::START, 0, 1);
    assert_eq!(disk.statistics(Instant::START).seek, Duration::from_micros(23_688));
}

#[test]
fn a_write_is_reported_when_its_data_are_in_the_buffer() {
    let mut disk = hp97560();
    assert_eq!(disk.write_ready(Instant::START, 0, SECTORS), Instant::START);
    let arrived = Instant::START + BUS;
    assert_eq!(disk.write(arrived, 0, SECTORS), arrived);
    // The arm arrives 0.8192 + 2.2 + 3.64 ms after the start; slot 50 begins at 10.41 ms.
    assert_eq!(disk.settled(), slot(66));
}

#[test]
fn sequential_writes_fill_the_buffer_without_overflow() {
    let mut disk = hp97560();
    let room = 128 * 1024 / 512 / SECTORS as usize;
    let (mut now, mut settled, mut most) = (Instant::START, Vec::new(), 0);
    for block in 0..80 {
        let ready = disk.write_ready(now, block * SECTORS, SECTORS);
        let in_buffer = settled.iter().filter(|&&on_medium| on_medium > ready).count();
        let controller_free = if block == 0 { now } else { now + OVERHEAD };
        assert!(in_buffer < room, "block {block} overflows the buffer");
        assert!(
            ready == controller_free || in_buffer == room - 1,
            "block {block} waits though there is room"
        );
        most = most.max(in_buffer + 1);
        now = disk.write(ready, block * SECTORS, SECTORS);
        settled.push(disk.settled());
    }
    assert_eq!((most, disk.movements()), (room, 1));
}

#[test]
fn one_write_waits_in_the_buffer_and_the_next_waits_for_the_buffer() {
    let mut disk = hp97560();
    let first_reported = write(&mut disk, Instant::START, 0);
    let first_settled = disk.settled();
    let ready = disk.write_ready(first_reported, REGION, SECTORS);
    assert_eq!(ready, first_reported + OVERHEAD, "the buffer is empty while the first write is in progress");
    let second_reported = disk.write(ready + BUS, REGION, SECTORS);
    assert_eq!(
        disk.write_ready(second_reported, 0, SECTORS),
        first_settled,
        "the second write leaves the buffer"
    );
    assert_eq!(disk.movements(), 2);
}

#[test]
fn a_sequential_writer_waits_only_for_the_medium() {
    let mut disk = hp97560();
    let mut now = Instant::START;
    for block in 0..19 {
        now = write(&mut disk, now, block * SECTORS);
        let skew = 8 * ((block * SECTORS + SECTORS - 1) / 72);
        assert_eq!(disk.settled(), slot(66 + block * SECTORS + skew));
    }
    assert_eq!(disk.movements(), 1);
}

#[test]
fn a_late_sequential_write_waits_a_rotation() {
    let mut disk = hp97560();
    write(&mut disk, Instant::START, 0);
    let late = disk.settled();
    write(&mut disk, late, SECTORS);
    assert_eq!(disk.settled(), slot(66 + 72 + SECTORS));
    assert_eq!(disk.movements(), 2);
}

#[test]
fn a_read_waits_until_the_writes_are_on_the_medium() {
    let mut disk = hp97560();
    let reported = write(&mut disk, Instant::START, 0);
    assert_eq!(disk.settled(), slot(66));
    // The read is on the same track: sector 0 passes again after the rest of the rotation.
    assert_eq!(disk.read(reported, 0, SECTORS), slot(66 + 72));
}

#[test]
fn a_write_stops_read_ahead_and_starts_from_its_track() {
    let mut disk = hp97560();
    let now = disk.read(Instant::START, 0, SECTORS);
    write(&mut disk, now, SECTORS);
    // The write is on the same track and needs no seek. But its sectors have already passed, so the write waits a
    // rotation for them.
    assert_eq!(disk.settled(), slot(66 + 72 + SECTORS));
    assert_eq!(disk.statistics(now).seek, Duration::from_micros(3_640));
    assert_eq!(disk.movements(), 2);
}

#[test]
fn a_repositioned_write_pays_the_exposed_time() {
    let exposed = Duration::from_micros(300);
    let mut disk = changed(|disk| {
        disk.controller.exposed_per_repositioned_write = Some(Sourced::new(Time(exposed), "this test"));
    });
    write(&mut disk, Instant::START, 0);
    write(&mut disk, Instant::START + BUS, SECTORS);
    let statistics = disk.statistics(disk.settled());
    assert_eq!(statistics.overhead, OVERHEAD + OVERHEAD + exposed);
    // The busy time ends with the second write, which continues the first. It began after the bus, overhead and exposed
    // time of the first write; these times of the second write overlap with the first write.
    assert_eq!(disk.settled(), Instant::START + BUS + OVERHEAD + exposed + statistics.busy());
}

#[test]
fn a_disk_without_cache_turns_once_for_each_block() {
    let mut disk = changed(|disk| disk.controller.cache.value = description::Bytes(0));
    let first = disk.read(Instant::START, 0, SECTORS);
    assert_eq!(disk.read(first, SECTORS, SECTORS), slot(66 + 72 + SECTORS));
}

#[test]
fn the_end_of_the_disk_ends_read_ahead() {
    let mut disk = hp97560();
    let last = disk.capacity_sectors() - SECTORS;
    let now = disk.read(Instant::START, last, SECTORS) + MILLISECOND * 100;
    assert_eq!(disk.read(now, last, SECTORS), now + OVERHEAD);
}

#[test]
fn a_streaming_disk_charges_only_for_repositioning() {
    let mut disk = Model::new(&DiskDescription::load("streaming-20").unwrap(), 0.0);
    let transfer = Duration::from_micros(3_125); // 64 KiB at 20 * 2^20 B/s
    let first = disk.read(Instant::START, 1_000, 128);
    assert_eq!(first, Instant::START + MILLISECOND * 8 + transfer);
    let second = disk.read(first + MILLISECOND, 1_128, 128);
    assert_eq!(second, first + transfer, "the block was read ahead before the command arrived");
    let idle = second + MILLISECOND * 100;
    assert_eq!(disk.read(idle, 1_256, 128), idle);
    assert_eq!(disk.read(idle, 1_384, 128), idle + transfer, "read-ahead covers one command and no more");
    assert_eq!(disk.movements(), 1);
}

#[test]
fn a_streaming_disk_can_lack_read_ahead() {
    let mut disk = Model::new(&DiskDescription::load("st318416w").unwrap(), 0.0);
    let transfer = Duration::from_micros(3_125);
    let first = disk.read(Instant::START, 1_000, 128);
    let late = disk.read(first + MILLISECOND, 1_128, 128);
    assert_eq!(late, first + MILLISECOND + transfer, "its transfer began when the command arrived");
    assert_eq!(disk.read(late, 1_256, 128), late + transfer);
    assert_eq!(disk.movements(), 1);
}

#[test]
fn a_streaming_disk_buffers_one_write() {
    let mut disk = Model::new(&DiskDescription::load("streaming-20").unwrap(), 0.0);
    let transfer = Duration::from_micros(3_125);
    let first = Instant::START + MILLISECOND * 8 + transfer;
    assert_eq!(disk.write_ready(Instant::START, 0, 128), Instant::START);
    assert_eq!(disk.write(Instant::START, 0, 128), Instant::START);
    assert_eq!(disk.settled(), first);
    assert_eq!(disk.write_ready(Instant::START, 0, 128), Instant::START);
    assert_eq!(disk.write(Instant::START, 128, 128), Instant::START);
    assert_eq!(disk.settled(), first + transfer);
    assert_eq!(disk.write_ready(Instant::START, 0, 128), first);
    assert_eq!(disk.read(first, 5_000, 128), first + transfer + MILLISECOND * 8 + transfer);
}

#[test]
fn flash_reads_faster_than_it_writes() {
    let mut disk = Model::new(&DiskDescription::load("flash-qlc").unwrap(), 0.0);
    let positioning = Duration::from_nanos(90_910);
    // Transfer times of 64 KiB at 560 MB/s and at 80 MB/s, rounded up to a nanosecond.
    let (read, written) = (Duration::from_nanos(117_029), Duration::from_nanos(819_200));
    let end = disk.read(Instant::START, 1_000, 128);
    assert_eq!(end, Instant::START + positioning + read);
    disk.write(end, 5_000, 128);
    assert_eq!(disk.settled(), end + positioning + written);
}

#[test]
#[should_panic(expected = "16 sectors from 2647072 on exceed the disk of 2647080 sectors")]
fn a_command_beyond_the_end_panics() {
    let mut disk = hp97560();
    disk.read(Instant::START, disk.capacity_sectors() - 8, SECTORS);
}

#[test]
#[should_panic(expected = "a command at")]
fn a_command_from_the_past_panics() {
    let mut disk = hp97560();
    let now = disk.read(Instant::START, 0, SECTORS);
    disk.read(now, 0, SECTORS);
    disk.read(Instant::START, 0, SECTORS);
}
