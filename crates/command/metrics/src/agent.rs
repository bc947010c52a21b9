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
    "Requests served: from when each had come to when its answer had left, by what was asked for and how urgent it was",
);
const FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_agent_request_failures",
    &["kind"],
    "Requests whose answer was a failure, by its kind; a name that is not there is one, too",
);
const REFUSED: MetricFamily = MetricFamily::counter(
    "starfish_agent_refused_requests",
    &[],
    "Requests refused because their client had too many under way",
);
const BAD_MESSAGES: MetricFamily =
    MetricFamily::counter("starfish_agent_bad_messages", &[], "Messages that made no sense");
const SENT: MetricFamily =
    MetricFamily::counter("starfish_agent_sent", &[], "Data that has left for clients: what they read")
        .in_unit(Bytes);
const RECEIVED: MetricFamily =
    MetricFamily::counter("starfish_agent_received", &[], "Data that has come from clients: what they write")
        .in_unit(Bytes);
const CLIENTS: MetricFamily =
    MetricFamily::gauge("starfish_agent_clients", &[], "Clients that are connected");
const OPEN_STRIPES: MetricFamily =
    MetricFamily::gauge("starfish_agent_open_stripes", &[], "Stripes of files that are open");
const WAITING: MetricFamily = MetricFamily::gauge(
    "starfish_agent_waiting_requests",
    &["class"],
    "Requests for blocks that wait for a thread",
);
const BUSY_THREADS: MetricFamily =
    MetricFamily::gauge("starfish_agent_busy_threads", &[], "Threads that serve requests for blocks");
const CACHE_READS: MetricFamily = MetricFamily::counter(
    "starfish_agent_cache_reads",
    &["result"],
    "Reads of blocks: hit if all was in the cache, miss if a disk or a prefetch had to be waited for",
);
const CACHE_READ_BYTES: MetricFamily =
    MetricFamily::counter("starfish_agent_cache_read", &["result"], "Bytes of these reads").in_unit(Bytes);
const PREFETCHES: MetricFamily = MetricFamily::counter(
    "starfish_agent_cache_prefetches",
    &[],
    "Blocks that were begun to be read before anybody had asked for them",
);
const BLOCKS: MetricFamily =
    MetricFamily::gauge("starfish_agent_cache_blocks", &[], "Blocks in the cache, clean and dirty");
const BLOCKS_MAX: MetricFamily =
    MetricFamily::gauge("starfish_agent_cache_max_blocks", &[], "Blocks that may be in the cache");
const DIRTY_BLOCKS: MetricFamily = MetricFamily::gauge(
    "starfish_agent_cache_dirty_blocks",
    &[],
    "Blocks with something that has been written and is not at its disk",
);
const DIRTY_BYTES: MetricFamily =
    MetricFamily::gauge("starfish_agent_cache_dirty", &[], "How much that is").in_unit(Bytes);
const DISK: MetricFamily =
    MetricFamily::info("starfish_agent_disk", &["disk", "directory"], "The disks, in the order of --root");
const DISK_UP: MetricFamily = MetricFamily::gauge(
    "starfish_agent_disk_up",
    &["disk"],
    "1 if the disk answers, 0 if it fails or has not answered for a second",
);
const DISK_SIZE: MetricFamily =
    MetricFamily::gauge("starfish_agent_disk_size", &["disk"], "How much the disk holds").in_unit(Bytes);
const DISK_FREE: MetricFamily =
    MetricFamily::gauge("starfish_agent_disk_free", &["disk"], "How much of it is free").in_unit(Bytes);
const DISK_WAITS: MetricFamily = MetricFamily::times(
    "starfish_agent_disk_wait",
    &["disk"],
    "Reads and writes: how long each has waited for its turn at the disk",
);
const DISK_ACCESSES: MetricFamily = MetricFamily::times(
    "starfish_agent_disk_access",
    &["disk", "direction"],
    "Reads and writes: how long each was at the disk",
);
const DISK_FLUSHES: MetricFamily = MetricFamily::times(
    "starfish_agent_disk_flush",
    &["disk"],
    "How long it took to bring what was written of a stripe onto the medium",
);
const DISK_READ_BYTES: MetricFamily =
    MetricFamily::counter("starfish_agent_disk_read", &["disk"], "Data read from the disk").in_unit(Bytes);
const DISK_WRITTEN_BYTES: MetricFamily =
    MetricFamily::counter("starfish_agent_disk_written", &["disk"], "Data written to the disk")
        .in_unit(Bytes);
const DISK_FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_agent_disk_failures",
    &["disk"],
    "Reads, writes and flushes of the disk that failed",
);
const HELD_UP: MetricFamily = MetricFamily::counter(
    "starfish_agent_disk_held_up_reads",
    &["disk"],
    "Reads that were held up by many writes of another client: a race may be on",
);
const DISK_WAITING: MetricFamily = MetricFamily::gauge(
    "starfish_agent_disk_waiting_accesses",
    &["disk"],
    "Reads and writes that wait for their turn at the disk",
);
const PENDING_WRITES: MetricFamily = MetricFamily::gauge(
    "starfish_agent_disk_pending_write",
    &["disk"],
    "Blocks that wait to be written to the disk, or are being written",
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

/// Adds the counts of an agent; `directories` are those of its disks.
pub fn add_to(samples: &mut Samples, counts: &IoNodeCounts, directories: &[String]) {
    FAMILIES.iter().for_each(|family| samples.add_family(family));
    add_requests(samples, counts);
    add_cache(samples, counts);
    for (disk, counts) in counts.disks.iter().enumerate() {
        let name = disk.to_string();
        if let Some(directory) = directories.get(disk) {
            samples.add(&DISK, [&name, directory], MetricValue::Told);
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
    // Also kinds without failures: a query sees no increase in a series that appears with its first failure.
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
