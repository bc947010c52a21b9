//! Attacks, and the processes that carry them out.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::thread;
use std::time::Duration as Time;

use fs::LockRange;
use fs::protocol::{BlockWrite, Frame, OpenCount, Request};
use layout::Extent;
use machine::{Class, Delivery, Duration, Machine, Message, Net, NodeId, Payload, mix};
use namespace::FileNumber;
use promises::attackers::{alternate_bytes, collective_read, fetched_write, lock, lock_of, selected_write};
use real::{Driver, Limits, RealMachine, Settings};

use crate::common::stranger::join_address;
use crate::{AGENT, LARGE, LARGE_BLOCK, LARGE_BYTES, end_with_parent, settings};

/// Node number of the first attacker; the others follow.
const ATTACKERS: u64 = 1000;

/// Activity of attackers until they are killed.
pub(crate) enum Attack {
    /// A number of clients of the agent, which have its key.
    Clients(u64, fn(Attacker) -> Pin<Box<dyn Future<Output = ()>>>),
    /// A number of threads with sockets, which repeat this function.
    Sockets(u64, fn(SocketAddr, u64) -> io::Result<()>),
}

use Attack::{Clients, Sockets};

pub(crate) const ATTACKS: [(&str, Attack); 21] = [
    ("100 clients, answers to lists not received", Clients(100, |it| Box::pin(commands_not_taken(it, list)))),
    (
        "100 clients, answers to examinations not received",
        Clients(100, |it| Box::pin(commands_not_taken(it, |_| Request::Examine))),
    ),
    ("4,000 selections of alternate bytes", Clients(1, |it| Box::pin(selections(it)))),
    ("teams and jobs, four clients", Clients(4, |it| Box::pin(teams_and_jobs(it)))),
    ("teams and jobs, one client", Clients(1, |it| Box::pin(teams_and_jobs(it)))),
    ("holds of numbers that do not exist", Clients(4, |it| Box::pin(holds(it)))),
    ("66,000 locks", Clients(1, |it| Box::pin(locks(it)))),
    ("fences", Clients(1, |it| Box::pin(fences(it)))),
    ("`stuck_when_gone`", Clients(2, |it| Box::pin(stuck_when_gone(it)))),
    ("`memget_never_answered`", Clients(1, |it| Box::pin(memget_never_answered(it)))),
    ("`queue_full`: 70,000 answers to reads not received", Clients(1, |it| Box::pin(queue_full(it)))),
    ("`pieces_of_one_byte`", Clients(64, |it| Box::pin(collectives(it, 1, false)))),
    ("`pieces_queued`", Clients(64, |it| Box::pin(collectives(it, 1, true)))),
    ("`collectives_never_answered`", Clients(16, |it| Box::pin(collectives(it, LARGE_BLOCK / 64, false)))),
    ("`stalled_payloads`", Sockets(16, stalled_payload)),
    ("250 idle connections", Sockets(250, idle_connection)),
    ("random bytes", Sockets(4, random_bytes)),
    ("damaged headers", Clients(4, |it| Box::pin(damaged_headers(it)))),
    ("clients that leave 20,000 reads", Clients(2, |it| Box::pin(reads_of_the_gone(it)))),
    ("promotions during 60,000 reads", Clients(1, |it| Box::pin(promotions(it)))),
    ("greedy client, 256 reads at a time", Clients(1, |it| Box::pin(greedy(it)))),
];

/// Attacks until this process is killed.
pub(crate) fn attack(name: &str, address: SocketAddr, locked: FileNumber) {
    end_with_parent();
    let (_, attack) = ATTACKS.iter().find(|(known, _)| *known == name).expect("an attack");
    match *attack {
        Sockets(count, act) => {
            for rank in 0..count {
                thread::spawn(move || {
                    loop {
                        // The agent may disconnect at any time.
                        if act(address, rank).is_err() {
                            thread::sleep(Time::from_millis(10));
                        }
                    }
                });
            }
            println!();
            thread::park();
        }
        Clients(count, act) => real::block_on(Driver::Automatic, async {
            let members: Rc<[u64]> = (ATTACKERS..ATTACKERS + count).collect();
            let mut attackers = Vec::new();
            for rank in 0..count {
                let machine = start(ATTACKERS + rank, address).await.expect("it serves");
                attackers.push(Attacker { machine, address, rank, members: members.clone(), locked });
            }
            println!();
            for attacker in attackers {
                let machine = attacker.machine.clone();
                machine.spawn("attack", async move {
                    act(attacker).await;
                    Ok(())
                });
            }
            std::future::pending::<()>().await;
        })
        .expect("a runtime"),
    }
}

