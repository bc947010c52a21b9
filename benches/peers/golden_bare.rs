//! The golden micro-workload as a bare event loop: the lower bound for an event-driven simulator.
//!
//! There is no executor, no task and no queue abstraction here: two hand-written state machines and a binary heap of
//! events, each packed into one integer. The remaining cost is that of ordering the events, and of the arithmetic of
//! the workload. Times are integers in millionths of a unit, so the digests are exact.
//!
//! Usage: `golden_bare [n]`, where `n` is the number of requests of each client (20,000 by default).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

const NODES: usize = 16;
const UNIT: u64 = 1_000_000;
const DELAY: u64 = 2 * UNIT;
const SERVICE: u64 = 3 * UNIT;

const COMPUTED: u32 = 0;
const ARRIVED: u32 = 1;
const SERVED: u32 = 2;
const REPLIED: u32 = 3;

/// Pending events, sorted by time; events with equal times in order of scheduling.
struct Events {
    heap: BinaryHeap<Reverse<u128>>,
    serial: u32,
}

impl Events {
    /// Packs time (64 bits), serial number (32) and payload (32: kind, server, client) into one key.
    fn push(&mut self, time: u64, kind: u32, server: usize, client: usize) {
        let payload = kind << 16 | (server as u32) << 8 | client as u32;
        let order = u64::from(self.serial) << 32 | u64::from(payload);
        self.heap.push(Reverse(u128::from(time) << 64 | u128::from(order)));
        self.serial += 1;
    }
}

struct Client {
    random: u64,
    issued: usize,
    sent: u64,
}

impl Client {
    fn compute(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        UNIT + (self.random >> 33) % 1_000_000
    }
}

fn main() {
    let requests: usize = std::env::args().nth(1).map_or(20_000, |n| n.parse().expect("n is a number"));
    assert!(requests * NODES * 4 <= u32::MAX as usize, "the serial number has 32 bits");
    let started = Instant::now();

    let mut events = Events { heap: BinaryHeap::with_capacity(4 * NODES), serial: 0 };
    let mut waiting: Vec<VecDeque<usize>> = (0..NODES).map(|_| VecDeque::with_capacity(NODES)).collect();
    let mut clients: Vec<Client> =
        (0..NODES).map(|i| Client { random: (i as u64) * 2_654_435_761 + 1, issued: 0, sent: 0 }).collect();
    let (mut count, mut last_reply, mut response_sum) = (0u64, 0u64, 0u64);

    for (i, client) in clients.iter_mut().enumerate() {
        if requests > 0 {
            events.push(client.compute(), COMPUTED, 0, i);
        }
    }
    while let Some(Reverse(packed)) = events.heap.pop() {
        count += 1;
        let now = (packed >> 64) as u64;
        let payload = packed as u32;
        let (kind, server, i) = (payload >> 16, (payload >> 8 & 0xff) as usize, (payload & 0xff) as usize);
        match kind {
            COMPUTED => {
                let client = &mut clients[i];
                client.sent = now;
                events.push(now + DELAY, ARRIVED, (i + client.issued) % NODES, i);
            }
            // The request in service stays at the head of the queue until it is served.
            ARRIVED => {
                waiting[server].push_back(i);
                if waiting[server].len() == 1 {
                    events.push(now + SERVICE, SERVED, server, i);
                }
            }
            SERVED => {
                waiting[server].pop_front();
                events.push(now + DELAY, REPLIED, server, i);
                if let Some(&next) = waiting[server].front() {
                    events.push(now + SERVICE, SERVED, server, next);
                }
            }
            REPLIED => {
                let client = &mut clients[i];
                response_sum += now - client.sent;
                last_reply = now;
                client.issued += 1;
                if client.issued < requests {
                    let end = now + client.compute();
                    events.push(end, COMPUTED, 0, i);
                }
            }
            _ => unreachable!("an unknown kind of event"),
        }
    }

    let elapsed = started.elapsed().as_nanos() as f64;
    println!(
        "golden: last_reply={}.{:06} response_sum={}.{:06} events={count} ns_per_event={:.1}",
        last_reply / UNIT,
        last_reply % UNIT,
        response_sum / UNIT,
        response_sum % UNIT,
        elapsed / count as f64,
    );
}
