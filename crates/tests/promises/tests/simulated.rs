//! Promises of the file system on the simulated machine, for any modelled machine.

use std::cell::RefCell;
use std::rc::Rc;

use description::{Description, MachineDescription};
use experiment as _;
use fs::{
    Advice, Client, ClientSettings, Configuration, Error, FailureKind, Features, File, FileId,
    IoNodeSettings, NumberedFile, PageCache, PageCacheSettings, Prefetch, Scheduling, serve,
};
use layout::Striping;
use machine::{Disk, Duration, Machine, Memory, Payload};
use promises::{
    Base, check_all, demand_is_served_before_background, random_requests_are_all_answered,
    reads_delayed_by_writes_are_reported, selections_of_a_seed,
};
use sim::conformance::Simulated;
use sim::{Layout, Settings, SimMachine, Simulation};

fn check(machine: &str, layout: Layout, scheduling: Scheduling) {
    let settings = Settings { layout, block_bytes: 512, ..Settings::default() };
    check_all(&Simulated::of(machine, settings).expect("built in"), scheduling);
}

#[test]
fn promises_are_kept_on_a_machine_without_costs() {
    check("golden", Layout::default(), Scheduling::CyclicScan);
}

#[test]
fn promises_are_kept_on_the_starfish_machine() {
    check("starfish-1996", Layout::default(), Scheduling::CyclicScan);
    check("starfish-1996", Layout::Random, Scheduling::CyclicScan);
}

#[test]
fn promises_are_kept_on_a_cluster() {
    check("cluster-switch", Layout::Random, Scheduling::CyclicScan);
}

#[test]
fn promises_are_kept_under_round_robin_scheduling() {
    check("starfish-1996", Layout::Random, Scheduling::RoundRobin);
}

#[test]
fn promises_are_kept_under_read_priority() {
    check("starfish-1996", Layout::Random, Scheduling::ReadPriority);
    check("cluster-switch", Layout::Random, Scheduling::BoundedReadPriority);
}

#[test]
fn promises_are_kept_under_fcfs_and_fair_scan() {
    check("starfish-1996", Layout::Random, Scheduling::Fcfs);
    check("starfish-1996", Layout::Random, Scheduling::FairScan);
}

#[test]
fn selections_of_any_shape_agree_with_files_in_memory() {
    for (machine, seeds) in [("golden", 0..60), ("cluster-switch", 60..90)] {
        let settings = Settings { block_bytes: 512, ..Settings::default() };
        let testbed = Simulated::of(machine, settings).expect("built in");
        seeds.for_each(|seed| selections_of_a_seed(&testbed, seed));
    }
}

#[test]
fn demand_reads_overtake_background_reads_if_disks_take_time() {
    for machine in ["starfish-1996", "cluster-switch"] {
        let settings = Settings { block_bytes: 512, ..Settings::default() };
        let testbed = Simulated::of(machine, settings).expect("built in");
        for configuration in Configuration::ALL {
            for scheduling in Scheduling::ALL {
                demand_is_served_before_background(&testbed, Base { configuration, scheduling });
            }
        }
    }
}

#[test]
fn an_io_node_reports_reads_delayed_by_writes() {
    let settings = Settings { block_bytes: 512, ..Settings::default() };
    let testbed = Simulated::of("cluster-switch", settings).expect("built in");
    let configuration = Configuration::Agent;
    for scheduling in
        [Scheduling::Fcfs, Scheduling::FairScan, Scheduling::RoundRobin, Scheduling::BoundedReadPriority]
    {
        reads_delayed_by_writes_are_reported(&testbed, Base { configuration, scheduling });
    }
}

/// STARFISH_REQUESTS sets the number of requests.
#[test]
fn all_random_requests_are_answered() {
    let requests = std::env::var("STARFISH_REQUESTS").map_or(20_000, |text| text.parse().expect("a number"));
    for (seed, machine) in (1..).zip(["golden", "cluster-switch"]) {
        let base = Configuration::Agent.into();
        let settings = Settings { block_bytes: 512, ..Settings::default() };
        let limit = Duration::from_secs(1000 + requests);
        let testbed = Simulated::of(machine, settings).expect("built in");
        random_requests_are_all_answered(&testbed, base, requests / 2, seed, limit);
    }
}

