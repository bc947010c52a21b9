//! Report of a replay: for people, and for programs.

use experiment::{Method, Outcome};
use jobs::Tally;
use layout::Operation;
use machine::Duration;
use node::Size;
use request_log::RequestLog;
use serde::Serialize;

use account::explain::Account;
use command_line::durations::shown;
use command_line::{TextTable, counted, mib};

/// Report in its JSON form. Keep the keys stable.
#[derive(Serialize)]
pub struct Report {
    log: String,
    /// Name of the simulated machine; `None` for a replay on agents.
    machine: Option<String>,
    nodes: usize,
    files: usize,
    requests: u64,
    bytes: u64,
    mean_request_bytes: f64,
    rows: Vec<ReplayRow>,
}

/// Results of the reads or of the writes with one method.
#[derive(Serialize)]
pub struct ReplayRow {
    method: String,
    operation: &'static str,
    requests: u64,
    bytes: u64,
    /// Duration of the whole replay: reads, writes and the final flush.
    elapsed_s: f64,
    throughput_mib_s: f64,
    requests_s: f64,
    latency_mean_s: Option<f64>,
    latency_p50_s: Option<f64>,
    latency_p99_s: Option<f64>,
    latency_max_s: Option<f64>,
    flushes: Option<u64>,
    directory_flushes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Account>,
}

/// CSV columns.
const HEADER: &str = "method,operation,requests,bytes,elapsed_s,throughput_mib_s,requests_s,latency_mean_s,\
                      latency_p50_s,latency_p99_s,latency_max_s,flushes,directory_flushes";

impl ReplayRow {
    /// Returns the rows of a method: one for reads and one for writes, if there are any. Values of the whole replay are
    /// in the first row.
    pub fn of(
        method: Method,
        log: &RequestLog,
        outcome: &Outcome,
        digest: Option<u64>,
        account: Option<Account>,
    ) -> Vec<ReplayRow> {
        let totals = log.totals();
        let kinds = [(Operation::Read, totals.reads), (Operation::Write, totals.writes)];
        let kinds = kinds.into_iter().filter(|(_, requests)| *requests > 0).map(|(operation, _)| operation);
        let mut rows: Vec<ReplayRow> =
            kinds.map(|operation| ReplayRow::of_kind(method, operation, outcome)).collect();
        if let Some(first) = rows.first_mut() {
            first.digest = digest.map(|digest| format!("{digest:016x}"));
            first.explain = account;
        }
        rows
    }

    fn of_kind(method: Method, operation: Operation, outcome: &Outcome) -> ReplayRow {
        let (operation, tally): (_, &Tally) = match operation {
            Operation::Read => ("read", &outcome.reads),
            Operation::Write => ("write", &outcome.writes),
        };
        let elapsed = outcome.elapsed.as_secs_f64();
        // The requests can take no time at all on a simulated machine.
        let per_second = |amount: f64| if elapsed > 0.0 { amount / elapsed } else { 0.0 };
        let seconds = |latency: Option<Duration>| latency.map(Duration::as_secs_f64);
        let latencies = &tally.latencies;
        let flushes = outcome.flushes.as_ref().filter(|_| operation == "write");
        ReplayRow {
            method: method.to_string(),
            operation,
            requests: tally.requests(),
            bytes: tally.bytes,
            elapsed_s: elapsed,
            throughput_mib_s: per_second(mib(tally.bytes)),
            requests_s: per_second(tally.requests() as f64),
            latency_mean_s: seconds(latencies.mean()),
            latency_p50_s: seconds(latencies.percentile(50.0)),
            latency_p99_s: seconds(latencies.percentile(99.0)),
            latency_max_s: seconds(latencies.longest()),
            flushes: flushes.map(|tally| tally.flushes),
            directory_flushes: flushes.map(|tally| tally.directory_flushes()),
            digest: None,
            explain: None,
        }
    }

