//! The page of access methods: throughput of reading or writing a file.

use std::collections::BTreeSet;

use page::{Measurand, NumbersTable};
use plan::{
    AccessPattern, ArrayPattern, Case, CellResult, DrawnLog, FlushCount, Measurement, Method, Plan, PlanKind,
};
use statistics::Sample;

use super::{ABSENT, PageKind, means_note, shown};
use crate::results::distinct;
use crate::study::axis_name;

type Measured<'a, 'r> = super::PageResult<'a, 'r, Case>;

impl PageKind for Case {
    const MEASURAND: Measurand = Measurand::THROUGHPUT;

    const LEAD: &'static str = "Simulated throughput of reading or writing a file, in MiB/s (2^20 bytes), from the first request until all \
         data are in memory or on the disks.";

    fn axis_name(key: &str) -> String {
        if key == "record_bytes" { "bytes in a record".to_owned() } else { axis_name(key).to_owned() }
    }

    fn tables(plan: &Plan, results: &[Measured<'_, '_>]) -> Vec<NumbersTable> {
        let caches = write_caches(plan, results);
        [numbers(plan, results)].into_iter().chain(caches).chain([variants(plan)]).collect()
    }

    fn names(results: &[CellResult<'_>]) -> Vec<(String, String)> {
        let cases = || results.iter().map(|result| &result.cell.case);
        let patterns = distinct(cases().map(|case| case.pattern)).into_iter();
        let methods: BTreeSet<String> = cases().map(|case| case.method.to_string()).collect();
        let methods = METHODS.into_iter().filter(|(method, _)| methods.contains(*method));
        let measured = [
            ("cv", "standard deviation of the trials, divided by their mean"),
            (
                "differs",
                "yes if the throughput differs significantly from that of the first variant with the same pattern and record \
                 size (paired t-test, 95 %); otherwise no",
            ),
            ("disk movements", "number of arm movements of all disks together"),
            ("disks busy", "share of the time in which a disk was busy, on average"),
        ];
        let patterns = patterns.map(|pattern| (pattern.to_string(), pattern_in_words(pattern)));
        let others = methods.chain(measured).map(|(name, meaning)| (name.to_owned(), meaning.to_owned()));
        patterns.chain(others).collect()
    }
}

fn numbers(plan: &Plan, results: &[Measured<'_, '_>]) -> NumbersTable {
    let head = [
        "variant",
        "pattern",
        "record, B",
        "MiB/s",
        "\u{b1} 95 %",
        "cv, %",
        "differs",
        "disk movements",
        "disks busy, %",
    ];
    let row = |(result, throughput): &Measured<'_, '_>| {
        let Some(movements) = result.movements() else { return Vec::new() };
        let busy = result.mean(|trial| trial.mean_utilisation(trial.disks));
        vec![
            result.cell.series(),
            result.cell.case.pattern.to_string(),
            result.cell.case.problem.record_bytes.to_string(),
            format!("{:.2}", throughput.mean()),
            shown(throughput.half_width(), 2),
            shown(throughput.half_width().map(|_| 100.0 * throughput.cv()), 1),
            differs_from_first(result, throughput, results).to_owned(),
            format!("{:.0}", movements.mean()),
            shown(busy.map(|busy| 100.0 * busy), 0),
        ]
    };
    NumbersTable {
        title: format!("{}: all numbers", plan.name),
        notes: vec![means_note(plan)],
        head: head.map(str::to_owned).into(),
        text_columns: 2,
        rows: results.iter().map(row).collect(),
    }
}

/// Returns "yes" if the result differs significantly from the first variant's result for the same pattern
/// and records.
fn differs_from_first(
    result: &CellResult<'_>,
    throughput: &Sample,
    results: &[Measured<'_, '_>],
) -> &'static str {
    let is_compared = |other: &CellResult<'_>| {
        other.cell.varied == result.cell.varied && other.cell.case.place() == result.cell.case.place()
    };
    match results.iter().find(|(other, _)| is_compared(other)) {
        Some((first, _)) if std::ptr::eq(*first, result) => ABSENT,
        Some((_, of_first)) => match throughput.differs_from(of_first) {
            Some(true) => "yes",
            Some(false) => "no",
            None => ABSENT,
        },
        None => ABSENT,
    }
}

