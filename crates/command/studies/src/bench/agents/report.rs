//! Report of workloads on agents: for people, and for programs.

use jobs::{Outcome, Tally};
use layout::Operation;
use machine::Duration;
use node::Size;
use serde::Serialize;

use agent_set::AGENT_CACHE;
use command_line::{TextTable, counted, mib};

/// Report in its JSON form. Keep the keys stable.
#[derive(Serialize)]
pub struct Report {
    /// Names of the agents.
    pub agents: Vec<String>,
    /// Number of disks.
    pub disks: u32,
    /// Number of clients.
    pub clients: u32,
    /// Number of requests in flight to each disk.
    pub outstanding: u32,
    /// Size of a file in bytes.
    pub file_bytes: u64,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Size of a record in bytes.
    pub record_bytes: u64,
    /// Percentage of reads among the requests of a mixed workload.
    pub mix: u8,
    /// Seed of all randomness.
    pub seed: u64,
    /// Name of the simulated machine, if there is a prediction.
    pub machine: Option<String>,
    /// Rows of the result.
    pub rows: Vec<Row>,
}

/// Results of the reads or of the writes of a workload.
#[derive(Serialize)]
pub struct Row {
    /// Order of the records: sequential or random.
    pub order: String,
    /// Name of the workload: read, write or mixed.
    pub workload: String,
    /// Operation of this row: read or write.
    pub operation: &'static str,
    /// Measured figures.
    #[serde(flatten)]
    pub measured: Figures,
    /// Figures predicted by the simulated machine.
    pub predicted: Option<Figures>,
}

/// Figures of the requests of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    requests: u64,
    bytes: u64,
    /// Duration of the whole workload, including its flush.
    elapsed_s: f64,
    flush_s: f64,
    throughput_mib_s: f64,
    requests_s: f64,
    /// Latencies; `None` if there were no requests.
    latency_mean_s: Option<f64>,
    latency_p50_s: Option<f64>,
    latency_p99_s: Option<f64>,
    latency_p999_s: Option<f64>,
    latency_max_s: Option<f64>,
    /// Share of the clients' time in which they generated and checked data.
    own_work_share: f64,
}

/// Minimum share of a client's time for its own data at which the report mentions this time, since it may be the
/// bottleneck.
const OWN_WORK_NOTED: f64 = 0.1;

impl Figures {
    fn of(outcome: &Outcome, tally: &Tally, clients: u32) -> Figures {
        let elapsed = outcome.elapsed.as_secs_f64();
        let latencies = &tally.latencies;
        let seconds = |latency: Option<Duration>| latency.map(Duration::as_secs_f64);
        // A simulated machine can take no time at all.
        let per_second = |amount: f64| if elapsed > 0.0 { amount / elapsed } else { 0.0 };
        Figures {
            requests: tally.requests(),
            bytes: tally.bytes,
            elapsed_s: elapsed,
            flush_s: outcome.flush.as_secs_f64(),
            throughput_mib_s: per_second(mib(tally.bytes)),
            requests_s: per_second(tally.requests() as f64),
            latency_mean_s: seconds(latencies.mean()),
            latency_p50_s: seconds(latencies.percentile(50.0)),
            latency_p99_s: seconds(latencies.percentile(99.0)),
            latency_p999_s: seconds(latencies.percentile(99.9)),
            latency_max_s: seconds(latencies.longest()),
            own_work_share: per_second(outcome.own_work.as_secs_f64() / f64::from(clients)),
        }
    }

    /// Returns the cells of the table: throughput, requests per second, and latencies in milliseconds.
    fn shown(&self) -> [Option<f64>; 7] {
        let milliseconds = |latency: Option<f64>| latency.map(|seconds| seconds * 1e3);
        [
            Some(self.throughput_mib_s),
            Some(self.requests_s),
            milliseconds(self.latency_mean_s),
            milliseconds(self.latency_p50_s),
            milliseconds(self.latency_p99_s),
            milliseconds(self.latency_p999_s),
            milliseconds(self.latency_max_s),
        ]
    }

    /// Returns the values of the CSV columns.
    fn csv(&self) -> [String; CSV_FIGURES.len()] {
        let seconds = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.9}"));
        [
            self.requests.to_string(),
            self.bytes.to_string(),
            seconds(Some(self.elapsed_s)),
            seconds(Some(self.flush_s)),
            format!("{:.3}", self.throughput_mib_s),
            format!("{:.3}", self.requests_s),
            seconds(self.latency_mean_s),
            seconds(self.latency_p50_s),
            seconds(self.latency_p99_s),
            seconds(self.latency_p999_s),
            seconds(self.latency_max_s),
            format!("{:.4}", self.own_work_share),
        ]
    }
}

