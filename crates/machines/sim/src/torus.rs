//! Two-dimensional torus with wormhole routing, router by router.
//!
//! A message is a worm (Dally and Seitz 1987). Its head moves from router to router and takes each link on arrival if
//! the link is free; the body follows through the links the head holds. A head that finds a link taken waits in that
//! link's queue, first come, first served, and holds all links behind it during the wait. The links of a route are
//! numbered 0 (from the source node into its router), 1 .. n-2 (between routers), n-1 (from the last router into the
//! target node). With latency *l* of a router and *b* the time of the body on a link:
//!
//! ```text
//! the head takes link i      when it has come through the router before it, l after link i-1,
//!                            and the link is free
//! the tail is at the target  b after the head took link n-1: the arrival
//! the tail has left link i   (n-1-i) l before that: then it is free; for i = 0 this is the departure
//!
//!  source    |-link 0-- - - - - waits with the head - - - - - ------------------|
//!  router      |-link 1- - - - - - - - - - - - - - - - - - - - ------------------|
//!  router        |.....head waits for link 2 until it is free.|-link 2------------|
//!  target                                                       |-link 3-----------| arrival
//! ```
//!
//! So an undisturbed message of *B* bytes over *h* hops takes `(h + 1) l + B / bandwidth`. Routes go along the row
//! first, then along the column (dimension order), each in the shorter direction, to higher numbers if both are equal.
//! Rings of waiting worms would deadlock. Therefore every link between routers is two virtual channels, and a worm that
//! has passed the end of a ring continues in the second one.
//!
//! A message is queued for the link from its source before those of a less urgent class; all other links ignore the
//! class.
//!
//! A head's step is a separate event only if another event comes before it: otherwise it is taken at once.
//!
//! Not modelled: buffers in routers (a waiting body shortens nothing), flits (a link is taken for nanoseconds, not
//! flits), and the shared bandwidth of the two virtual channels of a link.

use std::collections::VecDeque;

use description::{MachineDescription, Placement};
use machine::{Class, Duration};

use crate::agenda::{EventTarget, Kind};
use crate::executor::Executor;
use crate::link::{LinkRate, MESSAGE, MessageTiming, message_arguments};
use crate::statistics::{LinkStatistics, RouterLinkStatistics, Waits};
use crate::trace::{Trace, Track};

/// Value of [`Link::free`] while a worm holds the link and its release time is unknown.
const HELD: u64 = u64::MAX;

pub(crate) struct Torus {
    rate: LinkRate,
    latency: u64,
    columns: u32,
    rows: u32,
    /// Router of each node, by column and row.
    routers: Vec<(u32, u32)>,
    /// The first row and the first column; the others have the same links, at a constant distance in index.
    row: Ring,
    column: Ring,
    /// From each node one link into its router, and one back; then eight of each router: to the next and the previous
    /// column, to the next and the previous row, two virtual channels each.
    links: Vec<Link>,
    /// Worms in flight, and arrived ones, whose slots and routes are reused.
    worms: Vec<Worm>,
    arrived: Vec<u32>,
    /// Number of worms of classes other than demand. If it is 0, no worm can overtake another.
    unequal: usize,
}

/// Links of a row or a column of routers, in each direction in order, twice round: once in the first virtual channel,
/// then in the second.
struct Ring {
    places: u32,
    up: Vec<u32>,
    down: Vec<u32>,
}

impl Ring {
    /// Returns a ring of `places` routers. `first` is the first link along the ring of the router at place 0; the links
    /// of each next router are `stride` higher in index.
    fn new(places: u32, first: u32, stride: u32) -> Self {
        let twice = |from: u32| [from, from + 1].into_iter();
        let up = twice(first).flat_map(|from| (0..places).map(move |place| from + stride * place));
        let down =
            twice(first + 2).flat_map(|from| (0..places).rev().map(move |place| from + stride * place));
        Ring { places, up: up.collect(), down: down.collect() }
    }

