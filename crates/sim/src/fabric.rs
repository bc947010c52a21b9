//! How long messages travel: three fabrics, as arithmetic on the times at which their links are free again.
//!
//! A message is reserved its whole way at the moment it is sent, first come, first served, so it costs one
//! event (its arrival) however many links it crosses. What that approximates: a message sent earlier goes
//! first on every link of its way, also where a later one would in fact have been there before it.
//!
//! # The torus
//!
//! Wormhole routing (Dally & Seitz, 1987): the head of a message moves from router to router and takes each
//! link as it gets there; the body follows through the links the head holds; a head that waits for a link
//! holds all behind it. With the links of a way numbered 0 (from the source node into its router), 1 .. n-2
//! (between routers), n-1 (from the last router into the target node), latency *l* of a router, and *b* the
//! time of the body on a link:
//!
//! ```text
//! head takes link 0 at      a0 = max(now, free0)
//! head takes link i at      ai = max(a(i-1) + l, freei)
//! tail is at the target at  a(n-1) + b                    = arrival
//! tail has left link i at   a(n-1) + b - (n-1-i) l        = freei from now on;  i = 0: departure
//!
//!  source    |-link 0-- - - - - waits with the head - - - - - ------------------|
//!  router      |-link 1- - - - - - - - - - - - - - - - - - - - ------------------|
//!  router        |.....head waits for link 2 until it is free.|-link 2------------|
//!  target                                                       |-link 3-----------| arrival
//! ```
//!
//! So an undisturbed message of *B* bytes over *h* hops takes `(h + 1) l + B / bandwidth`. Ways go along the
//! row first, then along the column (dimension order), each the shorter way round, to higher numbers if both
//! are equal. Not modelled: buffers in routers (a waiting body shortens nothing), virtual channels (deadlock
//! cannot arise here because ways are reserved as a whole), flits (a link is taken for nanoseconds, not flits).
//!
//! # The switch
//!
//! Every node has one link to the switch and one from it, each with its own queue; between them lies a fabric
//! without contention. A message streams through (cut-through) if the receiver's link is free, and waits in
//! the switch, which has room for any number, if it is not; so a busy receiver never holds up its senders.

use description::{MachineDescription, Placement, Topology, Torus};

/// When a message has left its source, and when the whole of it is at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) departure: u64,
    pub(crate) arrival: u64,
}

pub(crate) enum Fabric {
    Constant { delay: u64 },
    Switch(Switch),
    Mesh(Mesh),
}

/// A link in one direction.
#[derive(Clone, Copy, Default)]
struct Link {
    free: u64,
    /// How long it has been held in all.
    held: u64,
}

impl Link {
    fn hold(&mut self, from: u64, until: u64) {
        self.free = until;
        self.held += until - from;
    }
}

pub(crate) struct Switch {
    rate: Transfer,
    latency: u64,
    out: Vec<Link>,
    into: Vec<Link>,
}

/// The torus, which is a mesh that closes on itself.
pub(crate) struct Mesh {
    rate: Transfer,
    latency: u64,
    columns: u32,
    rows: u32,
    /// The router of each node, by column and row.
    routers: Vec<(u32, u32)>,
    /// Of each node, into its router.
    injection: Vec<Link>,
    /// Of each node, out of its router.
    ejection: Vec<Link>,
    /// Four of each router: to the next and the previous column, to the next and the previous row.
    links: Vec<Link>,
    /// The links of the way being computed, with the times at which the head takes them.
    way: Vec<(u32, u64)>,
}

/// The time of bytes at a rate.
#[derive(Clone, Copy)]
struct Transfer {
    bytes_per_second: u64,
}

impl Transfer {
    fn time(self, bytes: u64) -> u64 {
        match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => scaled.div_ceil(self.bytes_per_second),
            None => machine::Duration::of_transfer(bytes, self.bytes_per_second).as_nanos(),
        }
    }
}

impl Fabric {
    pub(crate) fn new(description: &MachineDescription) -> Self {
        let nodes = description.node_count() as usize;
        match &description.network.topology {
            Topology::Constant { delay } => Fabric::Constant { delay: delay.value.0.as_nanos() },
            Topology::Switch { link_bandwidth, latency } => Fabric::Switch(Switch {
                rate: Transfer { bytes_per_second: link_bandwidth.value.0 },
                latency: latency.value.0.as_nanos(),
                out: vec![Link::default(); nodes],
                into: vec![Link::default(); nodes],
            }),
            Topology::Torus(torus) => Fabric::Mesh(Mesh::new(torus, description)),
        }
    }

    /// Sends `bytes` on their way at `now`.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64, source: usize, target: usize, bytes: u64) -> Passage {
        if source == target {
            return Passage { departure: now, arrival: now };
        }
        match self {
            Fabric::Constant { delay } => Passage { departure: now, arrival: now + *delay },
            Fabric::Switch(switch) => switch.pass(now, source, target, bytes),
            Fabric::Mesh(mesh) => mesh.pass(now, source, target, bytes),
        }
    }

    /// How long the link out of `node` and the link into it have been held in all, in nanoseconds.
    pub(crate) fn held(&self, node: usize) -> (u64, u64) {
        match self {
            Fabric::Constant { .. } => (0, 0),
            Fabric::Switch(switch) => (switch.out[node].held, switch.into[node].held),
            Fabric::Mesh(mesh) => (mesh.injection[node].held, mesh.ejection[node].held),
        }
    }
}

