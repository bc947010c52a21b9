//! Measures the throughput of four processes that collectively read and write a matrix of small records, distributed
//! over them record by record in both dimensions.
//!
//! Covers: collective operations on dense views and on selections, groups and teams. Scenario: four agents with a disk
//! each, four clients, all on this computer. The file is written and read by a dense view, with queued blocks
//! (unqueued, small records take minutes). It is also written and read by selections of the clients: queued and
//! unqueued, with the data flushed to stable storage or only sent to the agents. Prints for each the throughput in MB/s
//! (of 10^6 bytes), the best of several rounds.
//!
//! ```text
//! cargo run --release -p node --example selected -- [record bytes] [MiB] [directory] [rounds]
//! ```

use std::sync::mpsc::{self, Sender};
use std::thread;

use fs::{
    Client, CollectiveMethod, CollectiveSettings, Configuration, File, FileId, Group, NumberedFile,
    Participants, Result, SelectedSettings, TeamMembership, TeamStep, serve,
};
use layout::{Pattern, Problem, Selection, Striping, View};
use machine::{Duration, Machine, Memory, NodeId};
use real::{DiskSettings, Keys, Peer, RealMachine, Settings};

const AGENTS: u64 = 4;
const CLIENTS: u64 = 4;
const BLOCK: u64 = 64 << 10;

#[derive(Clone)]
struct Plan {
    keys: Keys,
    view: View,
    rounds: u32,
    peers: Vec<Peer>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, default: u64| words.get(index).map_or(default, |word| word.parse().expect("a number"));
    let problem = Problem::new(number(1, 32) << 20, number(0, 8), CLIENTS as u32);
    let view = "rcc".parse::<Pattern>().and_then(|pattern| pattern.view(&problem)).expect("a view");
    let parent = words.get(2).map_or("/dev/shm", String::as_str);
    let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
    let keys = Keys::draw().expect("randomness");
    let (addresses, listening) = mpsc::channel();
    for node in 1..=AGENTS {
        let (addresses, path) = (addresses.clone(), directory.path().join(node.to_string()));
        let keys = keys.clone();
        thread::spawn(move || run_agent(node, keys, DiskSettings::plain(path), &addresses));
    }
    let (rounds, peers) = (number(3, 3) as u32, listening.iter().take(AGENTS as usize).collect());
    let mut plan = Plan { view, rounds, peers, keys };
    let first = start_client(0, plan.clone(), &addresses);
    // The other members of the group connect to the first one.
    plan.peers.push(listening.recv().expect("it listens"));
    let others: Vec<_> = (1..CLIENTS).map(|rank| start_client(rank, plan.clone(), &addresses)).collect();
    for client in others.into_iter().chain([first]) {
        client.join().expect("no panic").expect("all are there");
    }
    // The agents end with the process.
}

fn run_agent(node: u64, keys: Keys, disk: DiskSettings, addresses: &Sender<Peer>) {
    let listen = Some(([127, 0, 0, 1], 0).into());
    let settings = Settings { listen, disks: vec![disk], ..Settings::new(NodeId(node), keys) };
    let addresses = addresses.clone();
    let served = real::run(settings, |machine| async move {
        send_address(&machine, &addresses);
        serve(machine, Configuration::Agent.io_node()).await
    });
    served.and_then(|outcome| outcome).expect("it serves until the end");
}

fn send_address(machine: &RealMachine, addresses: &Sender<Peer>) {
    let address = machine.address().expect("it listens");
    addresses.send(Peer { node: machine.node(), address }).expect("somebody waits for it");
}

fn start_client(rank: u64, plan: Plan, addresses: &Sender<Peer>) -> thread::JoinHandle<Result<()>> {
    let addresses = addresses.clone();
    thread::spawn(move || {
        let listen = (rank == 0).then(|| ([127, 0, 0, 1], 0).into());
        let (peers, keys) = (plan.peers.clone(), plan.keys.clone());
        let settings = Settings { listen, peers, ..Settings::new(NodeId(100 + rank), keys) };
        let outcome = real::run(settings, |machine| async move {
            if rank == 0 {
                send_address(&machine, &addresses);
            }
            move_all(machine, rank as u32, plan).await
        });
        outcome.expect("a node")
    })
}