/// Returns an empty file of this number over all disks, in blocks of `block_bytes` bytes.
async fn described(client: &Client<SimMachine>, number: u64, block_bytes: u64) -> NumberedFile {
    let striping = Striping::new(block_bytes, client.disks()).expect("a striping");
    client.new_numbered(FileId(number), striping).await.expect("all disks are there")
}

/// Creates a file of this number, with `bytes` bytes of zeros.
async fn new_file(
    client: &Client<SimMachine>,
    number: u64,
    block_bytes: u64,
    bytes: u64,
) -> File<SimMachine> {
    let file = client.numbered(described(client, number, block_bytes).await).await.expect("opened");
    file.make_stripes().await.expect("room");
    file.truncate(bytes).await.expect("room");
    file
}

/// The memory has space for one more block than the cache, and two reads of partially written blocks need this space.
#[test]
fn a_failing_read_does_not_affect_reads_that_wait_for_memory() {
    let description = MachineDescription::load("starfish-1996").expect("built in");
    let settings = Settings { block_bytes: 512, ..Settings::default() };
    let simulation = Simulation::new(&description, settings);
    let (io_node, compute) = (simulation.io_nodes()[0].clone(), simulation.compute_nodes()[0].clone());
    let test = async move {
        let settings = IoNodeSettings {
            scheduling: Scheduling::Fcfs,
            cache_blocks: 3,
            block_bytes_max: 512,
            prefetch_blocks: 0,
            ..IoNodeSettings::report()
        };
        io_node.spawn("I/O node", serve(io_node.clone(), settings));
        let names = vec![io_node.node()];
        let client = Client::connect(compute.clone(), names, ClientSettings::report()).await;
        let file = new_file(&client.expect("it answers"), 2, 512, 2048).await;
        let disk = &io_node.disks()[0];
        let object = disk.open(file.name()).await.expect("just made").id;
        disk.put(object, 0, &Payload::from(vec![1; 2048])).expect("room");
        disk.damage(object, 100, 10);
        for block in [1, 2] {
            file.write(block * 512, 5, &Memory::real(vec![2; 5]), 0).await.expect("written");
        }
        let outcomes = Rc::new(RefCell::new(Vec::new()));
        for block in 0..3 {
            let (file, outcomes) = (file.clone(), outcomes.clone());
            compute.spawn("reader", async move {
                let memory = Memory::real(vec![0; 512]);
                let read = file.read(block * 512, 512, &memory, 0).await;
                outcomes.borrow_mut().push((block, read.is_ok().then(|| memory.into_vec())));
                Ok(())
            });
        }
        while outcomes.borrow().len() < 3 {
            compute.sleep_until(compute.now() + Duration::from_millis(1)).await;
        }
        let partly = Some([[2; 5].as_slice(), &[1; 507]].concat());
        outcomes.borrow_mut().sort_unstable();
        assert_eq!(outcomes.take(), [(0, None), (1, Some(partly.clone())), (2, Some(partly))]);
        // Every read of the block fails, but the block can be written.
        let memory = Memory::real(vec![3; 512]);
        assert!(file.read(0, 512, &memory, 0).await.is_err());
        file.write(0, 512, &memory, 0).await.expect("written");
        assert_eq!(file.read(0, 512, &memory, 0).await, Ok(512));
    };
    simulation.run(test).expect("no task fails");
}