/// Starts a node with little memory for answers that it does not receive.
async fn start(node: u64, address: SocketAddr) -> machine::Result<RealMachine> {
    let limits = Limits { receive_bytes: 4 << 20, ..Limits::default() };
    RealMachine::start(Settings { limits, ..settings(NodeId(node), address) }).await
}

/// Attacking client.
pub(crate) struct Attacker {
    machine: RealMachine,
    address: SocketAddr,
    rank: u64,
    /// All attacking nodes.
    members: Rc<[u64]>,
    /// A file in the namespace.
    locked: FileNumber,
}

impl Attacker {
    async fn send(&self, class: Class, tag: u64, request: Request, payload: Payload) {
        self.send_header(class, Frame::Request(tag, request).encode(), payload).await;
    }

    async fn send_header(&self, class: Class, header: Vec<u8>, payload: Payload) {
        // The agent may disconnect at any time; the next message reconnects.
        if self.machine.net().send(AGENT, Message { class, header, payload }).await.is_err() {
            self.machine.sleep_until(self.machine.now() + Duration::from_millis(10)).await;
        }
    }

    async fn flood(&self, class: Class, count: u64, request: impl Fn(u64) -> Request) {
        for tag in 1..=count {
            self.send(class, tag, request(tag), Payload::empty()).await;
        }
    }

    /// Receives and ignores all answers.
    fn take_answers(&self) {
        let machine = self.machine.clone();
        self.machine.spawn("answers", async move {
            while machine.net().receive().await.is_ok() {}
            Ok(())
        });
    }
}

fn list(_: u64) -> Request {
    Request::ListStripes { after: None }
}

fn read_large(tag: u64) -> Request {
    let offset = tag % (LARGE_BYTES / LARGE_BLOCK) * LARGE_BLOCK;
    Request::Read { file: LARGE, stripe: 0, offset, bytes: LARGE_BLOCK as u32, is_alone: false }
}

async fn commands_not_taken(it: Attacker, command: fn(u64) -> Request) {
    it.flood(Class::Control, 1000, command).await;
}

async fn selections(it: Attacker) {
    it.take_answers();
    for parts in [4000, 1].into_iter().cycle() {
        let requests = selected_write(it.machine.node(), LARGE, vec![alternate_bytes(); parts]);
        for (tag, request) in (1..).zip(requests) {
            it.send(Class::Demand, tag, request, Payload::empty()).await;
        }
    }
}

async fn teams_and_jobs(it: Attacker) {
    it.take_answers();
    let request = |tag| {
        let name = format!("{} {tag}", it.rank);
        match tag % 2 {
            0 => Request::FormTeam { name, rank: 0, size: 2 },
            _ => Request::Join { job: name, member: "one".into(), io_nodes: 1 },
        }
    };
    it.flood(Class::Control, 10_000, request).await;
}

async fn holds(it: Attacker) {
    it.take_answers();
    let once = OpenCount { reading: 1, writing: 0 };
    let file = |message: u64, number: u64| (FileNumber((1 << 50) + 2048 * message + number), once);
    let request =
        |tag| Request::ReclaimOpenFiles { files: (0..2048).map(|number| file(tag, number)).collect() };
    it.flood(Class::Control, u64::MAX, request).await;
}

async fn locks(it: Attacker) {
    let lease = lock_of(&it.machine, AGENT, "locked", it.locked).await;
    it.take_answers();
    let range = |tag: u64| LockRange { first: 4 * tag, last: 4 * tag + 1 };
    it.flood(Class::Control, 66_000, |tag| lock(lease, it.locked, 1 + tag, range(tag))).await;
}