    fn csv(&self) -> String {
        let ReplayRow { method, operation, requests, bytes, elapsed_s, throughput_mib_s, requests_s, .. } =
            self;
        let latencies = [self.latency_mean_s, self.latency_p50_s, self.latency_p99_s, self.latency_max_s];
        let latencies =
            latencies.map(|latency| latency.map_or_else(String::new, |latency| format!("{latency:.9}")));
        let counts = [self.flushes, self.directory_flushes];
        let counts = counts.map(|count| count.map_or_else(String::new, |count| count.to_string()));
        format!(
            "{method},{operation},{requests},{bytes},{elapsed_s:.9},{throughput_mib_s:.3},{requests_s:.3},{},{}",
            latencies.join(","),
            counts.join(",")
        )
    }
}

impl Report {
    /// Returns a report of these rows.
    pub fn new(name: &str, machine: Option<&str>, log: &RequestLog, rows: Vec<ReplayRow>) -> Self {
        let totals = log.totals();
        Report {
            log: name.to_owned(),
            machine: machine.map(str::to_owned),
            nodes: log.nodes().len(),
            files: log.files().len(),
            requests: totals.requests(),
            bytes: totals.bytes_read + totals.bytes_written,
            mean_request_bytes: totals.mean_bytes(),
            rows,
        }
    }

    /// Returns the report for people.
    pub fn lines(&self) -> Vec<String> {
        let (nodes, files) = (counted(self.nodes, "node"), counted(self.files, "file"));
        let (requests, bytes) = (counted(self.requests, "request"), Size(self.bytes).rounded());
        let on = self.machine.as_deref().unwrap_or("agents");
        let mean = self.mean_request_bytes;
        let mut lines = vec![
            format!("{}, on {on}: {nodes}, {files},", self.log),
            format!("{requests} of {mean:.0} bytes on average, {bytes} in all"),
            String::new(),
        ];
        let has = |of: fn(&ReplayRow) -> bool| self.rows.iter().any(of);
        let (flushes, digest) = (has(|row| row.flushes.is_some()), has(|row| row.digest.is_some()));
        let mut table = TextTable::new(2);
        let head = ["method", "", "time", "MiB/s", "reqs/s", "mean", "50 %", "99 %", "max"];
        let further = [("flushes", flushes), ("by directory", flushes), ("digest", digest)];
        let further = further.iter().filter(|(_, is_shown)| *is_shown).map(|(name, _)| *name);
        table.row(head.into_iter().chain(further));
        for row in &self.rows {
            let latencies = [row.latency_mean_s, row.latency_p50_s, row.latency_p99_s, row.latency_max_s];
            let latencies = latencies.map(|latency| latency.map_or_else(|| "-".to_owned(), shown));
            let mut cells = vec![row.method.clone(), row.operation.to_owned(), shown(row.elapsed_s)];
            cells.extend([format!("{:.2}", row.throughput_mib_s), format!("{:.0}", row.requests_s)]);
            cells.extend(latencies);
            if flushes {
                let counts = [row.flushes, row.directory_flushes];
                cells.extend(
                    counts.map(|count| count.map_or_else(|| "-".to_owned(), |count| count.to_string())),
                );
            }
            cells.extend(row.digest.clone());
            table.row(cells);
        }
        lines.extend(table.lines());
        lines
    }

    /// Returns the accounts of all rows that have one, as text.
    pub fn accounts(&self) -> Vec<String> {
        let explained = self.rows.iter().filter_map(|row| Some((row, row.explain.as_ref()?)));
        let lines = |(row, account): (&ReplayRow, &Account)| {
            [String::new(), format!("{}:", row.method)].into_iter().chain(account.lines())
        };
        explained.flat_map(lines).collect()
    }

    /// Returns the report for programs: a CSV line for each row.
    pub fn csv(&self) -> Vec<String> {
        let digests = self.rows.iter().any(|row| row.digest.is_some());
        let line = |row: &ReplayRow| match digests {
            true => format!("{},{}", row.csv(), row.digest.as_deref().unwrap_or_default()),
            false => row.csv(),
        };
        let head = format!("{HEADER}{}", if digests { ",digest" } else { "" });
        std::iter::once(head).chain(self.rows.iter().map(line)).collect()
    }
}
