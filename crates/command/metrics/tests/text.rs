//! Tests that the metrics text is valid OpenMetrics for any counts, and that the dashboard uses only existing metrics.

mod exposition;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::path::Path;

use ::fs::{
    CacheCounts, ClientCounts, IoNodeCounts, IoNodeDiskCounts, PageCacheCounts, PoolCounts, ServedRequests,
    TimeHistogram, TrafficCounts,
};
use ::mount::MountCounts;
use exposition::{Family, parse, value};
use machine::{Class, Duration, Space};
use metrics::process::ProcessStart;
use metrics::{MetricFamily, MetricKind, Samples, agent, mount, process};
use proptest::collection::vec;
use proptest::prelude::*;

fn families() -> impl Iterator<Item = &'static MetricFamily> {
    agent::FAMILIES.iter().chain(&mount::FAMILIES).chain(&process::FAMILIES)
}

fn text(counts: &IoNodeCounts, directories: &[String]) -> String {
    let mut samples = Samples::default();
    ProcessStart::now().add_to(&mut samples);
    agent::add_to(&mut samples, counts, directories);
    samples.into_text()
}

#[test]
fn an_idle_agent_exports_every_metric_family() {
    let read = parse(&text(&IoNodeCounts::default(), &[]));
    assert_exports(&read, agent::FAMILIES.iter().chain(&process::FAMILIES));
    assert_eq!(value(&read, "starfish_build_info", &[("version", ::fs::RELEASE)]), Some(1.0));
    for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"] {
        assert!(value(&read, name, &[]).expect("Linux") > 0.0, "{name}");
    }
    assert!(value(&read, "process_start_time_seconds", &[]).expect("a time") > 1.7e9);
}

fn assert_exports(
    read: &BTreeMap<String, Family>,
    families: impl Iterator<Item = &'static MetricFamily> + Clone,
) {
    let names: BTreeSet<String> = families.clone().map(MetricFamily::name_with_unit).collect();
    assert_eq!(read.keys().cloned().collect::<BTreeSet<_>>(), names);
    for family in families {
        let exported = &read[&family.name_with_unit()];
        assert_eq!(exported.kind, family.kind.word());
        assert_eq!(exported.help, family.help);
    }
}

fn mount_text(counts: &MountCounts) -> String {
    let mut samples = Samples::default();
    mount::add_to(&mut samples, counts);
    samples.into_text()
}

#[test]
fn a_mount_exports_every_metric_family_and_its_counts() {
    assert_exports(&parse(&mount_text(&MountCounts::default())), mount::FAMILIES.iter());
    let mut times = TimeHistogram::default();
    times.add(Duration::from_micros(3));
    let served = ServedRequests { operation: "names", class: Class::Control, times: times.clone() };
    let counts = MountCounts {
        requests: vec![("lookup", times.clone()), ("read", times)],
        failures: vec![("ENOENT".into(), 7)],
        read_bytes: 1 << 40,
        pages: PageCacheCounts { hits: 5, missed_bytes: 9, ..PageCacheCounts::default() },
        agents: ClientCounts { asked: vec![served], failures: vec![("gone", 2)], ..ClientCounts::default() },
        ..MountCounts::default()
    };
    let read = parse(&mount_text(&counts));
    for (name, labels, number) in [
        ("starfish_mount_request_seconds_count", &[("operation", "lookup")][..], 1.0),
        ("starfish_mount_request_failures_total", &[("errno", "ENOENT")], 7.0),
        ("starfish_mount_read_bytes_total", &[], (1_u64 << 40) as f64),
        ("starfish_mount_page_reads_total", &[("result", "hit")], 5.0),
        ("starfish_mount_page_read_bytes_total", &[("result", "miss")], 9.0),
        ("starfish_mount_agent_request_seconds_count", &[("operation", "names"), ("class", "control")], 1.0),
        ("starfish_mount_agent_request_failures_total", &[("kind", "gone")], 2.0),
    ] {
        assert_eq!(value(&read, name, labels), Some(number), "{name}");
    }
}

#[test]
fn metric_names_have_units_and_no_reserved_endings() {
    for family in families() {
        let name = family.name_with_unit();
        assert!(family.help.len() > 10 && !family.help.contains('\n'), "{name}: {}", family.help);
        for end in ["_total", "_count", "_sum", "_bucket", "_info"] {
            assert!(!name.ends_with(end), "{name}: the kind of the metric adds {end}");
        }
        assert!(family.kind != MetricKind::Histogram || name.ends_with("_seconds"), "{name}");
    }
}

fn times() -> impl Strategy<Value = TimeHistogram> {
    vec(any::<u64>().prop_map(|bits| bits >> (bits % 64)), 0..20).prop_map(|all| {
        let mut times = TimeHistogram::default();
        all.into_iter().for_each(|nanoseconds| times.add(Duration::from_nanos(nanoseconds)));
        times
    })
}

fn disk() -> impl Strategy<Value = IoNodeDiskCounts> {
    let space = prop::option::of((any::<u64>(), any::<u64>()));
    (times(), times(), any::<[u64; 6]>(), space, any::<bool>()).prop_map(
        |(some, others, numbers, space, answers)| {
            let [bytes_read, bytes_written, failures, held_up_reads, waiting, pending_write_bytes] = numbers;
            IoNodeDiskCounts {
                waits: some.clone(),
                reads: others.clone(),
                writes: some,
                flushes: others,
                bytes_read,
                bytes_written,
                failures,
                held_up_reads,
                waiting,
                pending_write_bytes,
                space: space.map(|(bytes, free)| Space { bytes, free }),
                answers,
            }
        },
    )
}