#[test]
fn a_damaged_block_fails_only_its_readers() {
    let description = MachineDescription::load("starfish-1996").expect("built in");
    let settings = Settings { block_bytes: 512, ..Settings::default() };
    let simulation = Simulation::new(&description, settings);
    let (io_nodes, compute) = (simulation.io_nodes()[..2].to_vec(), simulation.compute_nodes()[0].clone());
    let test = async move {
        for node in &io_nodes {
            node.spawn("I/O node", serve(node.clone(), IoNodeSettings::report()));
        }
        let names = io_nodes.iter().map(|node| node.node()).collect();
        let client = Client::connect(compute, names, ClientSettings::report()).await.expect("they answer");
        let file = new_file(&client, 2, 512, 4096).await;
        for node in &io_nodes {
            let object = node.disks()[0].open(file.name()).await.expect("just made").id;
            node.disks()[0].put(object, 0, &Payload::from(vec![1; 2048])).expect("room");
            node.disks()[0].damage(object, 600, 10);
        }
        let memory = Memory::real(vec![0; 512]);
        for block in 0..8 {
            let read = file.read(block * 512, 512, &memory, 0).await;
            // The second block of each stripe.
            if block / 2 == 1 {
                let Err(error) = read else { panic!("{read:?}") };
                let Error::Remote { failure, .. } = &*error else { panic!("{error:?}") };
                assert!(
                    failure.kind == FailureKind::Damaged && failure.text.contains("offset 600"),
                    "{failure}"
                );
            } else {
                assert_eq!(read, Ok(512), "{block}");
            }
        }
        file.write(1024, 512, &memory, 0).await.expect("all of the block");
        file.flush().await.expect("nothing is lost");
        assert_eq!(file.read(1024, 512, &memory, 0).await, Ok(512));
    };
    simulation.run(test).expect("no task fails");
}

const PAGE: u64 = 64 * 1024;

/// Returns a client of an agent with a cache of `cache_blocks` blocks, set as on a real machine.
async fn client_of_an_agent(
    io_node: &SimMachine,
    compute: &SimMachine,
    cache_blocks: usize,
) -> Client<SimMachine> {
    let settings =
        IoNodeSettings { cache_blocks, block_bytes_max: PAGE, prefetch_blocks: 0, ..IoNodeSettings::agent() };
    io_node.spawn("I/O node", serve(io_node.clone(), settings));
    let names = vec![io_node.node()];
    Client::connect(compute.clone(), names, ClientSettings::agent()).await.expect("it answers")
}

/// Returns the time to read `files` files of `pages` pages: a buffer from each file in turn, as a merge does.
fn time_to_read_in_turn(files: u64, pages: u64) -> Duration {
    const BUFFER: u64 = 4 * PAGE;
    let description = MachineDescription::load("pdiol-2003").expect("built in");
    let simulation = Simulation::new(&description, Settings::default());
    let (io_node, compute) = (simulation.io_nodes()[0].clone(), simulation.compute_nodes()[0].clone());
    let test = async move {
        let client = client_of_an_agent(&io_node, &compute, 64).await;
        for file in 0..files {
            new_file(&client, 2 + file, PAGE, pages * PAGE).await;
        }
        let settings = PageCacheSettings { prefetch: Prefetch::Adaptive, ..PageCacheSettings::default() };
        let cache = PageCache::new(client, settings);
        let begun = compute.now();
        let mut opened = Vec::new();
        for file in 0..files {
            let run = described(cache.client(), 2 + file, PAGE).await;
            let run = NumberedFile { bytes: pages * PAGE, ..run };
            let run = cache.open_numbered(run).await.expect("opened");
            run.advise(Advice::Sequential);
            opened.push(run);
        }
        for offset in (0..pages * PAGE).step_by(BUFFER as usize) {
            for run in &opened {
                let data = run.read(offset, BUFFER).await.expect("it is readable");
                assert_eq!(data.len(), BUFFER.min(pages * PAGE - offset));
            }
        }
        compute.now().since(begun)
    };
    simulation.run(test).expect("no task fails")
}

/// If a program reads several files in turn, the disk reads long runs of each file and rarely seeks.
#[test]
fn files_read_in_turn_are_read_in_long_runs() {
    let (one, many) = (time_to_read_in_turn(1, 20 * 27), time_to_read_in_turn(20, 27));
    assert!(many.as_nanos() * 10 < one.as_nanos() * 13, "{many:?} instead of {one:?}");
}