/// Method of reading and writing the file.
#[derive(Clone, Copy)]
enum Way {
    Dense(CollectiveSettings),
    Selected(SelectedSettings),
}

async fn move_all(machine: RealMachine, rank: u32, plan: Plan) -> Result<()> {
    let agents = (1..=AGENTS).map(NodeId).collect();
    let client = Client::connect(machine.clone(), agents, Configuration::Agent.client()).await?;
    let team = TeamMembership::form(&client, "all", rank, CLIENTS as u32).await?;
    let group = Group::new(7, (0..CLIENTS).map(|rank| NodeId(100 + rank)).collect(), rank as usize);
    let described = client.new_numbered(FileId(1), Striping::new(BLOCK, client.disks())?).await?;
    let file = client.numbered(NumberedFile { bytes: plan.view.file_bytes(), ..described }).await?;
    if rank == 0 {
        file.make_stripes().await?;
    }
    team.turn(team.next_turn(), TeamStep::Barrier).await.gather(Ok(0)).await?;
    let dense = CollectiveSettings::disk_directed().presorted();
    let selected = |queued, to_media| {
        Way::Selected(SelectedSettings {
            method: CollectiveMethod::DiskDirected { presort: true },
            queued,
            to_media,
        })
    };
    for (name, way) in [
        ("dense view, queued", Way::Dense(dense.queued())),
        ("selected, queued, flushed", selected(true, true)),
        ("selected, plain, flushed", selected(false, true)),
        ("selected, queued", selected(true, false)),
        ("selected, plain", selected(false, false)),
    ] {
        let mut best = [0.0_f64; 2];
        for _ in 0..plan.rounds {
            for (index, is_write) in [true, false].into_iter().enumerate() {
                let took = move_file(&machine, &file, &group, &team, &plan.view, way, is_write).await?;
                best[index] = best[index].max(plan.view.file_bytes() as f64 * 1e3 / took.as_nanos() as f64);
            }
        }
        if rank == 0 {
            println!("{name:32} written {:7.1} MB/s, read {:7.1} MB/s", best[0], best[1]);
        }
    }
    Ok(())
}

/// Reads or writes the file once all processes are ready. Returns the duration.
async fn move_file(
    machine: &RealMachine,
    file: &File<RealMachine>,
    group: &Group,
    team: &TeamMembership<RealMachine>,
    view: &View,
    way: Way,
    is_write: bool,
) -> Result<Duration> {
    let node = group.rank as u32;
    let bytes = |at: u64| if is_write { (at % 251) as u8 ^ node as u8 } else { 0 };
    let memory = Memory::real((0..view.node_bytes(node)).map(bytes).collect());
    let selection = Selection::of_view(view, node);
    team.turn(team.next_turn(), TeamStep::Barrier).await.gather(Ok(0)).await?;
    let start = machine.now();
    match way {
        Way::Dense(settings) if is_write => file.write_collective(group, view, &memory, settings).await?,
        Way::Dense(settings) => file.read_collective(group, view, &memory, settings).await?,
        Way::Selected(settings) => {
            let method = settings.method;
            let step = if is_write { TeamStep::write(method) } else { TeamStep::read(method) };
            let turn = team.turn(team.next_turn(), step).await;
            let company = Participants::Team(&turn);
            match is_write {
                true => file.write_selected(company, &selection, &memory, settings).await.map(drop)?,
                false => file.read_selected(company, &selection, &memory, settings).await.map(drop)?,
            }
        }
    }
    let took = machine.now().since(start);
    if !is_write {
        let read = memory.into_vec().expect("real memory");
        assert!(read.iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8 ^ node as u8));
    }
    Ok(took)
}