    /// Returns the links of the shorter route from one place to another.
    #[inline]
    fn way(&self, from: u32, to: u32) -> &[u32] {
        let (up, count) = shorter(from, to, self.places);
        let (links, begin) = if up { (&self.up, from) } else { (&self.down, self.places - 1 - from) };
        &links[begin as usize..(begin + count) as usize]
    }
}

/// Link, or virtual channel, in one direction.
#[derive(Default)]
struct Link {
    free: u64,
    /// Total time in nanoseconds that worms held it.
    held: u64,
    /// Total time in nanoseconds that it carried bytes.
    carried: u64,
    /// Worms whose heads wait for it, with the start of their wait.
    queue: VecDeque<(u32, u64)>,
    waits: Waits,
}

#[derive(Default)]
struct Worm {
    message: usize,
    body: u64,
    bytes: u64,
    /// Maximum length of the body in links.
    links: usize,
    way: Vec<Step>,
    /// Number of links of its route that the head has taken.
    taken: u32,
    class: Class,
    /// True if another worm overtook this one in a queue after its advance had been scheduled.
    is_overtaken: bool,
}

/// Link of a route, and the time when the head took it.
#[derive(Clone, Copy)]
struct Step {
    link: u32,
    at: u64,
}

/// Message that has taken all links of its route.
pub(crate) struct Through {
    pub(crate) message: usize,
    pub(crate) passage: MessageTiming,
}

impl Torus {
    pub(crate) fn new(torus: &description::Torus, description: &MachineDescription) -> Self {
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
        let links = 2 * nodes + 8 * columns * rows;
        Torus {
            rate: LinkRate { bytes_per_second: torus.link_bandwidth.value.0 },
            latency: torus.router_latency.value.0.as_nanos(),
            columns,
            rows,
            routers,
            row: Ring::new(columns, 2 * nodes, 8),
            column: Ring::new(rows, 2 * nodes + 4, 8 * columns),
            links: (0..links).map(|_| Link::default()).collect(),
            worms: Vec::new(),
            arrived: Vec::new(),
            unequal: 0,
        }
    }

    /// Puts the message at the start of its route; returns the number of its worm, which the caller must advance at
    /// once.
    pub(crate) fn begin(
        &mut self,
        message: usize,
        source: usize,
        target: usize,
        bytes: u64,
        class: Class,
    ) -> usize {
        let worm = self.arrived.pop().unwrap_or_else(|| {
            self.worms.push(Worm::default());
            self.worms.len() as u32 - 1
        });
        let mut way = std::mem::take(&mut self.worms[worm as usize].way);
        self.find_way(source, target, &mut way);
        let body = self.rate.time(bytes);
        let links = body.checked_div(self.latency).map_or(usize::MAX, |links| links as usize + 1);
        self.unequal += usize::from(class != Class::Demand);
        self.worms[worm as usize] =
            Worm { message, body, bytes, links, way, taken: 0, class, is_overtaken: false };
        worm as usize
    }

    /// Advances the head now, and further as long as no other event comes before `quiet_until`.
    ///
    /// Schedules later steps of this worm, and of worms that it releases.
    // The whole step is inlined into its two callers, which are the hottest code of a torus.
    #[inline(always)]
    pub(crate) fn advance(&mut self, executor: &Executor, worm: usize, quiet_until: u64) -> Option<Through> {
        let mut now = executor.now();
        let Worm { body, bytes, way, taken, links, is_overtaken, .. } = &mut self.worms[worm];
        if std::mem::take(is_overtaken) {
            // It keeps its place in the queue, and advances when it is at the head of the queue again.
            return None;
        }
        loop {
            let step = &mut way[*taken as usize];
            if !self.links[step.link as usize].take(executor, worm as u32, now) {
                if *taken == 0 && self.unequal > 0 {
                    self.overtake(executor, worm, now);
                }
                return None;
            }
            step.at = now;
            if let Some(left) = (*taken as usize).checked_sub(*links) {
                // A short body has already left the links far behind its head.
                let Step { link, at } = way[left];
                self.links[link as usize].release(executor, at, now, *body);
                if let Some(trace) = executor.trace() {
                    record(trace, self.routers.len(), way, left, now, *bytes);
                }
            }
            *taken += 1;
            if *taken as usize == way.len() {
                return Some(self.finish(executor, worm, now));
            }
            now += self.latency;
            if now >= quiet_until {
                advance_at(executor, now, worm);
                return None;
            }
        }
    }

