//! The page of jobs that share disks: the times until all jobs, and until the first job, are done.

use std::collections::BTreeSet;

use page::{Measurand, NumbersTable};
use plan::{CellResult, PlacedJob, PlacedMeasurement, PlacementCase, Plan};

use super::{PageKind, means_note, shown};
use crate::results::distinct;

type Measured<'a, 'r> = super::PageResult<'a, 'r, PlacementCase>;

impl PageKind for PlacementCase {
    const MEASURAND: Measurand = Measurand { name: "time until all jobs are done", unit: "s" };

    const LEAD: &'static str = "Simulated jobs that read and write the same disks. Times are from the start of the first job until the \
         last write of all jobs is on the disks.";

    fn axis_name(key: &str) -> String {
        let name = match key {
            "read_blocks" => "blocks read at once (b_r)",
            "write_blocks" => "blocks written at once (b_w)",
            "buffer_blocks" => "blocks of buffers",
            "run_blocks" => "blocks in a run",
            key => key,
        };
        name.to_owned()
    }

    fn tables(plan: &Plan<Self>, results: &[Measured<'_, '_>]) -> Vec<NumbersTable> {
        vec![numbers(plan, results), cells(plan)]
    }

    fn names(results: &[CellResult<'_, Self>]) -> Vec<(String, String)> {
        let options = || results.iter().map(|result| &result.cell.case.options);
        let kinds = distinct(options().map(|options| options.kind));
        let merges = options().filter(|options| options.kind == PlacedJob::Merge);
        let policies: BTreeSet<u8> = merges.map(|options| options.policy.number()).collect();
        let orders = distinct(options().map(|options| options.scheduling));
        let kinds = kinds.into_iter().map(|kind| (kind.to_string(), done_by(kind).to_owned()));
        let policies = (1..).zip(POLICIES).filter(|(number, _)| policies.contains(number));
        let policies = policies.map(|(number, meaning)| (format!("policy {number}"), meaning.to_owned()));
        let orders = orders.into_iter().map(|order| (order.to_string(), order.meaning().to_owned()));
        let measured = MEASURED.map(|(name, meaning)| (name.to_owned(), meaning.to_owned()));
        kinds.chain(policies).chain(orders).chain(measured).collect()
    }
}

/// Describes the work of each job.
fn done_by(kind: PlacedJob) -> &'static str {
    match kind {
        PlacedJob::Merge => "each job merges its sorted runs into one",
        PlacedJob::Copy => "two jobs copy two disks onto each other",
        PlacedJob::Interleave => {
            "each job reads a block from each of its runs in turn, and writes these blocks"
        }
    }
}

/// Descriptions of the policies, by number.
const POLICIES: [&str; 4] = [
    "input runs are on disks to which no job writes",
    "input runs are on all disks except the output disk of their job",
    "like policy 2, but shifted by one disk, so that each job reads from its output disk, too",
    "input runs are on all disks",
];

/// Explanations above the table of numbers.
const MEASURED: [(&str, &str); 7] = [
    ("s", "seconds until all jobs are done"),
    ("cv", "standard deviation of the trials, divided by their mean"),
    ("first", "seconds until the first job is done, a short time if it raced ahead of the others"),
    ("r, w", "mean time of a disk to read and to write a block"),
    (
        "f",
        "w / r: jobs on d disks that read from all disks except their output disk can race if f exceeds 1 / (d - 1)",
    ),
    ("queue", "maximum number of pending writes at a disk, and of blocks in these writes"),
    ("disks busy", "share of the time in which a disk was busy, on average"),
];

fn numbers(plan: &Plan<PlacementCase>, results: &[Measured<'_, '_>]) -> NumbersTable {
    let head = [
        "variant",
        "trials",
        "s",
        "\u{b1} 95 %",
        "cv, %",
        "first, s",
        "r, ms",
        "w, ms",
        "f",
        "queue, writes",
        "queue, blocks",
        "disks busy, %",
    ];
    let row = |(result, time): &Measured<'_, '_>| {
        let mean = |of: fn(&PlacedMeasurement) -> f64| result.mean(|trial| trial.placed.as_ref().map(of));
        let busy = result.mean(|trial| trial.mean_utilisation(trial.disks));
        vec![
            result.cell.series(),
            result.trials.len().to_string(),
            format!("{:.2}", time.mean()),
            shown(time.half_width(), 2),
            shown(time.half_width().map(|_| 100.0 * time.cv()), 1),
            shown(mean(PlacedMeasurement::first_s), 2),
            shown(mean(|placed| placed.read_ns as f64 / 1e6), 3),
            shown(mean(|placed| placed.write_ns as f64 / 1e6), 3),
            shown(mean(PlacedMeasurement::ratio), 3),
            shown(mean(|placed| placed.pending_writes_most as f64), 0),
            shown(mean(|placed| placed.pending_blocks_most as f64), 0),
            shown(busy.map(|busy| 100.0 * busy), 0),
        ]
    };
    NumbersTable {
        title: format!("{}: all numbers", plan.name),
        notes: vec![means_note(plan)],
        head: head.map(str::to_owned).into(),
        text_columns: 1,
        rows: results.iter().map(row).collect(),
    }
}

/// Returns a table of the settings of each cell.
fn cells(plan: &Plan<PlacementCase>) -> NumbersTable {
    let head = [
        "variant", "machine", "jobs do", "policy", "order", "jobs", "disks", "runs", "run", "block, B",
        "b_r", "b_w", "buffers",
    ];
    let row = |cell: &plan::PlannedCell<PlacementCase>| {
        let options = &cell.case.options;
        let of_merge = |number: u32| match options.kind {
            PlacedJob::Merge => number.to_string(),
            PlacedJob::Copy | PlacedJob::Interleave => String::new(),
        };
        vec![
            cell.series(),
            cell.machine.clone(),
            options.kind.to_string(),
            of_merge(options.policy.number().into()),
            options.scheduling.to_string(),
            options.jobs.to_string(),
            options.disks.to_string(),
            of_merge(options.runs),
            options.run_blocks.to_string(),
            options.block_bytes.to_string(),
            options.read_blocks.to_string(),
            options.write_blocks.to_string(),
            options.buffer_blocks.map_or_else(|| "unlimited".to_owned(), |blocks| blocks.to_string()),
        ]
    };
    NumbersTable {
        title: format!("{}: its variants", plan.name),
        notes: vec![
            "Blocks are the number of blocks in a run; b_r blocks are read at once, and b_w written. Buffers are the number \
             of buffer blocks of all jobs together."
                .to_owned(),
        ],
        head: head.map(str::to_owned).into(),
        text_columns: 5,
        rows: plan.cells.iter().map(row).collect(),
    }
}
