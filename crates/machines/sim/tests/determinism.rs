//! Equal seeds lead to equal runs, event by event; different seeds to different ones.

mod common;

use std::rc::Rc;

use common::starfish;
use machine::{Delivery, Disk, Machine, Message, Net, NodeId, ObjectId, Payload, Result, Source, Work};
use sim::{Layout, Settings, SimMachine, Simulation};

const BLOCK: u64 = 8192;
const BLOCKS: u64 = 20;

async fn serve(machine: SimMachine, object: ObjectId) -> Result<()> {
    loop {
        let (client, Delivery::Message(request)) = machine.net().receive().await? else { continue };
        let server = machine.clone();
        machine.spawn("request", async move {
            server.compute(Work::StartThread).await;
            let block = u64::from(request.header[0]);
            let buffer = server.buffers().take(BLOCK).await;
            let buffer = server.disks()[0].read(object, block * BLOCK, buffer).await?;
            server.compute(Work::CompleteDiskRequest).await;
            let payload = buffer.slice(0..BLOCK);
            server.net().send(client, Message { payload, ..request }).await
        });
    }
}

async fn ask(machine: SimMachine) -> Result<()> {
    for block in 0..BLOCKS {
        let server = 16 + (machine.node().0 + block) % 16;
        machine.compute(Work::BuildRequest).await;
        let request = Message { header: vec![block as u8], ..Message::default() };
        machine.net().send(NodeId(server), request).await?;
        let (_, delivery) = machine.net().receive().await?;
        let expected = Payload::phantom(Source(server), block * BLOCK, BLOCK);
        assert!(matches!(delivery, Delivery::Message(message) if message.payload == expected));
    }
    Ok(())
}

/// Returns digest, events and end of a run with this seed.
fn run(seed: u64, layout: Layout) -> (u64, u64, u64) {
    let settings = Settings { seed, layout, ..Settings::default() };
    let description = starfish(&[("processor.system.switch_thread", "10")]);
    let simulation = Simulation::new(&description, settings);
    for node in simulation.io_nodes() {
        let contents = Payload::phantom(Source(node.node().0), 0, BLOCKS * BLOCK);
        let object = node.disks()[0].install("file", 0, &contents).expect("room");
        node.spawn("server", serve(node.clone(), object));
    }
    let running = Rc::new(());
    for node in simulation.compute_nodes() {
        let (machine, running) = (node.clone(), running.clone());
        node.spawn("client", async move {
            let _running = running;
            ask(machine).await
        });
    }
    simulation.run_until_idle().expect("nothing fails");
    assert_eq!(Rc::strong_count(&running), 1, "all clients are done");
    (simulation.digest(), simulation.events(), simulation.now().as_nanos())
}

#[test]
fn the_seed_and_the_layout_determine_a_run() {
    for layout in [Layout::default(), Layout::Random] {
        assert_eq!(run(1, layout), run(1, layout));
        assert_ne!(run(1, layout).0, run(2, layout).0);
    }
    assert_ne!(run(1, Layout::default()).0, run(1, Layout::Random).0);
}