/// Returns a table of the plan's write caches, if any: write latencies, and a breakdown of the flush time.
fn write_caches(plan: &Plan, results: &[Measured<'_, '_>]) -> Option<NumbersTable> {
    let head = [
        "variant",
        "pattern",
        "record, B",
        "flushes",
        "of them by directory",
        "a write, us",
        "99 %",
        "longest",
        "flushing, ms",
        "telling, %",
        "meeting, %",
        "moving, %",
    ];
    let row = |(result, _): &Measured<'_, '_>| {
        let mean = |count: fn(FlushCount) -> u64| {
            result.mean(|trial: &Measurement| Some(count(trial.flushes?) as f64))
        };
        let parts = [
            mean(|count| count.telling_ns)?,
            mean(|count| count.meeting_ns)?,
            mean(|count| count.moving_ns)?,
        ];
        let flushing: f64 = parts.iter().sum();
        let micro = |count| Some(format!("{:.1}", mean(count)? / 1e3));
        let mut row = vec![
            result.cell.series(),
            result.cell.case.pattern.to_string(),
            result.cell.case.problem.record_bytes.to_string(),
            format!("{:.1}", mean(|count| count.flushes)?),
            format!("{:.1}", mean(|count| count.directory_flushes)?),
            micro(|count| count.write_mean_ns)?,
            micro(|count| count.write_99_ns)?,
            micro(|count| count.write_longest_ns)?,
            format!("{:.1}", flushing / 1e6),
        ];
        row.extend(parts.map(|part| format!("{:.1}", 100.0 * part / flushing.max(1.0))));
        Some(row)
    };
    let rows: Vec<Vec<String>> = results.iter().filter_map(row).collect();
    let notes = vec![
        "One write puts consecutive bytes of the file into the memory of a compute node: a single record if records are \
         distributed cyclically, or the whole part of a node if it is contiguous. The longest write waited for a flush. \
         The time of all flushes is that of the slowest compute node. It consists of sending lists of its writes to the \
         I/O nodes, waiting for the other compute nodes, and waiting while the I/O nodes sort and transfer the data."
            .to_owned(),
    ];
    let title = format!("{}: write caches", plan.name);
    (!rows.is_empty()).then(|| NumbersTable {
        title,
        notes,
        head: head.map(str::to_owned).into(),
        text_columns: 2,
        rows,
    })
}

/// Returns a table of the variants. For varied settings it shows the value in the first cell.
fn variants(plan: &Plan) -> NumbersTable {
    let head = [
        "variant",
        "machine",
        "method",
        "layout",
        "scheduling",
        "nodes",
        "I/O nodes",
        "file, B",
        "block, B",
        "K",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for cell in &plan.cells {
        if rows.iter().any(|row| row[0] == cell.series()) {
            continue;
        }
        let experiment = &cell.case;
        let makes_requests = matches!(experiment.method, Method::Traditional | Method::TwoPhase);
        let of_requests = |setting: String| if makes_requests { setting } else { ABSENT.to_owned() };
        let nodes = &experiment.machine.nodes;
        rows.push(vec![
            cell.series(),
            cell.machine.clone(),
            experiment.method.to_string(),
            experiment.layout.to_string(),
            of_requests(experiment.options.scheduling.to_string()),
            nodes.compute.value.to_string(),
            nodes.io.value.to_string(),
            experiment.problem.file_bytes.to_string(),
            experiment.options.block_bytes.to_string(),
            of_requests(experiment.options.outstanding.to_string()),
        ]);
    }
    NumbersTable {
        title: format!("{}: its variants", plan.name),
        notes: vec![
            "K is the number of requests that each compute node has in flight to each disk. Methods in which I/O nodes \
             transfer blocks on their own have no K and no request order."
                .to_owned(),
        ],
        head: head.map(str::to_owned).into(),
        text_columns: 5,
        rows,
    }
}

/// Methods and their descriptions.
const METHODS: [(&str, &str); 4] = [
    ("traditional", "each compute node requests its own pieces from the I/O nodes, which have caches"),
    (
        "two-phase",
        "compute nodes access whole blocks in disk order, and exchange data with each other before or after",
    ),
    (
        "disk-directed",
        "all compute nodes make one request together, and each I/O node accesses its disks in the best order",
    ),
    (
        "write-cached",
        "compute nodes write into their memory, and flush it together, disk-directed, when one of them is full",
    ),
];

/// Describes a pattern letter by letter: `rcb` reads a matrix with cyclic rows and columns in blocks.
fn pattern_in_words(pattern: AccessPattern) -> String {
    let name = pattern.to_string();
    let dealt = |letter: char| match letter {
        'b' => "in blocks",
        'c' => "cyclically",
        _ => "not at all",
    };
    match pattern {
        AccessPattern::Log(DrawnLog::Cmmd) => {
            return "write: a random log of message-passing programs, with large files".to_owned();
        }
        AccessPattern::Log(DrawnLog::Cmf(_)) => {
            return "write: a random log of data-parallel programs, with small files".to_owned();
        }
        AccessPattern::Arrays(ArrayPattern::InRounds) => {
            return "write: like wc, but all compute nodes start each round of one record together"
                .to_owned();
        }
        AccessPattern::Arrays(ArrayPattern::InTurn(first, second)) => {
            return format!(
                "write two arrays to two files: each node writes pieces as in {first} and in {second} in turn"
            );
        }
        AccessPattern::Arrays(ArrayPattern::Apart(first, second)) => {
            return format!(
                "write two arrays to two files: half of the nodes write as in {first}, the others as in {second}"
            );
        }
        AccessPattern::Arrays(ArrayPattern::One(_)) => {}
    }
    let (verb, rest) = name.split_at(1);
    let verb = if verb == "r" { "read" } else { "write" };
    match *rest.chars().collect::<Vec<_>>() {
        ['a'] => format!("{verb}: the whole file, by each compute node"),
        ['n'] => format!("{verb}: the whole file, by one compute node"),
        [letter] => format!("{verb}: records are distributed over compute nodes {}", dealt(letter)),
        [rows, columns] => format!(
            "{verb}: a matrix of records, its rows distributed over compute nodes {} and its columns {}",
            dealt(rows),
            dealt(columns)
        ),
        _ => verb.to_owned(),
    }
}
