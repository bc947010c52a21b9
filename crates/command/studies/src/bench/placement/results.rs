//! Rows, as text, CSV, JSON and a page.

use command_line::TextTable;
use experiment::PlacementCase;
use fs::Scheduling;
use page::{NumbersPage, NumbersPart, NumbersTable, Plot, PlotSeries};
use placement::Policy;
use serde::Serialize;

use super::MergeTimes;

/// Merges by one policy and disk scheduling order, measured and predicted.
#[derive(Clone, Debug, Serialize)]
pub struct MergeRow {
    jobs: u32,
    disks: u32,
    policy: u8,
    scheduling: String,
    trials: u32,
    /// Seconds until the last write of all jobs, and of the job that finished first, was on the disks; means over the
    /// trials.
    measured_s: Option<f64>,
    measured_first_s: Option<f64>,
    /// Ratio of the measured time to the time of the same number of jobs with policy 3 and first come, first served.
    measured_slowdown: Option<f64>,
    /// Maximum number of pending writes at a disk, and the number of their blocks.
    measured_queue_writes: Option<u64>,
    measured_queue_blocks: Option<u64>,
    predicted_s: f64,
    predicted_first_s: f64,
    predicted_slowdown: Option<f64>,
    predicted_queue_writes: u64,
    predicted_queue_blocks: u64,
    /// Relative difference of the predicted from the measured time.
    difference: Option<f64>,
}

impl MergeRow {
    /// Returns the row of a case.
    pub fn new(
        case: &PlacementCase,
        trials: u32,
        measured: Option<MergeTimes>,
        predicted: MergeTimes,
    ) -> Self {
        let measured_s = measured.map(|times| times.seconds);
        MergeRow {
            jobs: case.options.jobs,
            disks: case.options.disks,
            policy: case.options.policy.number(),
            scheduling: case.options.scheduling.to_string(),
            trials,
            measured_s,
            measured_first_s: measured.map(|times| times.first_seconds),
            measured_slowdown: None,
            measured_queue_writes: measured.map(|times| times.queue.writes),
            measured_queue_blocks: measured.map(|times| times.queue.blocks),
            predicted_s: predicted.seconds,
            predicted_first_s: predicted.first_seconds,
            predicted_slowdown: None,
            predicted_queue_writes: predicted.queue.writes,
            predicted_queue_blocks: predicted.queue.blocks,
            difference: measured_s.map(|seconds| predicted.seconds / seconds - 1.0),
        }
    }

    /// True if other rows are compared with this row: its jobs are placed so that they cannot race.
    fn is_reference(&self) -> bool {
        self.policy == Policy::SharedWithinJob.number() && self.scheduling == Scheduling::Fcfs.name()
    }

    fn cells(&self) -> [String; 11] {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let number = |value: Option<f64>| or_none(value.map(|value| format!("{value:.2}")));
        [
            self.scheduling.clone(),
            self.policy.to_string(),
            self.jobs.to_string(),
            number(self.measured_s),
            number(self.measured_first_s),
            number(self.measured_slowdown),
            or_none(self.measured_queue_writes.map(|writes| writes.to_string())),
            number(Some(self.predicted_s)),
            number(self.predicted_slowdown),
            self.predicted_queue_writes.to_string(),
            or_none(self.difference.map(|part| format!("{:+.0} %", 100.0 * part))),
        ]
    }
}

/// Sets the slowdown of each row relative to policy 3.
pub fn compare(rows: &mut [MergeRow]) {
    let references: Vec<MergeRow> = rows.iter().filter(|row| row.is_reference()).cloned().collect();
    for row in rows {
        let Some(reference) = references.iter().find(|reference| reference.jobs == row.jobs) else {
            continue;
        };
        row.predicted_slowdown = Some(row.predicted_s / reference.predicted_s);
        row.measured_slowdown =
            row.measured_s.zip(reference.measured_s).map(|(seconds, least)| seconds / least);
    }
}

const HEAD: [&str; 11] = [
    "scheduling",
    "policy",
    "jobs",
    "all, s",
    "first, s",
    "slowdown",
    "queue",
    "predicted, s",
    "slowdown",
    "queue",
    "difference",
];

/// Returns the rows as a table.
pub fn lines(rows: &[MergeRow]) -> Vec<String> {
    let mut table = TextTable::new(1);
    table.row(HEAD);
    rows.iter().for_each(|row| table.row(row.cells()));
    table.lines().collect()
}

const LEAD: &str = "Each job merges runs on disks that all jobs share, and writes its output to a disk to which no other \
    job writes. A job that gets ahead fills the queue of its output disk, at which other jobs wait to read. This is a \
    race. A placement of the runs (policy 3) or a disk scheduling order can prevent it. The same jobs run on agents \
    whose disks are slowed down to a model, and on the simulated machine with the same disks. The time ends when the \
    last write is on the disks.";

/// Returns the page as the text of an HTML file. `command` is the command that reproduces it.
pub fn page(rows: &[MergeRow], command: &str) -> String {
    let mut policies: Vec<u8> = rows.iter().map(|row| row.policy).collect();
    policies.sort_unstable();
    policies.dedup();
    let mut parts: Vec<NumbersPart> =
        policies.into_iter().map(|policy| NumbersPart::Plot(plot(rows, policy))).collect();
    parts.push(NumbersPart::Table(NumbersTable {
        title: "All jobs".into(),
        notes: vec![
            "A slowdown is relative to the same number of jobs placed by policy 3 on disks that serve first come, first \
             served. A queue is the maximum number of pending writes at a disk. The last column is the relative \
             difference of the predicted from the measured time."
                .into(),
        ],
        head: HEAD.map(str::to_owned).into(),
        text_columns: 1,
        rows: rows.iter().map(|row| row.cells().into()).collect(),
    }));
    let lead = vec![LEAD.to_owned(), format!("Made by: {command}")];
    NumbersPage { title: "Merges that share disks".into(), lead, parts }.html()
}

/// Plots the time until all jobs are done over the number of jobs: measured times as dots, predicted times as lines.
fn plot(rows: &[MergeRow], policy: u8) -> Plot {
    let of_policy: Vec<&MergeRow> = rows.iter().filter(|row| row.policy == policy).collect();
    let mut orders: Vec<&str> = Vec::new();
    for row in &of_policy {
        if !orders.contains(&&*row.scheduling) {
            orders.push(&row.scheduling);
        }
    }
    let series = |order: &str| {
        let rows = of_policy.iter().filter(|row| row.scheduling == order);
        let at = |row: &MergeRow, seconds: f64| (f64::from(row.jobs), seconds);
        let dots = rows.clone().filter_map(|row| Some(at(row, row.measured_s?))).collect();
        let line = rows.map(|row| at(row, row.predicted_s)).collect();
        PlotSeries { name: order.to_owned(), dots, line, is_predicted: true }
    };
    Plot {
        title: format!("Merges placed by policy {policy}"),
        note: "Dots are measured times, lines are predicted times.".into(),
        x: "jobs at once".into(),
        y: "time until all are done, s".into(),
        is_logarithmic: false,
        series: orders.into_iter().map(series).collect(),
        marks: Vec::new(),
    }
}
