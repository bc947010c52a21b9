//! The file system keeps its promises on the simulated machine, whatever that is a model of.

mod testbed;

use description::{Description, MachineDescription};
use fs::conformance::{check_all, demand_is_served_before_background};
use fs::{Client, ClientSettings, Error, FailureKind, FileId, IoNodeSettings, serve};
use machine::{Disk, Machine, Memory, Payload};
use sim::{Layout, Settings, Simulation};
use testbed::Simulated;

fn check(machine: &str, layout: Layout) {
    let description = MachineDescription::load(machine).expect("built in");
    check_all(&Simulated {
        description,
        settings: Settings { layout, block_bytes: 512, ..Settings::default() },
    });
}

#[test]
fn promises_are_kept_on_a_machine_without_costs() {
    check("golden", Layout::default());
}

#[test]
fn promises_are_kept_on_the_starfish_machine() {
    check("starfish-1996", Layout::default());
    check("starfish-1996", Layout::Random);
}

#[test]
fn promises_are_kept_on_a_cluster() {
    check("cluster-switch", Layout::Random);
}

#[test]
fn demand_overtakes_background_where_disks_take_time() {
    for machine in ["starfish-1996", "cluster-switch"] {
        let description = MachineDescription::load(machine).expect("built in");
        let settings = Settings { block_bytes: 512, ..Settings::default() };
        demand_is_served_before_background(&Simulated { description, settings });
    }
}

#[test]
fn a_damaged_block_fails_its_readers_and_nobody_else() {
    let description = MachineDescription::load("starfish-1996").expect("built in");
    let settings = Settings { block_bytes: 512, ..Settings::default() };
    let simulation = Simulation::new(&description, settings).expect("a sound description");
    let (io_nodes, compute) = (simulation.io_nodes()[..2].to_vec(), simulation.compute_nodes()[0].clone());
    let test = async move {
        for node in &io_nodes {
            node.spawn("I/O node", serve(node.clone(), IoNodeSettings::default()));
        }
        let names = io_nodes.iter().map(|node| node.node()).collect();
        let client = Client::connect(compute, names, ClientSettings::default()).await.expect("they answer");
        let file = client.create("file", FileId(1), 512).await.expect("created");
        for node in &io_nodes {
            let object = node.disks()[0].open("file").await.expect("just made").id;
            node.disks()[0].put(object, 0, &Payload::from(vec![1; 2048])).expect("room");
            node.disks()[0].damage(object, 600, 10);
        }
        file.refresh().await.expect("the same file");
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
