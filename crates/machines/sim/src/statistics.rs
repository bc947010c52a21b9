//! Statistics of a machine: load of its parts, and waits for them.
//!
//! Every value is a sum since the start, so the statistics of an interval are the difference of two [`Statistics`]. The
//! parts of the machine update them directly; nothing here costs an event.

use machine::Duration;

/// Statistics of a machine over an interval.
///
/// Busy times count a piece of work in full when it begins, so they may run slightly ahead of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Length of the interval.
    pub elapsed: Duration,
    /// Number of timed events.
    pub events: u64,
    /// Number of messages sent.
    pub messages: u64,
    /// Bytes of these messages on the wire.
    pub message_bytes: u64,
    /// Statistics of each node: first the compute nodes, then the I/O nodes.
    pub nodes: Vec<NodeStatistics>,
    /// Statistics of each disk, in order of I/O nodes and disks within them.
    pub disks: Vec<DiskStatistics>,
    /// Statistics of each bus, in order of I/O nodes and buses within them.
    pub buses: Vec<BusStatistics>,
    /// Statistics of the virtual channels of links between routers, if there are any.
    pub router_links: Vec<RouterLinkStatistics>,
}

/// Load of the parts of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStatistics {
    /// Time that the processor worked for threads.
    pub processor_threads: Duration,
    /// Time that the processor worked for interrupts.
    pub processor_interrupts: Duration,
    /// Waits of threads for the processor while other threads used it.
    pub thread_waits: Waits,
    /// Waits of interrupts for earlier interrupts.
    pub interrupt_waits: Waits,
    /// Link out of the node.
    pub link_out: LinkStatistics,
    /// Link into the node.
    pub link_in: LinkStatistics,
}

/// Statistics of a processor; its part of [`NodeStatistics`].
pub(crate) struct ProcessorStatistics {
    pub(crate) threads: Duration,
    pub(crate) interrupts: Duration,
    pub(crate) thread_waits: Waits,
    pub(crate) interrupt_waits: Waits,
}

/// Statistics of a link in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Time that it carried bytes.
    pub carried: Duration,
    /// Time that messages held it: time to carry them, and their waits further on their route.
    pub held: Duration,
    /// Waits of messages for it.
    pub waits: Waits,
}

/// Statistics of one of the two virtual channels of a link from a router to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterLinkStatistics {
    /// Column and row of the router it leaves.
    pub from: (u32, u32),
    /// Column and row of the router it leads to.
    pub to: (u32, u32),
    /// Index of the virtual channel, 0 or 1.
    pub channel: u32,
    /// Statistics of the channel.
    pub link: LinkStatistics,
}

/// Statistics of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStatistics {
    /// Busy time.
    pub busy: Duration,
    /// Number of bytes transferred.
    pub bytes: u64,
    /// Waits of transfers for it.
    pub waits: Waits,
}

/// Statistics of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Movements and times of the mechanics.
    pub mechanics: disk::Statistics,
    /// Accesses, bytes and service times.
    pub counts: DiskCounts,
    /// Waits of tasks of the I/O node for their slot at the disk.
    pub waits: Waits,
    /// Maximum of pending bytes of writes, waiting for their slot or using it. Like [the longest wait](Waits::longest),
    /// it covers the time since the previous statistics.
    pub writes_pending_most: u64,
}

/// Accesses to a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Number of completed reads.
    pub reads: u64,
    /// Number of completed writes.
    pub writes: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
    /// Number of bytes written.
    pub bytes_written: u64,
    /// Service times of all reads: from the drive taking the command until the data are over the bus.
    pub read_time: Duration,
    /// Service times of all writes: from the drive taking the command until it reports completion.
    pub write_time: Duration,
}

/// Waits in a queue; waits of length zero are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Total length of the waits.
    pub total: Duration,
    /// Length of the longest wait.
    ///
    /// A maximum is no sum, so it covers the time since the previous statistics. A difference of two statistics covers
    /// the same interval as the rest, if none were taken in between.
    pub longest: Duration,
}

impl Statistics {
    /// Returns the statistics since `earlier` statistics of the same machine.
    ///
    /// # Panics
    /// If `earlier` belongs to a machine of another size.
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

    /// Returns the number of movements of all disks.
    pub fn movements(&self) -> u64 {
        self.disks.iter().map(|disk| disk.mechanics.movements).sum()
    }

    /// Returns the fraction of the interval that `busy` makes up.
    pub fn utilisation(&self, busy: Duration) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { busy.as_secs_f64() / self.elapsed.as_secs_f64() }
    }
}

/// Returns the difference of each element to that of the same index.
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

/// Value that rises and falls, with its maximum.
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

    /// Returns the maximum since the previous call.
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

    /// Returns these waits, and resets the longest.
    pub(crate) fn take(&mut self) -> Waits {
        let taken = *self;
        self.longest = Duration::ZERO;
        taken
    }

    fn since(self, earlier: Self) -> Self {
        Waits { count: self.count - earlier.count, total: self.total - earlier.total, longest: self.longest }
    }

    /// Returns the combination of these waits and those of `other`.
    #[must_use]
    pub fn and(self, other: Waits) -> Waits {
        Waits {
            count: self.count + other.count,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }

    /// Returns the mean length; zero if there were no waits.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.total.as_nanos().checked_div(self.count).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_covers_the_time_since_the_last_query() {
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
