//! Metrics of an agent: its requests, cache and disks.

use std::collections::BTreeMap;

use fs::{FailureKind, IoNodeCounts, IoNodeDiskCounts};
use machine::Class;

use crate::class_name;
use crate::family::MetricFamily;
use crate::family::MetricUnit::Bytes;
use crate::samples::{MetricValue, Samples};

const REQUESTS: MetricFamily = MetricFamily::times(
    "starfish_agent_request",
    &["operation", "class"],
    "Time from the arrival of a request to the departure of its reply, by operation and priority class",
);
const FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_agent_request_failures",
    &["kind"],
    "Failed requests, by kind of failure; lookups of missing names count, too",
);
const REFUSED: MetricFamily = MetricFamily::counter(
    "starfish_agent_refused_requests",
    &[],
    "Requests refused because their client had too many in flight",
);
const BAD_MESSAGES: MetricFamily =
    MetricFamily::counter("starfish_agent_bad_messages", &[], "Malformed messages");
const SENT: MetricFamily =
    MetricFamily::counter("starfish_agent_sent", &[], "Data sent to clients: their reads").in_unit(Bytes);
const RECEIVED: MetricFamily =
    MetricFamily::counter("starfish_agent_received", &[], "Data received from clients: their writes")
        .in_unit(Bytes);
const CLIENTS: MetricFamily =
    MetricFamily::gauge("starfish_agent_clients", &[], "Clients that are connected");
const OPEN_STRIPES: MetricFamily = MetricFamily::gauge("starfish_agent_open_stripes", &[], "Open stripes");
const WAITING: MetricFamily = MetricFamily::gauge(
    "starfish_agent_waiting_requests",
    &["class"],
    "Block requests that wait for a thread",
);
const BUSY_THREADS: MetricFamily =
    MetricFamily::gauge("starfish_agent_busy_threads", &[], "Threads that serve block requests");
const CACHE_READS: MetricFamily = MetricFamily::counter(
    "starfish_agent_cache_reads",
    &["result"],
    "Block reads: hit if the cache had all bytes, miss if the read waited for a disk or a prefetch",
);
const CACHE_READ_BYTES: MetricFamily =
    MetricFamily::counter("starfish_agent_cache_read", &["result"], "Bytes of these reads").in_unit(Bytes);
const PREFETCHES: MetricFamily =
    MetricFamily::counter("starfish_agent_cache_prefetches", &[], "Blocks prefetched");
const BLOCKS: MetricFamily =
    MetricFamily::gauge("starfish_agent_cache_blocks", &[], "Blocks in the cache, clean and dirty");
const BLOCKS_MAX: MetricFamily =
    MetricFamily::gauge("starfish_agent_cache_max_blocks", &[], "Capacity of the cache in blocks");
const DIRTY_BLOCKS: MetricFamily = MetricFamily::gauge(
    "starfish_agent_cache_dirty_blocks",
    &[],
    "Blocks with written data that are not on their disk",
);
const DIRTY_BYTES: MetricFamily = MetricFamily::gauge(
    "starfish_agent_cache_dirty",
    &[],
    "Written bytes in the cache that are not on their disk",
)
.in_unit(Bytes);
const DISK: MetricFamily =
    MetricFamily::info("starfish_agent_disk", &["disk", "directory"], "The disks, in the order of --root");
const DISK_UP: MetricFamily = MetricFamily::gauge(
    "starfish_agent_disk_up",
    &["disk"],
    "1 if the disk answers, 0 if it fails or has not answered for a second",
);
const DISK_SIZE: MetricFamily =
    MetricFamily::gauge("starfish_agent_disk_size", &["disk"], "Size of the disk").in_unit(Bytes);
const DISK_FREE: MetricFamily =
    MetricFamily::gauge("starfish_agent_disk_free", &["disk"], "Free space on the disk").in_unit(Bytes);
const DISK_WAITS: MetricFamily = MetricFamily::times(
    "starfish_agent_disk_wait",
    &["disk"],
    "Time that a read or write waited in the queue of the disk",
);
const DISK_ACCESSES: MetricFamily = MetricFamily::times(
    "starfish_agent_disk_access",
    &["disk", "direction"],
    "Time that a read or write took at the disk",
);
const DISK_FLUSHES: MetricFamily =
    MetricFamily::times("starfish_agent_disk_flush", &["disk"], "Time to flush a stripe to stable storage");
const DISK_READ_BYTES: MetricFamily =
    MetricFamily::counter("starfish_agent_disk_read", &["disk"], "Data read from the disk").in_unit(Bytes);
const DISK_WRITTEN_BYTES: MetricFamily =
    MetricFamily::counter("starfish_agent_disk_written", &["disk"], "Data written to the disk")
        .in_unit(Bytes);
const DISK_FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_agent_disk_failures",
    &["disk"],
    "Failed reads, writes and flushes of the disk",
);
const HELD_UP: MetricFamily = MetricFamily::counter(
    "starfish_agent_disk_held_up_reads",
    &["disk"],
    "Reads delayed by many writes of another client, possibly a race",
);
const DISK_WAITING: MetricFamily = MetricFamily::gauge(
    "starfish_agent_disk_waiting_accesses",
    &["disk"],
    "Reads and writes in the queue of the disk",
);
const PENDING_WRITES: MetricFamily = MetricFamily::gauge(
    "starfish_agent_disk_pending_write",
    &["disk"],
    "Blocks that wait to be written to the disk or are being written",
)
.in_unit(Bytes);