fn counts() -> impl Strategy<Value = IoNodeCounts> {
    (times(), times(), any::<[u64; 8]>(), vec(disk(), 0..4)).prop_map(|(reads, writes, numbers, disks)| {
        let served = |operation, class, times| ServedRequests { operation, class, times };
        let [refused, clients, open_stripes, hits, misses, sent, received, dirty_bytes] = numbers;
        IoNodeCounts {
            traffic: TrafficCounts {
                served: vec![
                    served("read", Class::Demand, reads),
                    served("write", Class::Background, writes),
                ],
                failures: vec![("not found", refused)],
                bytes_sent: sent,
                bytes_received: received,
                bad_messages: refused,
            },
            refused,
            clients,
            open_stripes,
            pool: PoolCounts { waiting_on_demand: refused, ..PoolCounts::default() },
            cache: CacheCounts { hits, misses, dirty_bytes, ..CacheCounts::default() },
            disks,
        }
    })
}

proptest! {
    #[test]
    fn any_counts_are_exported_unchanged(counts in counts(), directories in vec(any::<String>(), 0..4)) {
        let read = parse(&text(&counts, &directories));
        let total = value(&read, "starfish_agent_received_bytes_total", &[]);
        prop_assert_eq!(total, Some(counts.traffic.bytes_received as f64));
        let hits = value(&read, "starfish_agent_cache_reads_total", &[("result", "hit")]);
        prop_assert_eq!(hits, Some(counts.cache.hits as f64));
        let failed = |kind| value(&read, "starfish_agent_request_failures_total", &[("kind", kind)]);
        prop_assert_eq!(failed("not found"), Some(counts.traffic.failures[0].1 as f64));
        prop_assert_eq!(failed("damaged"), Some(0.0), "counts of zero are exported");
        for served in &counts.traffic.served {
            let class = if served.class == Class::Demand { "demand" } else { "background" };
            let labels = [("operation", served.operation), ("class", class)];
            let count = value(&read, "starfish_agent_request_seconds_count", &labels);
            prop_assert_eq!(count, Some(served.times.count() as f64));
        }
        for (index, disk) in counts.disks.iter().enumerate() {
            let name = index.to_string();
            let of_disk = |series: &str| value(&read, series, &[("disk", &name)]);
            prop_assert_eq!(of_disk("starfish_agent_disk_up"), Some(f64::from(u8::from(disk.answers))));
            let free = disk.space.map(|space| space.free as f64);
            prop_assert_eq!(of_disk("starfish_agent_disk_free_bytes"), free);
            prop_assert_eq!(of_disk("starfish_agent_disk_flush_seconds_count"), Some(disk.flushes.count() as f64));
            if let Some(directory) = directories.get(index) {
                let labels = [("disk", &*name), ("directory", &**directory)];
                prop_assert_eq!(value(&read, "starfish_agent_disk_info", &labels), Some(1.0));
            }
        }
    }
}

const DASHBOARD: &str = "../../../packaging/grafana/starfish.json";

/// Metrics that are on no panel of the dashboard, but available for queries.
const NOT_ON_THE_DASHBOARD: [&str; 2] =
    ["starfish_agent_open_stripes", "starfish_agent_cache_prefetches_total"];

/// Returns the names of metrics in the queries of the dashboard.
fn dashboard_metrics() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DASHBOARD);
    let dashboard: serde_json::Value =
        serde_json::from_str(&read_to_string(path).expect("the dashboard")).expect("JSON");
    let mut texts = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(panel["title"].as_str().is_some_and(|title| !title.is_empty()), "{panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            texts.push(target["expr"].as_str().expect("a query").to_owned());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        texts.extend(variable["definition"].as_str().map(str::to_owned));
    }
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = texts.iter().flat_map(|text| text.split(|character| !is_of_name(character)));
    let is_metric = |word: &&str| word.starts_with("starfish_") || word.starts_with("process_");
    words.filter(is_metric).map(str::to_owned).collect()
}

/// Returns the names that queries may use for a family.
fn series(family: &MetricFamily) -> Vec<String> {
    let name = family.series();
    match family.kind {
        MetricKind::Histogram => ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")).to_vec(),
        _ => vec![name],
    }
}

#[test]
fn the_dashboard_uses_only_existing_metrics() {
    let there: BTreeSet<String> = families().flat_map(series).collect();
    let asked = dashboard_metrics();
    let missing: Vec<_> = asked.difference(&there).collect();
    assert!(missing.is_empty(), "the dashboard uses missing metrics: {missing:?}");
}

#[test]
fn every_metric_has_a_panel_or_is_listed_without_one() {
    let asked = dashboard_metrics();
    let without = families().filter(|family| !series(family).iter().any(|name| asked.contains(name)));
    let without: BTreeSet<String> = without.map(MetricFamily::series).collect();
    assert_eq!(without, NOT_ON_THE_DASHBOARD.map(str::to_owned).into());
}
