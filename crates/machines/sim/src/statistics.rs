//! What a machine has done: how busy its parts were, and how long anything waited for them.
//!
//! Everything is a sum since the start, so what happened in a part of a run is a difference of two
//! [`Statistics`]. The parts of the machine add to them as they go; nothing here costs an event.

use machine::Duration;

/// What a machine has done in a stretch of time.
///
/// Busy times count a piece of work in full when it begins, so they may run a little ahead of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// How long the stretch is.
    pub elapsed: Duration,
    /// Timed events.
    pub events: u64,
    /// Messages sent.
    pub messages: u64,
    /// Their bytes on the wire.
    pub message_bytes: u64,
    /// Of each node: first the compute nodes, then the I/O nodes.
    pub nodes: Vec<NodeStatistics>,
    /// Of each disk: the first of the first I/O node, and so on.
    pub disks: Vec<DiskStatistics>,
    /// Of each bus: the first of the first I/O node, and so on.
    pub buses: Vec<BusStatistics>,
    /// Of the virtual channels of links between routers, if there are any.
    pub router_links: Vec<RouterLinkStatistics>,
}

/// How busy the parts of a node were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStatistics {
    /// How long the processor did work of threads.
    pub processor_threads: Duration,
    /// How long it did that of interrupts.
    pub processor_interrupts: Duration,
    /// How threads waited for the processor, as long as other threads had it.
    pub thread_waits: Waits,
    /// How interrupts waited for interrupts before them.
    pub interrupt_waits: Waits,
    /// The link out of the node.
    pub link_out: LinkStatistics,
    /// The link into the node.
    pub link_in: LinkStatistics,
}

/// What a processor has done; the part of [`NodeStatistics`] that it knows.
pub(crate) struct ProcessorStatistics {
    pub(crate) threads: Duration,
    pub(crate) interrupts: Duration,
    pub(crate) thread_waits: Waits,
    pub(crate) interrupt_waits: Waits,
}

/// What a link, in one direction, has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// How long bytes went over it.
    pub carried: Duration,
    /// How long messages held it: that, and what they waited further on their way.
    pub held: Duration,
    /// How messages waited for it.
    pub waits: Waits,
}

/// What one of the two virtual channels of a link from a router to a neighbour has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterLinkStatistics {
    /// Column and row of the router it leaves.
    pub from: (u32, u32),
    /// Column and row of the router it leads to.
    pub to: (u32, u32),
    /// Which of the two.
    pub channel: u32,
    /// What it has done.
    pub link: LinkStatistics,
}

/// What a bus has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStatistics {
    /// How long it was busy.
    pub busy: Duration,
    /// Bytes that went over it.
    pub bytes: u64,
    /// How transfers waited for it.
    pub waits: Waits,
}

/// What a disk has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Movements and times of the mechanics.
    pub mechanics: disk::Statistics,
    /// Accesses, bytes and service times.
    pub counts: DiskCounts,
    /// How tasks of the I/O node waited for their turn to use the disk.
    pub waits: Waits,
    /// The most bytes of writes that were pending there: waiting for their turn, or having it. As with
    /// [the longest wait](Waits::longest), since statistics were taken before.
    pub writes_pending_most: u64,
}

/// How much was asked of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Service times of all reads: from the drive taking the command until the data are over the bus.
    pub read_time: Duration,
    /// Service times of all writes: from the drive taking the command until it reports completion.
    pub write_time: Duration,
}

/// Waits in a queue, those of no time not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many there were.
    pub count: u64,
    /// How long they were together.
    pub total: Duration,
    /// The longest.
    ///
    /// A longest wait is no sum, so it is of the time since statistics were taken before: after a difference, of
    /// the same time as the rest, if none were taken in between.
    pub longest: Duration,
}

impl Statistics {
    /// What the machine has done since `earlier` statistics of it.
    ///
    /// # Panics
    /// If `earlier` are of a machine of another size.
    #[must_use]
    pub fn since(&self, earlier: &Statistics) -> Statistics {
        Statistics {
            elapsed: self.elapsed - earlier.elapsed,
            events: self.events - earlier.events,
            messages: self.messages - earlier.messages,
            message_bytes: self.message_bytes - earlier.message_bytes,
            nodes: differences(&self.nodes, &earlier.nodes, NodeStatistics::since),
            disks: differences(&self.disks, &earlier.disks, DiskStatistics::since),
            buses: differences(&self.buses, &earlier.buses, BusStatistics::since),
            router_links: differences(&self.router_links, &earlier.router_links, RouterLinkStatistics::since),
        }
    }