/// CSV columns of measured figures; those of predicted figures have the same names with a prefix.
const CSV_FIGURES: [&str; 12] = [
    "requests",
    "bytes",
    "elapsed_s",
    "flush_s",
    "throughput_mib_s",
    "requests_s",
    "latency_mean_s",
    "latency_p50_s",
    "latency_p99_s",
    "latency_p999_s",
    "latency_max_s",
    "own_work_share",
];
const PREDICTED: &str = "predicted_";

impl Row {
    /// Returns the rows of a workload: one for reads and one for writes, if there are any.
    pub fn of(
        (order, workload): (&str, &str),
        operations: &[Operation],
        clients: u32,
        measured: &Outcome,
        predicted: Option<&Outcome>,
    ) -> Vec<Row> {
        let row = |&operation: &Operation| {
            let (name, tally): (_, fn(&Outcome) -> &Tally) = match operation {
                Operation::Read => ("read", |outcome| &outcome.reads),
                Operation::Write => ("write", |outcome| &outcome.writes),
            };
            let figures = |outcome: &Outcome| Figures::of(outcome, tally(outcome), clients);
            Row {
                order: order.to_owned(),
                workload: workload.to_owned(),
                operation: name,
                measured: figures(measured),
                predicted: predicted.map(figures),
            }
        };
        operations.iter().map(row).collect()
    }

    fn label(&self) -> String {
        let Row { order, workload, operation, .. } = self;
        if workload == operation {
            format!("{order} {workload}")
        } else {
            format!("{order} mix: {operation}s")
        }
    }
}