impl Switch {
    fn pass(&mut self, now: u64, source: usize, target: usize, bytes: u64) -> Passage {
        let body = self.rate.time(bytes);
        let (out, into) = (&mut self.out[source], &mut self.into[target]);
        let start = now.max(out.free);
        out.hold(start, start + body);
        let through = (start + self.latency).max(into.free);
        into.hold(through, through + body);
        Passage { departure: start + body, arrival: through + body }
    }
}

impl Mesh {
    fn new(torus: &Torus, description: &MachineDescription) -> Self {
        let (columns, rows) = (torus.columns.value, torus.rows.value);
        let nodes = description.node_count();
        let compute = description.nodes.compute.value;
        let routers = (0..nodes)
            .map(|node| {
                let place = match torus.placement.value {
                    Placement::ComputeThenIo => node,
                    Placement::Interleaved => interleaved(node, compute, nodes - compute),
                };
                let router = torus.first_router.value + place;
                (router % columns, router / columns)
            })
            .collect();
        Mesh {
            rate: Transfer { bytes_per_second: torus.link_bandwidth.value.0 },
            latency: torus.router_latency.value.0.as_nanos(),
            columns,
            rows,
            routers,
            injection: vec![Link::default(); nodes as usize],
            ejection: vec![Link::default(); nodes as usize],
            links: vec![Link::default(); (columns * rows * 4) as usize],
            way: Vec::new(),
        }
    }

    fn pass(&mut self, now: u64, source: usize, target: usize, bytes: u64) -> Passage {
        let first = now.max(self.injection[source].free);
        let mut head = first;
        self.way.clear();
        let ((mut column, mut row), (to_column, to_row)) = (self.routers[source], self.routers[target]);
        let (right, columns) = shorter(column, to_column, self.columns);
        for _ in 0..columns {
            head = self.take(head, row * self.columns + column, if right { 0 } else { 1 });
            column = step(column, right, self.columns);
        }
        let (down, rows) = shorter(row, to_row, self.rows);
        for _ in 0..rows {
            head = self.take(head, row * self.columns + column, if down { 2 } else { 3 });
            row = step(row, down, self.rows);
        }
        let last = (head + self.latency).max(self.ejection[target].free);
        let arrival = last + self.rate.time(bytes);
        self.ejection[target].hold(last, arrival);
        let mut tail = arrival;
        for &(link, taken) in self.way.iter().rev() {
            tail -= self.latency;
            self.links[link as usize].hold(taken, tail);
        }
        let departure = tail - self.latency;
        self.injection[source].hold(first, departure);
        Passage { departure, arrival }
    }

    /// The head goes through a router and takes the link in `direction` when it is free.
    fn take(&mut self, head: u64, router: u32, direction: u32) -> u64 {
        let link = router * 4 + direction;
        let taken = (head + self.latency).max(self.links[link as usize].free);
        self.way.push((link, taken));
        taken
    }
}

/// The shorter way round a ring: whether to higher numbers, and how many steps.
fn shorter(from: u32, to: u32, ring: u32) -> (bool, u32) {
    let up = if to >= from { to - from } else { to + ring - from };
    if up <= ring - up { (true, up) } else { (false, ring - up) }
}

fn step(at: u32, up: bool, ring: u32) -> u32 {
    match (up, at) {
        (true, at) if at + 1 == ring => 0,
        (true, at) => at + 1,
        (false, 0) => ring - 1,
        (false, at) => at - 1,
    }
}

/// The place of a node when compute nodes and I/O nodes take turns until one kind is used up.
fn interleaved(node: u32, compute: u32, io: u32) -> u32 {
    let pairs = compute.min(io);
    match node.checked_sub(compute) {
        None if node < pairs => 2 * node,
        None => pairs + node,
        Some(io_node) if io_node < pairs => 2 * io_node + 1,
        Some(_) => node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaving_uses_every_place_once() {
        for (compute, io) in [(16, 16), (3, 7), (7, 3), (1, 1)] {
            let mut places: Vec<u32> = (0..compute + io).map(|node| interleaved(node, compute, io)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..compute + io).collect::<Vec<_>>());
        }
        assert_eq!([0, 1, 2, 3, 4].map(|node| interleaved(node, 2, 3)), [0, 2, 1, 3, 4]);
    }

    #[test]
    fn the_shorter_way_round_is_taken() {
        assert_eq!(shorter(0, 5, 6), (false, 1));
        assert_eq!(shorter(5, 0, 6), (true, 1));
        assert_eq!(shorter(1, 4, 6), (true, 3));
        assert_eq!(shorter(4, 1, 6), (true, 3));
        assert_eq!(shorter(2, 2, 6), (true, 0));
        assert_eq!((step(5, true, 6), step(0, false, 6)), (0, 5));
    }
}
