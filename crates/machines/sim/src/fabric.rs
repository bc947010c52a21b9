//! How messages travel: over a constant delay, a switch, or a torus (in `torus.rs`).
//!
//! Over the first two a message is reserved its whole way at the moment it is sent, first come, first served,
//! so it costs one event, its arrival.
//!
//! # The switch
//!
//! Every node has one link to the switch and one from it, each with its own queue; between them lies a fabric
//! without contention. A message streams through (cut-through) if the receiver's link is free, and waits in
//! the switch, which has room for any number, if it is not; so a busy receiver never holds up its senders.
//!
//! Classes of messages: one on demand takes the links as said. One of control goes at once, in between: what has
//! been reserved is not moved for it, so for its few bytes a link carries more than it can. One in the background
//! waits at its source (in `network.rs`) until the link from there is free.

use description::{MachineDescription, Topology};
use machine::{Class, Duration};

use crate::executor::Executor;
use crate::link::{LinkRate, MESSAGE, Passage, message_arguments};
use crate::statistics::{LinkStatistics, RouterLinkStatistics, Waits};
use crate::torus::Torus;
use crate::trace::Track;

pub(crate) enum Fabric {
    Constant { delay: u64 },
    Switch(Switch),
    Torus(Torus),
}

/// A link in one direction.
#[derive(Clone, Copy, Default)]
struct Link {
    free: u64,
    /// How long it has carried messages in all.
    carried: u64,
    waits: Waits,
}

impl Link {
    /// Carries a message that is there at `now` for `nanoseconds`, as soon as it is free; gives the beginning.
    fn carry(&mut self, now: u64, nanoseconds: u64) -> u64 {
        let begin = now.max(self.free);
        self.waits.add(begin - now);
        self.free = begin + nanoseconds;
        self.carried += nanoseconds;
        begin
    }

    /// Carries a message in between others, at once.
    fn carry_in_between(&mut self, now: u64, nanoseconds: u64) -> u64 {
        self.waits.add(0);
        self.free = self.free.max(now) + nanoseconds;
        self.carried += nanoseconds;
        now
    }

    /// Nothing holds a link up here, so it is held just while it carries.
    fn statistics(&mut self) -> LinkStatistics {
        let carried = Duration::from_nanos(self.carried);
        LinkStatistics { carried, held: carried, waits: self.waits.take() }
    }
}

pub(crate) struct Switch {
    rate: LinkRate,
    latency: u64,
    out: Vec<Link>,
    into: Vec<Link>,
}

impl Fabric {
    pub(crate) fn new(description: &MachineDescription) -> Self {
        let nodes = description.node_count() as usize;
        match &description.network.topology {
            Topology::Constant { delay } => Fabric::Constant { delay: delay.value.0.as_nanos() },
            Topology::Switch { link_bandwidth, latency } => Fabric::Switch(Switch {
                rate: LinkRate { bytes_per_second: link_bandwidth.value.0 },
                latency: latency.value.0.as_nanos(),
                out: vec![Link::default(); nodes],
                into: vec![Link::default(); nodes],
            }),
            Topology::Torus(torus) => Fabric::Torus(Torus::new(torus, description)),
        }
    }

    /// Until when a message in the background has to wait at `source`, if it has to.
    pub(crate) fn busy_until(&self, executor: &Executor, source: usize) -> Option<u64> {
        match self {
            Fabric::Switch(switch) => Some(switch.out[source].free).filter(|&free| free > executor.now()),
            // Nothing is ever in the way over a constant delay, and the torus has queues with an order.
            Fabric::Constant { .. } | Fabric::Torus(_) => None,
        }
    }

    /// Sends `bytes` on their way now, unless that takes a worm in the torus.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        executor: &Executor,
        source: usize,
        target: usize,
        bytes: u64,
        class: Class,
    ) -> Option<Passage> {
        let now = executor.now();
        if source == target {
            return Some(Passage { departure: now, arrival: now });
        }
        Some(match self {
            Fabric::Constant { delay } => Passage { departure: now, arrival: now + *delay },
            Fabric::Switch(switch) => switch.pass(executor, source, target, bytes, class),
            Fabric::Torus(_) => return None,
        })
    }

    /// What the link out of `node` and the link into it have done.
    pub(crate) fn links(&mut self, node: usize) -> (LinkStatistics, LinkStatistics) {
        match self {
            Fabric::Constant { .. } => Default::default(),
            Fabric::Switch(switch) => (switch.out[node].statistics(), switch.into[node].statistics()),
            Fabric::Torus(torus) => torus.node_links(node),
        }
    }

    /// What the links between routers have done.
    pub(crate) fn router_links(&mut self) -> Vec<RouterLinkStatistics> {
        match self {
            Fabric::Constant { .. } | Fabric::Switch(_) => Vec::new(),
            Fabric::Torus(torus) => torus.router_links(),
        }
    }
}

impl Switch {
    fn pass(
        &mut self,
        executor: &Executor,
        source: usize,
        target: usize,
        bytes: u64,
        class: Class,
    ) -> Passage {
        let body = self.rate.time(bytes);
        let carry = if class == Class::Control { Link::carry_in_between } else { Link::carry };
        let start = carry(&mut self.out[source], executor.now(), body);
        let through = carry(&mut self.into[target], start + self.latency, body);
        if let Some(trace) = executor.trace() {
            let arguments = message_arguments(source, target, bytes);
            // One that goes in between makes others later, so the time that it takes is at the end of theirs.
            let taken = |link: &Link| (link.free - body, link.free);
            trace.slice(Track::LinkOut(source), MESSAGE, taken(&self.out[source]), &arguments);
            trace.slice(Track::LinkIn(target), MESSAGE, taken(&self.into[target]), &arguments);
        }
        Passage { departure: start + body, arrival: through + body }
    }
}
