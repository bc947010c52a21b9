//! Tests of invariants that hold for every sequence of commands. The commands are random: reads and writes, near and
//! far, with and without idle time.

use description::{Bytes, Description, DiskDescription, Sourced, Time};
use disk::Model;
use machine::{Duration, Instant};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BUS: Duration = Duration::from_nanos(819_200);

/// Returns one of the built-in disks, sometimes with an extreme change: a small cache, or exposed time for writes.
fn any_disk(random: &mut ChaCha8Rng) -> Model {
    let names = ["hp97560", "hp97560", "streaming-20", "st318416w", "drawn-3600", "flash-qlc"];
    let name = names[random.random_range(0..names.len())];
    let mut description = DiskDescription::load(name).unwrap();
    if let DiskDescription::Mechanical(disk) = &mut description {
        disk.controller.cache.value = Bytes([0, 512, 8_192, 131_072][random.random_range(0..4)]);
        let exposed = Sourced::new(Time(Duration::from_micros(250)), "this test");
        disk.controller.exposed_per_repositioned_write = random.random_bool(0.5).then_some(exposed);
    }
    Model::new(&description, random.random()).drawing_from(random.random())
}

/// Returns a sector: just after the last command, a little after it, a little before it, or arbitrary.
fn any_sector(random: &mut ChaCha8Rng, last_end: u64, limit: u64) -> u64 {
    let sector = match random.random_range(0..6) {
        0..3 => last_end,
        3 => last_end + random.random_range(0..300),
        4 => last_end.saturating_sub(random.random_range(0..300)),
        _ => random.random_range(0..limit),
    };
    sector.min(limit - 1)
}

fn any_pause(random: &mut ChaCha8Rng) -> Duration {
    let longest = [1, 10_000, 5_000_000, 200_000_000][random.random_range(0..4)];
    Duration::from_nanos(random.random_range(0..longest))
}

/// Issues a hundred commands to a disk and checks the invariants after each; returns a result by which runs can be
/// compared.
fn run(seed: u64) -> (Instant, disk::Statistics) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut disk = any_disk(&mut random);
    let limit = disk.capacity_sectors() - 200;
    let (mut now, mut end) = (Instant::START, 0);
    for command in 1..=100 {
        let first = any_sector(&mut random, end, limit);
        let sectors = [1, 8, 16, 72, 200][random.random_range(0..5)];
        end = first + sectors;
        let issued = now + any_pause(&mut random);
        let before = disk.statistics(issued);
        if random.random_bool(0.6) {
            let ready = disk.read(issued, first, sectors);
            assert!(ready >= issued && ready >= disk.settled(), "seed {seed}, command {command}");
            now = ready + BUS;
        } else {
            let ready = disk.write_ready(issued, first, sectors);
            assert!(ready >= issued, "seed {seed}, command {command}");
            now = disk.write(ready + BUS, first, sectors);
            assert!(disk.settled() >= now && disk.settled() > issued, "seed {seed}, command {command}");
        }
        let statistics = disk.statistics(now);
        let moved = statistics.movements - before.movements;
        assert!(moved <= 1, "seed {seed}, command {command}: at most one movement each");
        assert!(statistics.busy() >= before.busy(), "seed {seed}, command {command}");
        let elapsed = now.max(disk.settled()).since(Instant::START);
        assert!(
            statistics.busy() <= elapsed,
            "seed {seed}, command {command}: busy for no longer than the elapsed time"
        );
    }
    (now, disk.statistics(now))
}

#[test]
fn no_command_completes_early_and_no_disk_is_busy_for_longer_than_the_elapsed_time() {
    for seed in 0..1_000 {
        run(seed);
    }
}

#[test]
fn the_same_commands_take_the_same_time() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
}