async fn fences(it: Attacker) {
    it.take_answers();
    let request = |tag| Request::Fence { leases: (0..1000).map(|lease| 1000 * tag + lease).collect() };
    it.flood(Class::Control, u64::MAX, request).await;
}

async fn stuck_when_gone(it: Attacker) {
    memget_never_answered_by(&it, 128).await;
    let data = Payload::from(vec![9; 256 << 10]);
    for tag in 1000.. {
        let offset = tag % (LARGE_BYTES / LARGE_BLOCK) * LARGE_BLOCK;
        let write = Request::Write(BlockWrite::new(LARGE, 0, offset));
        it.send(Class::Demand, tag, write, data.clone()).await;
    }
}

async fn memget_never_answered_by(it: &Attacker, count: u64) {
    let to = |tag: u64| Extent::new(tag % (LARGE_BYTES / LARGE_BLOCK) * LARGE_BLOCK, LARGE_BLOCK / 2);
    it.flood(Class::Demand, count, |tag| fetched_write(LARGE, to(tag))).await;
}

async fn memget_never_answered(it: Attacker) {
    memget_never_answered_by(&it, 10_000).await;
}

async fn queue_full(it: Attacker) {
    it.flood(Class::Demand, 70_000, read_large).await;
}

async fn collectives(it: Attacker, record_bytes: u64, queued: bool) {
    let request = |_| collective_read(LARGE, 64 * LARGE_BLOCK, record_bytes, queued, it.members.to_vec());
    it.flood(Class::Control, 16, request).await;
}

async fn damaged_headers(it: Attacker) {
    it.take_answers();
    for tag in 0.. {
        let mut header = Frame::Request(tag, read_large(tag)).encode();
        let at = mix(tag) as usize % header.len();
        header[at] ^= (1 + mix(tag) % 255) as u8;
        it.send_header(Class::Demand, header, Payload::empty()).await;
    }
}

async fn reads_of_the_gone(it: Attacker) {
    for round in 1.. {
        let name = ATTACKERS + 100 * round + it.rank;
        let Ok(machine) = start(name, it.address).await else { continue };
        let one = Attacker { machine, members: it.members.clone(), ..it };
        one.flood(Class::Demand, 20_000, read_large).await;
        one.machine.net().close();
    }
}

async fn promotions(it: Attacker) {
    let promoting = Attacker { machine: it.machine.clone(), members: it.members.clone(), ..it };
    it.machine.clone().spawn("reads", async move {
        it.flood(Class::Background, 60_000, read_large).await;
        Ok(())
    });
    let promote = |tag: u64| Request::Promote { file: LARGE, stripe: 0, offset: tag % 80 * LARGE_BLOCK };
    promoting.flood(Class::Control, u64::MAX, promote).await;
}

async fn greedy(it: Attacker) {
    it.flood(Class::Demand, 256, read_large).await;
    for tag in 257.. {
        if matches!(it.machine.net().receive().await, Ok((_, Delivery::Message(_)))) {
            it.send(Class::Demand, tag, read_large(tag), Payload::empty()).await;
        }
    }
}

/// Connects to the agent, and sends the beginning of a message with much data.
fn stalled_payload(address: SocketAddr, rank: u64) -> io::Result<()> {
    let [mut control, mut data] = join_address(address, ATTACKERS + rank)?;
    let begun = [data.prelude(1, 4 << 20), data.head(&[9], 4 << 20), vec![9; 100]].concat();
    data.stream.write_all(&begun)?;
    control.stream.read_to_end(&mut Vec::new()).map(drop)
}

fn idle_connection(address: SocketAddr, _: u64) -> io::Result<()> {
    TcpStream::connect(address)?.read_to_end(&mut Vec::new()).map(drop)
}

fn random_bytes(address: SocketAddr, rank: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let seed = u64::from(stream.local_addr()?.port()) + (rank << 32);
    let bytes: Vec<u8> = (0..3000).map(|at| mix(seed * 3000 + at) as u8).collect();
    stream.write_all(&bytes)?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}
