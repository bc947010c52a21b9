//! Metrics of a mount: kernel requests, pages, and requests to agents.

use mount::MountCounts;

use crate::class_name;
use crate::family::MetricFamily;
use crate::family::MetricUnit::Bytes;
use crate::samples::Samples;

const REQUESTS: MetricFamily = MetricFamily::times(
    "starfish_mount_request",
    &["operation"],
    "Time from the arrival of a kernel request to its reply, by FUSE operation",
);
const FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_mount_request_failures",
    &["errno"],
    "Kernel requests that failed, by error name; lookups of missing names count, too",
);
const UNDER_WAY: MetricFamily =
    MetricFamily::gauge("starfish_mount_waiting_requests", &[], "Kernel requests in flight");
const READ: MetricFamily = MetricFamily::counter(
    "starfish_mount_read",
    &[],
    "Data returned to the kernel; reads from the kernel's page cache do not count",
)
.in_unit(Bytes);
const WRITTEN: MetricFamily =
    MetricFamily::counter("starfish_mount_written", &[], "Data written by the kernel").in_unit(Bytes);
const OPEN_FILES: MetricFamily =
    MetricFamily::gauge("starfish_mount_open_files", &[], "File handles that programs have open");
const PAGE_READS: MetricFamily = MetricFamily::counter(
    "starfish_mount_page_reads",
    &["result"],
    "Reads from the mount's page cache: hit if it had all bytes, miss if the read waited for an agent or a prefetch",
);
const PAGE_READ_BYTES: MetricFamily =
    MetricFamily::counter("starfish_mount_page_read", &["result"], "Bytes of these reads").in_unit(Bytes);
const PAGES: MetricFamily =
    MetricFamily::gauge("starfish_mount_page_cache", &[], "Size of the mount's page cache").in_unit(Bytes);
const PAGES_MAX: MetricFamily =
    MetricFamily::gauge("starfish_mount_page_cache_max", &[], "Capacity of the mount's page cache")
        .in_unit(Bytes);
const ASKED: MetricFamily = MetricFamily::times(
    "starfish_mount_agent_request",
    &["operation", "class"],
    "Time from sending a request to an agent to its reply, by operation and priority class",
);
const ASKED_FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_mount_agent_request_failures",
    &["kind"],
    "Requests to agents that failed, by kind of failure; kind gone if the agent was disconnected",
);
const ASKED_WAITING: MetricFamily =
    MetricFamily::gauge("starfish_mount_agent_waiting_requests", &[], "Requests to agents in flight");
const AGENT_LOSSES: MetricFamily =
    MetricFamily::counter("starfish_mount_agent_losses", &[], "Lost connections to agents");
const SENT: MetricFamily =
    MetricFamily::counter("starfish_mount_sent", &[], "Data sent to agents").in_unit(Bytes);
const RECEIVED: MetricFamily =
    MetricFamily::counter("starfish_mount_received", &[], "Data received from agents").in_unit(Bytes);

/// All families of a mount.
pub static FAMILIES: [MetricFamily; 16] = [
    REQUESTS,
    FAILURES,
    UNDER_WAY,
    READ,
    WRITTEN,
    OPEN_FILES,
    PAGE_READS,
    PAGE_READ_BYTES,
    PAGES,
    PAGES_MAX,
    ASKED,
    ASKED_FAILURES,
    ASKED_WAITING,
    AGENT_LOSSES,
    SENT,
    RECEIVED,
];

/// Adds the counts of a mount.
pub fn add_to(samples: &mut Samples, counts: &MountCounts) {
    FAMILIES.iter().for_each(|family| samples.add_family(family));
    for (operation, times) in &counts.requests {
        samples.add(&REQUESTS, [operation], times);
    }
    for (errno, count) in &counts.failures {
        samples.add(&FAILURES, [errno], *count);
    }
    samples.add(&UNDER_WAY, [], counts.under_way);
    samples.add(&READ, [], counts.read_bytes);
    samples.add(&WRITTEN, [], counts.written_bytes);
    samples.add(&OPEN_FILES, [], counts.open_files);
    add_pages(samples, counts);
    add_agents(samples, counts);
}

fn add_pages(samples: &mut Samples, counts: &MountCounts) {
    let pages = &counts.pages;
    samples.add(&PAGE_READS, ["hit"], pages.hits);
    samples.add(&PAGE_READS, ["miss"], pages.misses);
    samples.add(&PAGE_READ_BYTES, ["hit"], pages.hit_bytes);
    samples.add(&PAGE_READ_BYTES, ["miss"], pages.missed_bytes);
    samples.add(&PAGES, [], counts.page_bytes);
    samples.add(&PAGES_MAX, [], counts.page_bytes_max);
}

fn add_agents(samples: &mut Samples, counts: &MountCounts) {
    let agents = &counts.agents;
    for asked in &agents.asked {
        samples.add(&ASKED, [asked.operation, class_name(asked.class)], &asked.times);
    }
    for &(kind, count) in &agents.failures {
        samples.add(&ASKED_FAILURES, [kind], count);
    }
    samples.add(&ASKED_WAITING, [], agents.waiting);
    samples.add(&AGENT_LOSSES, [], agents.disconnects);
    samples.add(&SENT, [], agents.bytes_sent);
    samples.add(&RECEIVED, [], agents.bytes_received);
}
