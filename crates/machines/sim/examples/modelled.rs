//! Times a run with everything modelled: `cargo run --release -p sim --example modelled [rounds]`.
//!
//! On the STARFISH machine every compute node requests small records from the I/O nodes in turn. Each request costs a
//! thread, a cache lookup, a reply and its copying; every 64th request reads a block from a disk. So most events are
//! those of processors, torus and messages, as in the processor-bound patterns.

use std::time::Instant;

use description::{Description, MachineDescription};
use machine::{Delivery, Disk, Machine, Message, Net, NodeId, ObjectId, Payload, Result, Source, Work};
use sim::{Settings, SimMachine, Simulation};

const BLOCK: u64 = 8192;
const BLOCKS: u64 = 80;
const RECORD: u64 = 8;

async fn serve(machine: SimMachine, object: ObjectId) -> Result<()> {
    let mut requests = 0;
    loop {
        let (client, Delivery::Message(request)) = machine.net().receive().await? else { continue };
        requests += 1;
        let (server, number) = (machine.clone(), requests);
        machine.spawn("request", async move {
            server.compute(Work::StartThread).await;
            server.compute(Work::LookUpCache).await;
            if number % 64 == 0 {
                let buffer = server.buffers().take(BLOCK).await;
                server.disks()[0].read(object, number / 64 % BLOCKS * BLOCK, buffer).await?;
                server.compute(Work::CompleteDiskRequest).await;
            }
            let payload = Payload::phantom(Source(1), number * RECORD, RECORD);
            server.net().send(client, Message { payload, ..request }).await
        });
    }
}

async fn ask(machine: SimMachine, rounds: u64) -> Result<()> {
    for round in 0..rounds {
        machine.compute(Work::BuildRequest).await;
        let server = NodeId(16 + (machine.node().0 + round) % 16);
        machine.net().send(server, Message { header: vec![0; 24], ..Message::default() }).await?;
        machine.net().receive().await?;
        machine.compute(Work::HandleReply).await;
        machine.compute(Work::Copy { bytes: RECORD }).await;
    }
    Ok(())
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(20_000, |rounds| rounds.parse().expect("a number"));
    let description = MachineDescription::load("starfish-1996").expect("built in");
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let simulation = Simulation::new(&description, Settings::default());
        for node in simulation.io_nodes() {
            let contents = Payload::phantom(Source(node.node().0), 0, BLOCKS * BLOCK);
            let object = node.disks()[0].install("file", 0, &contents).expect("room");
            node.spawn("server", serve(node.clone(), object));
        }
        for node in simulation.compute_nodes() {
            node.spawn("client", ask(node.clone(), rounds));
        }
        let start = Instant::now();
        simulation.run_until_idle().expect("nothing fails");
        let per_event = start.elapsed().as_secs_f64() * 1e9 / simulation.events() as f64;
        let events_per_request = simulation.events() as f64 / (16 * rounds) as f64;
        println!(
            "{} simulated, digest {:016x}, {} events, {events_per_request:.1} a request, {per_event:.1} ns each",
            simulation.now(),
            simulation.digest(),
            simulation.events()
        );
        best = best.min(per_event);
    }
    println!("best: {best:.1} ns per event");
}