/// All families of an agent.
pub static FAMILIES: [MetricFamily; 30] = [
    REQUESTS,
    FAILURES,
    REFUSED,
    BAD_MESSAGES,
    SENT,
    RECEIVED,
    CLIENTS,
    OPEN_STRIPES,
    WAITING,
    BUSY_THREADS,
    CACHE_READS,
    CACHE_READ_BYTES,
    PREFETCHES,
    BLOCKS,
    BLOCKS_MAX,
    DIRTY_BLOCKS,
    DIRTY_BYTES,
    DISK,
    DISK_UP,
    DISK_SIZE,
    DISK_FREE,
    DISK_WAITS,
    DISK_ACCESSES,
    DISK_FLUSHES,
    DISK_READ_BYTES,
    DISK_WRITTEN_BYTES,
    DISK_FAILURES,
    HELD_UP,
    DISK_WAITING,
    PENDING_WRITES,
];

/// Adds the counts of an agent. `directories` are the directories of its disks.
pub fn add_to(samples: &mut Samples, counts: &IoNodeCounts, directories: &[String]) {
    FAMILIES.iter().for_each(|family| samples.add_family(family));
    add_requests(samples, counts);
    add_cache(samples, counts);
    for (disk, counts) in counts.disks.iter().enumerate() {
        let name = disk.to_string();
        if let Some(directory) = directories.get(disk) {
            samples.add(&DISK, [&name, directory], MetricValue::Info);
        }
        add_disk(samples, &name, counts);
    }
}

fn add_requests(samples: &mut Samples, counts: &IoNodeCounts) {
    let IoNodeCounts { traffic, pool, .. } = counts;
    for served in &traffic.served {
        samples.add(&REQUESTS, [served.operation, class_name(served.class)], &served.times);
    }
    let failures: BTreeMap<&str, u64> = traffic.failures.iter().copied().collect();
    // Add kinds without failures, too. A series that appeared only with its first failure would start at 1, and queries
    // would see no increase.
    for kind in FailureKind::ALL {
        samples.add(&FAILURES, [kind.name()], failures.get(kind.name()).copied().unwrap_or(0));
    }
    samples.add(&REFUSED, [], counts.refused);
    samples.add(&BAD_MESSAGES, [], traffic.bad_messages);
    samples.add(&SENT, [], traffic.bytes_sent);
    samples.add(&RECEIVED, [], traffic.bytes_received);
    samples.add(&CLIENTS, [], counts.clients);
    samples.add(&OPEN_STRIPES, [], counts.open_stripes);
    samples.add(&WAITING, [class_name(Class::Demand)], pool.waiting_on_demand);
    samples.add(&WAITING, [class_name(Class::Background)], pool.waiting_in_background);
    samples.add(&BUSY_THREADS, [], pool.busy_threads);
}

fn add_cache(samples: &mut Samples, counts: &IoNodeCounts) {
    let cache = &counts.cache;
    samples.add(&CACHE_READS, ["hit"], cache.hits);
    samples.add(&CACHE_READS, ["miss"], cache.misses);
    samples.add(&CACHE_READ_BYTES, ["hit"], cache.hit_bytes);
    samples.add(&CACHE_READ_BYTES, ["miss"], cache.missed_bytes);
    samples.add(&PREFETCHES, [], cache.prefetches);
    samples.add(&BLOCKS, [], cache.blocks);
    samples.add(&BLOCKS_MAX, [], cache.blocks_max);
    samples.add(&DIRTY_BLOCKS, [], cache.dirty_blocks);
    samples.add(&DIRTY_BYTES, [], cache.dirty_bytes);
}

fn add_disk(samples: &mut Samples, disk: &str, counts: &IoNodeDiskCounts) {
    samples.add(&DISK_UP, [disk], u64::from(counts.answers));
    if let Some(space) = counts.space {
        samples.add(&DISK_SIZE, [disk], space.bytes);
        samples.add(&DISK_FREE, [disk], space.free);
    }
    samples.add(&DISK_WAITS, [disk], &counts.waits);
    samples.add(&DISK_ACCESSES, [disk, "read"], &counts.reads);
    samples.add(&DISK_ACCESSES, [disk, "write"], &counts.writes);
    samples.add(&DISK_FLUSHES, [disk], &counts.flushes);
    samples.add(&DISK_READ_BYTES, [disk], counts.bytes_read);
    samples.add(&DISK_WRITTEN_BYTES, [disk], counts.bytes_written);
    samples.add(&DISK_FAILURES, [disk], counts.failures);
    samples.add(&HELD_UP, [disk], counts.held_up_reads);
    samples.add(&DISK_WAITING, [disk], counts.waiting);
    samples.add(&PENDING_WRITES, [disk], counts.pending_write_bytes);
}
