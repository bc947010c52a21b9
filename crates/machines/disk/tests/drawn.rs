//! Tests of a disk with random latency: the time of each access, and the average over all accesses.
//!
//! The numbers are those of `drawn-3600`: 0.04 ms per cylinder of 320 KiB, a latency of 0 to 16.66 ms, 1.024 ms for 4
//! KiB.

use description::{Description, DiskDescription, Sourced, Time};
use disk::{Activity, Model};
use machine::{Duration, Instant};

/// Number of sectors of 512 B in a block of 4 KiB. The next constant counts those in a cylinder of 80 such blocks.
const BLOCK: u64 = 8;
const CYLINDER: u64 = 80 * BLOCK;

const BLOCK_TIME: Duration = Duration::from_micros(1_024);
const LATENCY_MOST: Duration = Duration::from_micros(16_660);

fn drawn(seed: u64) -> Model {
    Model::new(&DiskDescription::load("drawn-3600").unwrap(), 0.0).drawing_from(seed)
}

/// Returns the same disk without rotational latency.
fn without_latency() -> Model {
    let mut description = DiskDescription::load("drawn-3600").unwrap();
    let DiskDescription::Drawn(disk) = &mut description else { panic!("another kind of disk") };
    disk.mean_latency = Sourced::new(Time(Duration::ZERO), "this test");
    Model::new(&description, 0.0)
}

fn read_times(disk: &mut Model, blocks: impl Iterator<Item = u64>) -> Vec<Duration> {
    let mut now = Instant::START;
    blocks
        .map(|block| {
            let begin = now;
            now = disk.read(begin, block * BLOCK, BLOCK);
            now.since(begin)
        })
        .collect()
}

#[test]
fn a_seek_is_linear_in_distance_and_free_within_a_cylinder() {
    let mut disk = without_latency();
    let mut now = Instant::START;
    let mut seek_to = |sector| {
        let end = disk.read(now, sector, BLOCK);
        let took = end.since(now);
        now = end;
        took - BLOCK_TIME
    };
    assert_eq!(seek_to(0), Duration::ZERO, "the arm starts at cylinder 0");
    assert_eq!(seek_to(CYLINDER - BLOCK), Duration::ZERO);
    assert_eq!(seek_to(CYLINDER), Duration::from_micros(40));
    for cylinders in [1, 2, 500, 4_095] {
        seek_to(0);
        assert_eq!(seek_to(cylinders * CYLINDER), Duration::from_micros(40) * cylinders);
        assert_eq!(seek_to(0), Duration::from_micros(40) * cylinders, "the way back takes the same time");
    }
}

#[test]
fn the_arm_stays_at_the_end_of_an_access() {
    let mut disk = without_latency();
    let end = disk.read(Instant::START, CYLINDER - BLOCK, 2 * BLOCK);
    assert_eq!(end, Instant::START + BLOCK_TIME * 2, "continuing on the next cylinder takes no time");
    assert_eq!(disk.read(end, CYLINDER, BLOCK), end + BLOCK_TIME);
    assert_eq!(disk.statistics(end).seek, Duration::ZERO);
}

#[test]
fn reads_and_writes_have_the_same_transfer_rate() {
    for blocks in [1, 8, 12, 40] {
        let mut disk = without_latency();
        let read = disk.read(Instant::START, 0, blocks * BLOCK);
        assert_eq!(read, Instant::START + BLOCK_TIME * blocks);
        let ready = disk.write_ready(read, 0, blocks * BLOCK);
        assert_eq!(ready, read);
        assert_eq!(disk.write(ready, 0, blocks * BLOCK), ready + BLOCK_TIME * blocks);
    }
}

/// The sum of n uniform latencies has the standard deviation 16.66 ms * sqrt(n / 12). The test permits four standard
/// deviations.
#[test]
fn the_latency_of_any_access_is_uniform_with_the_specified_mean() {
    let accesses = 20_000;
    for seed in 0..3 {
        let latencies: Vec<f64> = read_times(&mut drawn(seed), (0..accesses).map(|block| block % 80))
            .iter()
            .map(|&took| (took - BLOCK_TIME).as_nanos() as f64 / LATENCY_MOST.as_nanos() as f64)
            .collect();
        assert!(latencies.iter().all(|latency| (0.0..=1.0).contains(latency)));
        let n = accesses as f64;
        let mean = latencies.iter().sum::<f64>() / n;
        assert!((mean - 0.5).abs() < 4.0 / (12.0 * n).sqrt(), "seed {seed}: the mean is {mean}");
        for tenth in 0..10 {
            let within = |latency: &&f64| (**latency * 10.0).floor() as i32 == tenth;
            let share = latencies.iter().filter(within).count() as f64 / n;
            assert!(
                (share - 0.1).abs() < 4.0 * (0.09 / n).sqrt(),
                "seed {seed}: tenth {tenth} has the share {share}"
            );
        }
    }
}

#[test]
fn the_seed_determines_the_times() {
    let times = |seed| read_times(&mut drawn(seed), (0..1_000).map(|block| block * 7 % 4_000));
    assert_eq!(times(5), times(5));
    assert_ne!(times(5), times(6));
    let unseeded = &mut Model::new(&DiskDescription::load("drawn-3600").unwrap(), 0.0);
    assert_eq!(read_times(unseeded, 0..100), read_times(&mut drawn(0), 0..100));
}

#[test]
fn a_write_completes_when_it_is_on_the_medium() {
    let mut disk = drawn(1);
    let written = disk.write(Instant::START, 0, BLOCK);
    assert!(written >= Instant::START + BLOCK_TIME && written <= Instant::START + BLOCK_TIME + LATENCY_MOST);
    assert_eq!(disk.settled(), written);
}

#[test]
fn recorded_phases_are_consecutive_and_agree_with_statistics() {
    let mut disk = drawn(2);
    disk.record_phases();
    let end = disk.read(Instant::START, 10 * CYLINDER, BLOCK);
    let phases = disk.take_phases();
    let activities: Vec<_> = phases.iter().map(|phase| phase.activity).collect();
    assert_eq!(activities, [Activity::Seek, Activity::Rotation, Activity::Transfer]);
    assert!(phases.windows(2).all(|pair| pair[0].end == pair[1].begin));
    assert_eq!((phases[0].begin, phases[2].end), (Instant::START, end));
    let statistics = disk.statistics(end);
    assert_eq!(statistics.seek, Duration::from_micros(400));
    assert_eq!(statistics.busy(), end.since(Instant::START));
    assert_eq!(statistics.movements, 1);
}