/// A reader waits for few writes, even if the cache is full of dirty blocks of others.
#[test]
fn a_read_waits_for_few_writes_of_others() {
    const WRITTEN: u64 = 400;
    let description = MachineDescription::load("pdiol-2003").expect("built in");
    let simulation = Simulation::new(&description, Settings::default());
    let (io_node, compute) = (simulation.io_nodes()[0].clone(), simulation.compute_nodes()[0].clone());
    let test = async move {
        let client = client_of_an_agent(&io_node, &compute, 512).await;
        let (read, written) = (new_file(&client, 2, PAGE, PAGE).await, new_file(&client, 3, PAGE, 0).await);
        let memory = Memory::real(vec![1; (WRITTEN * PAGE) as usize]);
        written.write(0, WRITTEN * PAGE, &memory, 0).await.expect("accepted");
        let begun = compute.now();
        assert_eq!(read.read(0, PAGE, &Memory::real(vec![0; PAGE as usize]), 0).await, Ok(PAGE));
        let read = compute.now().since(begun);
        written.flush().await.expect("written");
        let flushed = compute.now().since(begun);
        assert!(flushed.as_nanos() > 4 * read.as_nanos(), "{read:?} of {flushed:?}");
    };
    simulation.run(test).expect("no task fails");
}

/// Cuts the power of an I/O node at some time and checks a numbered file. Flushed data exist, and lost data are
/// reported to their writer once. In the other ranges clients read written data or zeros.
fn lose_power_with_numbered_files(seed: u64) -> (bool, bool) {
    const BYTES: u64 = 3000;
    let description = MachineDescription::load("cluster-switch").expect("built in");
    let settings = Settings { block_bytes: 512, ..Settings::default() };
    let simulation = Simulation::new(&description, settings);
    simulation.expect_crashes();
    let (io_node, compute) = (simulation.io_nodes()[0].clone(), simulation.compute_nodes()[0].clone());
    let test = async move {
        let serve_as = |incarnation| {
            let settings = IoNodeSettings {
                incarnation,
                cache_blocks: 16,
                block_bytes_max: 512,
                ..IoNodeSettings::agent()
            };
            io_node.spawn("I/O node", serve(io_node.clone(), settings));
        };
        serve_as(1);
        let names = vec![io_node.node()];
        let client =
            Client::connect(compute.clone(), names, ClientSettings::agent()).await.expect("it answers");
        let mut files = Vec::new();
        for number in 1..=2 {
            let file = client.numbered(described(&client, number, 512).await).await.expect("opened");
            file.write(0, BYTES, &Memory::real(vec![number as u8; BYTES as usize]), 0)
                .await
                .expect("written");
            files.push(file);
        }
        let flushes_all = seed % 2 == 1;
        match flushes_all {
            false => files[0].flush().await.expect("flushed"),
            true => client.flush_own().await.expect("flushed"),
        }
        io_node.crash(seed);
        serve_as(2);
        assert_eq!(files[0].flush().await, Ok(()), "all of it had been flushed");
        let other = files[1].flush().await.map_err(|error| *error);
        let is_reported = matches!(other, Err(Error::WriteLost { .. }));
        assert!(if flushes_all { other.is_ok() } else { is_reported }, "{other:?}");
        assert_eq!(files[1].flush().await, Ok(()), "it was reported");
        let disk = &io_node.disks()[0];
        let is_there = disk.open("/0000000000000002").await.is_ok();
        let mut found = Vec::new();
        for (number, file) in (1..).zip(files) {
            file.set_bytes(BYTES);
            let memory = Memory::real(vec![7; BYTES as usize]);
            assert_eq!(file.read(0, BYTES, &memory, 0).await, Ok(BYTES));
            let data = memory.into_vec().expect("real memory");
            assert!(data.iter().all(|byte| [0, number].contains(byte)), "{data:?}");
            found.push(data.iter().all(|byte| *byte == number));
        }
        assert!(found[0] && (found[1] || !flushes_all), "flushed data exist");
        (is_there, found[1])
    };
    simulation.run(test).expect("no task fails")
}

