//! Transport of messages: over a constant delay, a switch, or a torus (in `torus.rs`).
//!
//! The constant delay and the switch reserve the whole route of a message when it is sent, in the order of sends. So a
//! message needs only one event, its arrival.
//!
//! # The switch
//!
//! Every node has one link to the switch and one from it, each with a separate queue; between them is a fabric without
//! contention. If the receiver's link is free, a message is forwarded while it is still arriving (cut-through).
//! Otherwise it waits in the switch, which has unlimited memory; so a busy receiver never blocks its senders.
//!
//! Classes of messages: a demand message uses the links as described above. A control message is sent at once,
//! interleaved with others. It does not delay their reservations, so a link carries its few bytes in excess of the
//! link's rate. A background message waits at its source (in `network.rs`) until the outgoing link is free.

use description::{MachineDescription, Topology};
use machine::{Class, Duration};

use crate::executor::Executor;
use crate::link::{LinkRate, MESSAGE, MessageTiming, message_arguments};
use crate::statistics::{LinkStatistics, RouterLinkStatistics, Waits};
use crate::torus::Torus;
use crate::trace::Track;

pub(crate) enum Fabric {
    Constant { delay: u64 },
    Switch(Switch),
    Torus(Torus),
}

/// Link in one direction.
#[derive(Clone, Copy, Default)]
struct Link {
    free: u64,
    /// Total time in nanoseconds for which the link carried messages.
    carried: u64,
    waits: Waits,
}

impl Link {
    /// Carries a message that is present at `now` for `nanoseconds`, as soon as the link is free. Returns the start
    /// time.
    fn carry(&mut self, now: u64, nanoseconds: u64) -> u64 {
        let begin = now.max(self.free);
        self.waits.add(begin - now);
        self.free = begin + nanoseconds;
        self.carried += nanoseconds;
        begin
    }

    /// Carries a message at once, interleaved with others.
    fn carry_in_between(&mut self, now: u64, nanoseconds: u64) -> u64 {
        self.waits.add(0);
        self.free = self.free.max(now) + nanoseconds;
        self.carried += nanoseconds;
        now
    }

    /// Returns the link's statistics. The held time equals the carried time, because in these topologies no link waits
    /// for another.
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

    /// Returns the time until which a background message must wait at `source`, if it must wait.
    pub(crate) fn busy_until(&self, executor: &Executor, source: usize) -> Option<u64> {
        match self {
            Fabric::Switch(switch) => Some(switch.out[source].free).filter(|&free| free > executor.now()),
            // A constant delay has no contention, and the torus orders its queues by class.
            Fabric::Constant { .. } | Fabric::Torus(_) => None,
        }
    }

    /// Sends `bytes` bytes now and returns their times; `None` if they need a worm in the torus.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        executor: &Executor,
        source: usize,
        target: usize,
        bytes: u64,
        class: Class,
    ) -> Option<MessageTiming> {
        let now = executor.now();
        if source == target {
            return Some(MessageTiming { departure: now, arrival: now });
        }
        Some(match self {
            Fabric::Constant { delay } => MessageTiming { departure: now, arrival: now + *delay },
            Fabric::Switch(switch) => switch.pass(executor, source, target, bytes, class),
            Fabric::Torus(_) => return None,
        })
    }

    /// Returns the statistics of the link out of `node` and the link into it.
    pub(crate) fn links(&mut self, node: usize) -> (LinkStatistics, LinkStatistics) {
        match self {
            Fabric::Constant { .. } => Default::default(),
            Fabric::Switch(switch) => (switch.out[node].statistics(), switch.into[node].statistics()),
            Fabric::Torus(torus) => torus.node_links(node),
        }
    }

    /// Returns the statistics of the links between routers.
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
    ) -> MessageTiming {
        let body = self.rate.time(bytes);
        let carry = if class == Class::Control { Link::carry_in_between } else { Link::carry };
        let start = carry(&mut self.out[source], executor.now(), body);
        let through = carry(&mut self.into[target], start + self.latency, body);
        if let Some(trace) = executor.trace() {
            let arguments = message_arguments(source, target, bytes);
            // An interleaved message delays the others, so its time is recorded at the end of theirs.
            let taken = |link: &Link| (link.free - body, link.free);
            trace.slice(Track::LinkOut(source), MESSAGE, taken(&self.out[source]), &arguments);
            trace.slice(Track::LinkIn(target), MESSAGE, taken(&self.into[target]), &arguments);
        }
        MessageTiming { departure: start + body, arrival: through + body }
    }
}