    /// Moves the last worm in the queue of its first link ahead of less urgent ones.
    #[cold]
    fn overtake(&mut self, executor: &Executor, worm: usize, now: u64) {
        let Worm { way, class, .. } = &self.worms[worm];
        let (index, class) = (way[0].link as usize, *class);
        let link = &mut self.links[index];
        let others = link.queue.iter().take(link.queue.len() - 1);
        let mut places = others.enumerate().map(|(place, &(other, _))| (place, other as usize));
        let less_urgent = places.find(|&(_, other)| self.worms[other].class > class);
        let Some((place, other)) = less_urgent else { return };
        let own = link.queue.pop_back().expect("it has just been put there");
        link.queue.insert(place, own);
        if place == 0 && link.free != HELD {
            // The advance of the other was already scheduled for the time when the link is free.
            self.worms[other].is_overtaken = true;
            advance_at(executor, link.free.max(now), worm);
        }
    }

    /// Handles the arrival of the head at the target, which fixes the release times of all links still held.
    #[inline(always)]
    fn finish(&mut self, executor: &Executor, worm: usize, now: u64) -> Through {
        self.arrived.push(worm as u32);
        let Worm { message, body, bytes, links, ref way, class, .. } = self.worms[worm];
        self.unequal -= usize::from(class != Class::Demand);
        let arrival = now + body;
        let mut tail = arrival;
        for step in way.iter().rev().take(links) {
            self.links[step.link as usize].release(executor, step.at, tail, body);
            tail = tail.saturating_sub(self.latency);
        }
        if let Some(trace) = executor.trace() {
            let last = way.len() - 1;
            if last < links {
                let free = arrival.saturating_sub(last as u64 * self.latency);
                record(trace, self.routers.len(), way, 0, free, bytes);
            }
            record(trace, self.routers.len(), way, last, arrival, bytes);
        }
        // The sender of a short message learns of its departure only when the head arrives.
        let departure = (arrival - body.min((way.len() as u64 - 1) * self.latency)).max(now);
        Through { message, passage: MessageTiming { departure, arrival } }
    }

    fn find_way(&self, source: usize, target: usize, way: &mut Vec<Step>) {
        let nodes = self.routers.len() as u32;
        let ((column, row), (to_column, to_row)) = (self.routers[source], self.routers[target]);
        let go = |links: &[u32], further: u32, way: &mut Vec<Step>| {
            way.extend(links.iter().map(|link| Step { link: link + further, at: 0 }));
        };
        way.clear();
        way.push(Step { link: source as u32, at: 0 });
        go(self.row.way(column, to_column), 8 * self.columns * row, way);
        go(self.column.way(row, to_row), 8 * to_column, way);
        way.push(Step { link: nodes + target as u32, at: 0 });
    }

    /// Returns the statistics of the link out of `node` and the link into it.
    pub(crate) fn node_links(&mut self, node: usize) -> (LinkStatistics, LinkStatistics) {
        let into = self.routers.len() + node;
        (self.links[node].statistics(), self.links[into].statistics())
    }

    /// Returns the statistics of the links between routers, router by router: to the next and the previous column, to
    /// the next and the previous row, two virtual channels each.
    pub(crate) fn router_links(&mut self) -> Vec<RouterLinkStatistics> {
        let (columns, rows) = (self.columns, self.rows);
        let link = |(index, link): (u32, &mut Link)| {
            let (router, direction, channel) = (index / 8, index % 8 / 2, index % 2);
            let (column, row) = (router % columns, router / columns);
            let to = match direction {
                0 => (step(column, true, columns), row),
                1 => (step(column, false, columns), row),
                2 => (column, step(row, true, rows)),
                _ => (column, step(row, false, rows)),
            };
            RouterLinkStatistics { from: (column, row), to, channel, link: link.statistics() }
        };
        (0..).zip(&mut self.links[2 * self.routers.len()..]).map(link).collect()
    }
}