#[test]
fn flushed_numbered_files_survive_power_cuts() {
    let outcomes: Vec<(bool, bool)> = (0..60).map(lose_power_with_numbered_files).collect();
    let count = |is: fn(&(bool, bool)) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    // Unflushed data are sometimes lost completely, and sometimes partially.
    assert!((10..50).contains(&count(|(is_there, _)| *is_there)), "{outcomes:?}");
    assert!(count(|(_, is_whole)| *is_whole) < 60, "{outcomes:?}");
}

#[test]
fn an_earlier_release_can_replace_a_later_one() {
    let description = MachineDescription::load("cluster-switch").expect("built in");
    let simulation = Simulation::new(&description, Settings { block_bytes: 512, ..Settings::default() });
    simulation.expect_crashes();
    let (io_node, compute) = (simulation.io_nodes()[0].clone(), simulation.compute_nodes()[0].clone());
    let test = async move {
        let serve_as = |incarnation, features| {
            let settings =
                IoNodeSettings { incarnation, features, block_bytes_max: 512, ..IoNodeSettings::agent() };
            io_node.spawn("I/O node", serve(io_node.clone(), settings));
        };
        serve_as(1, Features::all());
        let client = Client::connect(compute, vec![io_node.node()], ClientSettings::agent()).await?;
        let cache = PageCache::new(client.clone(), PageCacheSettings::default());
        for number in 1..=2 {
            let file = cache.open_numbered(described(&client, number, 512).await).await?;
            file.write(0, Payload::from(vec![number as u8; 100])).await?;
            file.flush().await?;
            assert_eq!(file.file().next_hole(0).await?, Some(100));
            io_node.crash(number);
            serve_as(number + 1, Features::empty());
        }
        fs::Result::Ok(())
    };
    simulation.run(test).expect("no task fails").expect("all of it is done");
}

/// Truncates a file, flushes it, and cuts the power of its I/O nodes; returns the bytes after the truncated end, read
/// after the restart.
fn lose_power_after_a_truncation(seed: u64) -> Vec<u8> {
    const BYTES: u64 = 3000;
    let description = MachineDescription::load("cluster-switch").expect("built in");
    let settings = Settings { block_bytes: 512, ..Settings::default() };
    let simulation = Simulation::new(&description, settings);
    simulation.expect_crashes();
    let (io_nodes, compute) = (simulation.io_nodes()[..2].to_vec(), simulation.compute_nodes()[0].clone());
    let test = async move {
        let serve_as = |incarnation| {
            let settings = IoNodeSettings { incarnation, block_bytes_max: 512, ..IoNodeSettings::agent() };
            for node in &io_nodes {
                node.spawn("I/O node", serve(node.clone(), settings.clone()));
            }
        };
        serve_as(1);
        let names = io_nodes.iter().map(|node| node.node()).collect();
        let client = Client::connect(compute, names, ClientSettings::agent()).await.expect("they answer");
        let file = new_file(&client, 2, 512, 0).await;
        file.write(0, BYTES, &Memory::real(vec![7; BYTES as usize]), 0).await.expect("written");
        file.flush().await.expect("flushed");
        file.truncate(100).await.expect("cut");
        file.flush().await.expect("flushed");
        io_nodes.iter().for_each(|node| node.crash(seed));
        serve_as(2);
        let file = NumberedFile { bytes: BYTES, ..described(&client, 2, 512).await };
        let file = client.numbered(file).await.expect("opened");
        let memory = Memory::real(vec![1; BYTES as usize]);
        assert_eq!(file.read(0, BYTES, &memory, 0).await, Ok(BYTES));
        memory.into_vec().expect("real memory").split_off(100)
    };
    simulation.run(test).expect("no task fails")
}

#[test]
fn a_flushed_truncation_survives_power_cuts() {
    for seed in 0..20 {
        assert!(lose_power_after_a_truncation(seed).iter().all(|byte| *byte == 0), "seed {seed}");
    }
}