    /// Movements of all disks together.
    pub fn movements(&self) -> u64 {
        self.disks.iter().map(|disk| disk.mechanics.movements).sum()
    }

    /// The part of the time in which something was `busy`.
    pub fn utilisation(&self, busy: Duration) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { busy.as_secs_f64() / self.elapsed.as_secs_f64() }
    }
}

/// The difference of each element to that of the same index.
fn differences<T>(later: &[T], earlier: &[T], since: impl Fn(&T, &T) -> T) -> Vec<T> {
    assert_eq!(later.len(), earlier.len(), "statistics of one machine");
    later.iter().zip(earlier).map(|(later, earlier)| since(later, earlier)).collect()
}

impl NodeStatistics {
    fn since(&self, earlier: &Self) -> Self {
        NodeStatistics {
            processor_threads: self.processor_threads - earlier.processor_threads,
            processor_interrupts: self.processor_interrupts - earlier.processor_interrupts,
            thread_waits: self.thread_waits.since(earlier.thread_waits),
            interrupt_waits: self.interrupt_waits.since(earlier.interrupt_waits),
            link_out: self.link_out.since(earlier.link_out),
            link_in: self.link_in.since(earlier.link_in),
        }
    }
}

impl LinkStatistics {
    fn since(self, earlier: Self) -> Self {
        LinkStatistics {
            carried: self.carried - earlier.carried,
            held: self.held - earlier.held,
            waits: self.waits.since(earlier.waits),
        }
    }
}

impl RouterLinkStatistics {
    fn since(&self, earlier: &Self) -> Self {
        RouterLinkStatistics { link: self.link.since(earlier.link), ..*self }
    }
}

impl BusStatistics {
    fn since(&self, earlier: &Self) -> Self {
        BusStatistics {
            busy: self.busy - earlier.busy,
            bytes: self.bytes - earlier.bytes,
            waits: self.waits.since(earlier.waits),
        }
    }
}

impl DiskStatistics {
    fn since(&self, earlier: &Self) -> Self {
        let (counts, before) = (self.counts, earlier.counts);
        DiskStatistics {
            mechanics: self.mechanics.since(earlier.mechanics),
            counts: DiskCounts {
                reads: counts.reads - before.reads,
                writes: counts.writes - before.writes,
                bytes_read: counts.bytes_read - before.bytes_read,
                bytes_written: counts.bytes_written - before.bytes_written,
                read_time: counts.read_time - before.read_time,
                write_time: counts.write_time - before.write_time,
            },
            waits: self.waits.since(earlier.waits),
            writes_pending_most: self.writes_pending_most,
        }
    }
}

/// A number that goes up and down, and the highest that it was.
#[derive(Clone, Copy, Default)]
pub(crate) struct HighWater {
    now: u64,
    most: u64,
}

impl HighWater {
    pub(crate) fn set(&mut self, level: u64) {
        self.now = level;
        self.most = self.most.max(level);
    }

    /// The highest since it was asked for before.
    pub(crate) fn take_most(&mut self) -> u64 {
        std::mem::replace(&mut self.most, self.now)
    }
}

impl Waits {
    /// Counts a wait of `nanoseconds`.
    #[inline]
    pub(crate) fn add(&mut self, nanoseconds: u64) {
        if nanoseconds > 0 {
            self.count += 1;
            self.total += Duration::from_nanos(nanoseconds);
            self.longest = self.longest.max(Duration::from_nanos(nanoseconds));
        }
    }

    /// These waits, of which the longest is forgotten.
    pub(crate) fn take(&mut self) -> Waits {
        let taken = *self;
        self.longest = Duration::ZERO;
        taken
    }

    fn since(self, earlier: Self) -> Self {
        Waits { count: self.count - earlier.count, total: self.total - earlier.total, longest: self.longest }
    }

    /// All of these waits and those of `other`.
    #[must_use]
    pub fn and(self, other: Waits) -> Waits {
        Waits {
            count: self.count + other.count,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }

    /// How long they were on average; nothing if there were none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.total.as_nanos().checked_div(self.count).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_of_the_time_since_it_was_taken() {
        let mut waits = Waits::default();
        [5, 0, 9].into_iter().for_each(|wait| waits.add(wait));
        let before = waits.take();
        [4, 2].into_iter().for_each(|wait| waits.add(wait));
        let since = waits.take().since(before);
        assert_eq!((before.count, before.total, before.longest.as_nanos()), (2, Duration::from_nanos(14), 9));
        assert_eq!((since.count, since.total, since.longest.as_nanos()), (2, Duration::from_nanos(6), 4));
        assert_eq!((since.mean().as_nanos(), Waits::default().mean()), (3, Duration::ZERO));
    }
}
