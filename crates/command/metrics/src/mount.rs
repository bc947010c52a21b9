//! Metrics of a mount: kernel requests, pages, and the agents it waits for.

use mount::MountCounts;

use crate::class_name;
use crate::family::MetricFamily;
use crate::family::MetricUnit::Bytes;
use crate::samples::Samples;

const REQUESTS: MetricFamily = MetricFamily::times(
    "starfish_mount_request",
    &["operation"],
    "Calls of the kernel: from when each had come to when it was answered, by what FUSE calls it",
);
const FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_mount_request_failures",
    &["errno"],
    "Calls that were answered with an error, by its name; a name that is not there is one, too",
);
const UNDER_WAY: MetricFamily = MetricFamily::gauge(
    "starfish_mount_waiting_requests",
    &[],
    "Calls of the kernel that are not answered yet",
);
const READ: MetricFamily = MetricFamily::counter(
    "starfish_mount_read",
    &[],
    "Data that the kernel was given; what its own pages have it does not ask for",
)
.in_unit(Bytes);
const WRITTEN: MetricFamily =
    MetricFamily::counter("starfish_mount_written", &[], "Data that the kernel has given").in_unit(Bytes);
const OPEN_FILES: MetricFamily =
    MetricFamily::gauge("starfish_mount_open_files", &[], "Handles that programs have open on files");
const PAGE_READS: MetricFamily = MetricFamily::counter(
    "starfish_mount_page_reads",
    &["result"],
    "Reads of pages in the memory of the mount: hit if all was there, miss if an agent or a prefetch had to be waited for",
);
const PAGE_READ_BYTES: MetricFamily =
    MetricFamily::counter("starfish_mount_page_read", &["result"], "Bytes of these reads").in_unit(Bytes);
const PAGES: MetricFamily =
    MetricFamily::gauge("starfish_mount_page_cache", &[], "How much these pages are").in_unit(Bytes);
const PAGES_MAX: MetricFamily =
    MetricFamily::gauge("starfish_mount_page_cache_max", &[], "How much they may be").in_unit(Bytes);
const ASKED: MetricFamily = MetricFamily::times(
    "starfish_mount_agent_request",
    &["operation", "class"],
    "Requests to agents: how long each was waited for, by what was asked for and how urgent it was",
);
const ASKED_FAILURES: MetricFamily = MetricFamily::counter(
    "starfish_mount_agent_request_failures",
    &["kind"],
    "Requests to agents whose answer was a failure, by its kind; gone, if the agent was",
);
const ASKED_WAITING: MetricFamily = MetricFamily::gauge(
    "starfish_mount_agent_waiting_requests",
    &[],
    "Requests to agents that are not answered yet",
);
const AGENT_LOSSES: MetricFamily = MetricFamily::counter(
    "starfish_mount_agent_losses",
    &[],
    "How often the connection to an agent was lost",
);
const SENT: MetricFamily =
    MetricFamily::counter("starfish_mount_sent", &[], "Data that has left for agents").in_unit(Bytes);
const RECEIVED: MetricFamily =
    MetricFamily::counter("starfish_mount_received", &[], "Data that has come from agents").in_unit(Bytes);

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