impl Link {
    /// Takes the link for a worm whose head is here, if it is free and no worm is queued before it.
    #[inline(always)]
    fn take(&mut self, executor: &Executor, worm: u32, now: u64) -> bool {
        if self.free <= now {
            match self.queue.front() {
                None => {
                    self.free = HELD;
                    return true;
                }
                Some(&(first, since)) if first == worm => {
                    self.queue.pop_front();
                    self.waits.add(now - since);
                    self.free = HELD;
                    return true;
                }
                Some(_) => {}
            }
        }
        if self.queue.is_empty() && self.free != HELD {
            advance_at(executor, self.free, worm as usize);
        }
        self.queue.push_back((worm, now));
        false
    }

    /// Sets the time `free` when the tail of the worm that took the link at `taken` leaves it. Its body takes `body`.
    #[inline(always)]
    fn release(&mut self, executor: &Executor, taken: u64, free: u64, body: u64) {
        self.free = free;
        self.held += free - taken;
        self.carried += body;
        if let Some(&(next, _)) = self.queue.front() {
            advance_at(executor, free, next as usize);
        }
    }

    fn statistics(&mut self) -> LinkStatistics {
        LinkStatistics {
            carried: Duration::from_nanos(self.carried),
            held: Duration::from_nanos(self.held),
            waits: self.waits.take(),
        }
    }
}

/// Schedules an advance of the worm at `time`.
fn advance_at(executor: &Executor, time: u64, worm: usize) {
    executor.schedule(time, EventTarget::new(Kind::Head, worm));
}

/// Records that a message held the link of this step of its route until `free`, if it is the link of a node.
#[cold]
#[inline(never)]
fn record(trace: &Trace, nodes: usize, way: &[Step], index: usize, free: u64, bytes: u64) {
    let (source, target) = (way[0].link as usize, way[way.len() - 1].link as usize - nodes);
    let track = match index {
        0 => Track::LinkOut(source),
        last if last == way.len() - 1 => Track::LinkIn(target),
        _ => return,
    };
    trace.slice(track, MESSAGE, (way[index].at, free), &message_arguments(source, target, bytes));
}

/// Returns the shorter direction round a ring: true if to higher numbers, and the number of steps.
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

/// Returns the place of a node if compute nodes and I/O nodes alternate until one kind is used up.
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
    fn interleaving_uses_every_router_once() {
        for (compute, io) in [(16, 16), (3, 7), (7, 3), (1, 1)] {
            let mut places: Vec<u32> = (0..compute + io).map(|node| interleaved(node, compute, io)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..compute + io).collect::<Vec<_>>());
        }
        assert_eq!([0, 1, 2, 3, 4].map(|node| interleaved(node, 2, 3)), [0, 2, 1, 3, 4]);
    }

    #[test]
    fn a_route_continues_in_the_second_channel_past_the_end() {
        let ring = Ring::new(5, 100, 10);
        assert_eq!(ring.way(1, 3), [110, 120]);
        assert_eq!(ring.way(3, 1), [132, 122]);
        assert_eq!(ring.way(3, 0), [130, 140]);
        assert_eq!(ring.way(4, 1), [140, 101]);
        assert_eq!(ring.way(0, 3), [102, 143]);
        assert_eq!(ring.way(2, 2), []);
    }

    #[test]
    fn a_route_takes_the_shorter_direction() {
        assert_eq!(shorter(0, 5, 6), (false, 1));
        assert_eq!(shorter(5, 0, 6), (true, 1));
        assert_eq!(shorter(1, 4, 6), (true, 3));
        assert_eq!(shorter(4, 1, 6), (true, 3));
        assert_eq!(shorter(2, 2, 6), (true, 0));
        assert_eq!((step(5, true, 6), step(0, false, 6)), (0, 5));
    }
}