/// Formats a value with three digits, or with all digits before the point if there are more.
fn rounded(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

impl Report {
    /// Returns the report for people.
    pub fn lines(&self) -> Vec<String> {
        let mut table = TextTable::new(1);
        table.row(["", "MiB/s", "reqs/s", "mean", "50 %", "99 %", "99.9 %", "max"]);
        table.row(["", "", "", "ms", "ms", "ms", "ms", "ms"]);
        let cells = |label: String, values: [Option<f64>; 7], show: fn(f64) -> String| {
            let values = values.map(|value| value.map_or_else(|| "-".to_owned(), show));
            std::iter::once(label).chain(values).collect::<Vec<String>>()
        };
        for row in &self.rows {
            let measured = row.measured.shown();
            table.row(cells(row.label(), measured, rounded));
            let Some(predicted) = row.predicted.map(|figures| figures.shown()) else { continue };
            table.row(cells("  predicted".into(), predicted, rounded));
            let ratios = std::array::from_fn(|index| Some(measured[index]? / predicted[index]?));
            table.row(cells("  measured/predicted".into(), ratios, rounded));
        }
        let blank = || vec![String::new()];
        [self.what(), blank(), table.lines().collect(), blank(), self.notes()].concat()
    }

    /// Describes the measurement in sentences.
    fn what(&self) -> Vec<String> {
        let (agents, disks) = (counted(self.agents.len(), "agent"), counted(self.disks, "disk"));
        let [file, block, record] = [self.file_bytes, self.block_bytes, self.record_bytes].map(Size);
        let clients = counted(self.clients, "client");
        let outstanding = counted(self.outstanding, "outstanding request");
        let mut lines = vec![
            format!("{agents} with {disks}; a file of {file} in blocks of {block}"),
            format!(
                "{clients}, {}{outstanding} of {record}",
                if self.clients == 1 { "" } else { "each with " }
            ),
        ];
        lines.extend(self.machine.iter().map(|machine| format!("predicted for: {machine}")));
        lines
    }

    /// Returns remarks that readers need in order to judge the figures.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for row in self.rows.iter().filter(|row| row.operation == "write") {
            let Figures { flush_s, elapsed_s, .. } = row.measured;
            let (label, flush, all) = (row.label(), rounded(flush_s), rounded(elapsed_s));
            notes.push(format!("{label}: the final flush took {flush} s of {all} s."));
        }
        let shares = self.rows.iter().map(|row| row.measured.own_work_share);
        let share = shares.fold(0.0, f64::max);
        if share > OWN_WORK_NOTED {
            let percent = 100.0 * share;
            notes.push("Clients generated and checked data, or waited for a processor to do so, for".into());
            notes.push(format!("up to {percent:.0} % of the time. This may limit the figures."));
        }
        if self.rows.iter().any(|row| row.operation == "read") {
            let share = Size(self.file_bytes / self.agents.len().max(1) as u64).rounded();
            notes.push(format!(
                "Each agent has {share} of the file. Data in the agent's cache ({} unless",
                AGENT_CACHE
            ));
            notes.push("--cache sets another size) or its computer's page cache need no disk read.".into());
        }
        notes
    }

    /// Returns the report for programs: a CSV line for each row.
    pub fn csv(&self) -> Vec<String> {
        let predicted = CSV_FIGURES.map(|column| format!("{PREDICTED}{column}"));
        let head = ["order", "workload", "operation"].into_iter().chain(CSV_FIGURES).map(str::to_owned);
        let head: Vec<String> = head.chain(predicted).collect();
        let row = |row: &Row| {
            let names = [row.order.clone(), row.workload.clone(), row.operation.to_owned()];
            let none = || CSV_FIGURES.map(|_| String::new());
            let predicted = row.predicted.map_or_else(none, |figures| figures.csv());
            let cells: Vec<String> = names.into_iter().chain(row.measured.csv()).chain(predicted).collect();
            cells.join(",")
        };
        std::iter::once(head.join(",")).chain(self.rows.iter().map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_three_digits_or_more() {
        for (value, text) in
            [(0.01234, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12346")]
        {
            assert_eq!(rounded(value), text);
        }
    }

    fn outcome(latency: u64) -> Outcome {
        let mut outcome = Outcome { elapsed: Duration::from_secs(2), ..Outcome::default() };
        outcome.flush = Duration::from_millis(250);
        for tally in [&mut outcome.reads, &mut outcome.writes] {
            tally.bytes = 4 << 20;
            (0..4).for_each(|_| tally.latencies.record(Duration::from_millis(latency)));
        }
        outcome
    }

    fn report(predicted: Option<&Outcome>) -> Report {
        let operations = [Operation::Read, Operation::Write];
        Report {
            agents: vec!["a:1".into(), "b:1".into()],
            disks: 4,
            clients: 1,
            outstanding: 4,
            file_bytes: 16 << 20,
            block_bytes: 1 << 18,
            record_bytes: 1 << 20,
            mix: 70,
            seed: 1,
            machine: predicted.map(|_| "a machine".into()),
            rows: Row::of(("random", "mixed"), &operations, 1, &outcome(100), predicted),
        }
    }

    #[test]
    fn a_prediction_is_shown_with_its_measurement() {
        let lines = report(Some(&outcome(50))).lines();
        let line = |begin: &str| lines.iter().find(|line| line.starts_with(begin)).expect("a line").clone();
        let cells = |begin: &str| -> Vec<String> {
            line(begin)[begin.len()..].split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(cells("random mix: reads"), ["2.00", "2.00", "100", "100", "100", "100", "100"]);
        assert_eq!(cells("  predicted"), ["2.00", "2.00", "50.0", "50.0", "50.0", "50.0", "50.0"]);
        assert_eq!(cells("  measured/predicted")[..3], ["1.00", "1.00", "2.00"]);
        assert!(line("random mix: writes:").contains("the final flush took 0.250 s of 2.00 s"));
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("8.0 MiB of the file")), "{lines:#?}");
    }

    #[test]
    fn each_csv_row_has_all_columns() {
        for predicted in [None, Some(outcome(50))] {
            let csv = report(predicted.as_ref()).csv();
            let columns: Vec<usize> = csv.iter().map(|line| line.split(',').count()).collect();
            assert_eq!(columns, [27; 3], "{csv:?}");
            let empty = csv[1].split(',').filter(|cell| cell.is_empty()).count();
            assert_eq!(empty, if predicted.is_some() { 0 } else { 12 });
        }
    }

    #[test]
    fn a_run_without_requests_has_no_latency() {
        let rows = Row::of(("random", "read"), &[Operation::Read], 1, &Outcome::default(), None);
        let json = serde_json::to_value(&rows[0]).expect("JSON");
        assert!(json["latency_p50_s"].is_null() && json["requests"] == 0 && json["throughput_mib_s"] == 0.0);
    }
}
