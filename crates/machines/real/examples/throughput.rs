//! Measures the throughput from the disks of some nodes to another node, without a file system in between.
//!
//! Covers: starting nodes on separate threads, messages, disks, modelled disks. Scenario: four agents, each with a file
//! on a disk. A client keeps eight reads in flight at each agent until it has read all files. Prints the throughput in
//! MB/s (10^6 bytes), and the processor time of all nodes per GB.
//!
//! ```text
//! cargo run --release -p real --example throughput -- \
//!     [block KiB] [MiB per agent] [driver] [encrypted|clear] [disk model]
//! cargo run --release -p real --example throughput -- 256 64 polling clear streaming-20
//! ```

use std::sync::mpsc;
use std::time::Instant;

use description::{Description, DiskDescription};
use machine::{Delivery, Disk, Machine, Message, Net, NodeId, Payload, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use real::{DiskSettings, Driver, Keys, Peer, RealMachine, Settings};

const AGENTS: u64 = 4;
const READS_UNDER_WAY: u64 = 8;
const CLIENT: NodeId = NodeId(100);
const CALLER: NodeId = NodeId(101);

/// Number of nodes that only connect, to time connections.
const CALLERS: usize = 5;

#[derive(Clone)]
struct Plan {
    block_bytes: u64,
    blocks: u64,
    model: Option<DiskDescription>,
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut number = |default| words.next().map_or(default, |word| word.parse().expect("a number"));
    let block_bytes = number(256) << 10;
    let blocks = (number(256) << 20) / block_bytes;
    let driver = words.next().map_or(Driver::Automatic, |word| word.parse().expect("a driver"));
    let encrypts = words.next().is_none_or(|word| word != "clear");
    let keys = Keys { encrypts, ..Keys::draw()? };
    let model = words.next().map(|name| DiskDescription::load(&name).expect("a disk"));
    let plan = Plan { block_bytes, blocks, model };

    let directory = tempfile::tempdir().expect("a temporary directory");
    let (addresses, listening) = mpsc::channel();
    let agents: Vec<_> = (1..=AGENTS)
        .map(|node| {
            let (plan, addresses, path) = (plan.clone(), addresses.clone(), directory.path().to_owned());
            let keys = keys.clone();
            std::thread::spawn(move || {
                let disk = DiskSettings { directory: path.join(node.to_string()), model: plan.model.clone() };
                let listen = Some(([127, 0, 0, 1], 0).into());
                let settings =
                    Settings { driver, listen, disks: vec![disk], ..Settings::new(NodeId(node), keys) };
                real::run(settings, |machine| agent(machine, plan, addresses))?
            })
        })
        .collect();
    let peers: Vec<Peer> = listening.iter().take(AGENTS as usize).collect();
    for _ in 0..CALLERS {
        let (settings, peers) = (Settings { driver, ..Settings::new(CALLER, keys.clone()) }, peers.clone());
        real::run(settings, |machine| call(machine, peers))??;
    }
    let settings = Settings { driver, peers, ..Settings::new(CLIENT, keys) };
    real::run(settings, |machine| client(machine, plan))??;
    agents.into_iter().try_for_each(|agent| agent.join().expect("no panic"))
}

/// Writes a file and sends its blocks to the requesting client, until the client disconnects.
async fn agent(machine: RealMachine, plan: Plan, addresses: mpsc::Sender<Peer>) -> Result<()> {
    let disk = &machine.disks()[0];
    let object = disk.create("file", b"").await?.id;
    for block in 0..plan.blocks {
        let bytes = vec![block as u8; plan.block_bytes as usize];
        disk.write(object, block * plan.block_bytes, Payload::from(bytes)).await?;
    }
    disk.flush(object).await?;
    let address = machine.address().expect("it listens");
    addresses.send(Peer { node: machine.node(), address }).expect("the client waits for it");
    loop {
        let (from, request) = match machine.net().receive().await? {
            (from, Delivery::Message(request)) => (from, request),
            (CLIENT, Delivery::Gone(_)) => return Ok(()),
            (_, Delivery::Gone(_)) => continue,
        };
        let offset = u64::from_le_bytes(request.header.as_slice().try_into().expect("an offset"));
        let (machine, bytes) = (machine.clone(), plan.block_bytes);
        machine.clone().spawn("read", async move {
            let buffer = machine.buffers().take(bytes).await;
            let buffer = machine.disks()[0].read(object, offset, buffer).await?;
            let reply = Message { payload: buffer.slice(0..bytes), ..request };
            drop(buffer);
            machine.net().send(from, reply).await
        });
    }
}

/// Connects to all agents, and prints the time for each: two TCP connections with a handshake each.
async fn call(machine: RealMachine, peers: Vec<Peer>) -> Result<()> {
    let (start, before) = (Instant::now(), processor_seconds());
    machine.connect(&peers).await?;
    let each = |seconds: f64| seconds * 1e6 / peers.len() as f64;
    let (time, processors) = (each(start.elapsed().as_secs_f64()), each(processor_seconds() - before));
    println!("connected in {time:.0} us, {processors:.0} us of processors at both ends");
    machine.net().close();
    Ok(())
}

/// Reads the files of all agents, and prints the time.
async fn client(machine: RealMachine, plan: Plan) -> Result<()> {
    let ask = async |agent: NodeId, block: u64| {
        let header = (block * plan.block_bytes).to_le_bytes().to_vec();
        machine.net().send(agent, Message { header, ..Message::default() }).await
    };
    let (start, before) = (Instant::now(), processor_seconds());
    let mut next = vec![0; AGENTS as usize + 1];
    for agent in 1..=AGENTS {
        for _ in 0..READS_UNDER_WAY.min(plan.blocks) {
            ask(NodeId(agent), next[agent as usize]).await?;
            next[agent as usize] += 1;
        }
    }
    for _ in 0..AGENTS * plan.blocks {
        let (agent, delivery) = machine.net().receive().await?;
        let Delivery::Message(reply) = delivery else { panic!("{agent} is gone") };
        assert_eq!(reply.payload.len(), plan.block_bytes);
        let block = &mut next[agent.0 as usize];
        if *block < plan.blocks {
            ask(agent, *block).await?;
            *block += 1;
        }
    }
    let (bytes, seconds) = (AGENTS * plan.blocks * plan.block_bytes, start.elapsed().as_secs_f64());
    let (gigabytes, processors) = (bytes as f64 / 1e9, processor_seconds() - before);
    let (rate, cost) = (gigabytes * 1e3 / seconds, processors / gigabytes);
    println!("{rate:.1} MB/s ({bytes} bytes in {seconds:.3} s), {cost:.3} s of processors/GB");
    Ok(())
}

/// Returns the processor time of this process until now.
fn processor_seconds() -> f64 {
    let used = getrusage(UsageWho::RUSAGE_SELF).expect("usage of this process");
    [used.user_time(), used.system_time()].map(|time| time.num_microseconds() as f64 / 1e6).iter().sum()
}
