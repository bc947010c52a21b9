//! Rows, as text, CSV, JSON and a page.

use command_line::{TextTable, mib};
use node::Size;
use page::{Measurand, NumbersBars, NumbersPage, NumbersPart, NumbersTable};
use serde::Serialize;
use statistics::Sample;

use super::WriteCell;
use super::measure::Measured;
use command_line::durations::shown;

/// Measured and predicted results of processes that write with one method.
#[derive(Clone, Debug, Serialize)]
pub struct WriteRow {
    pattern: String,
    record_bytes: u64,
    method: String,
    /// Bytes written by all processes together.
    bytes: u64,
    elapsed_s: Option<f64>,
    throughput_mib_s: Option<f64>,
    /// Throughput as a share of the total transfer rate of the disks, if that is known.
    disk_share: Option<f64>,
    latency_mean_s: Option<f64>,
    latency_p99_s: Option<f64>,
    latency_max_s: Option<f64>,
    flushes: Option<u64>,
    predicted_s: Option<f64>,
    predicted_mib_s: Option<f64>,
    /// Relative difference of the predicted from the measured time.
    difference: Option<f64>,
}

impl WriteRow {
    /// Returns the row of a cell. `rate` is the total transfer rate of the disks in MiB/s.
    pub fn new(
        cell: &WriteCell,
        measured: Option<Measured>,
        predicted: Option<Measured>,
        rate: Option<f64>,
    ) -> Self {
        let bytes = cell.bytes();
        let mib_s = |seconds: f64| mib(bytes) / seconds;
        let elapsed_s = measured.as_ref().map(|measured| measured.elapsed.as_secs_f64());
        let predicted_s = predicted.as_ref().map(|predicted| predicted.elapsed.as_secs_f64());
        let latency = |index: usize| measured.as_ref().and_then(|measured| Some(measured.latency_s?[index]));
        let of_either = measured.as_ref().or(predicted.as_ref());
        WriteRow {
            pattern: cell.pattern.to_string(),
            record_bytes: cell.record_bytes,
            method: cell.method.to_string(),
            bytes,
            elapsed_s,
            throughput_mib_s: elapsed_s.map(mib_s),
            disk_share: elapsed_s.zip(rate).map(|(seconds, rate)| mib_s(seconds) / rate),
            latency_mean_s: latency(0),
            latency_p99_s: latency(1),
            latency_max_s: latency(2),
            flushes: of_either.and_then(|run| run.flushes),
            predicted_s,
            predicted_mib_s: predicted_s.map(mib_s),
            difference: predicted_s.zip(elapsed_s).map(|(predicted, measured)| predicted / measured - 1.0),
        }
    }

    fn cells(&self) -> [String; 12] {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let number = |value: Option<f64>| or_none(value.map(|value| format!("{value:.2}")));
        [
            self.pattern.clone(),
            self.method.clone(),
            Size(self.record_bytes).to_string(),
            Size(self.bytes).to_string(),
            number(self.throughput_mib_s),
            or_none(self.disk_share.map(|share| format!("{:.0} %", 100.0 * share))),
            or_none(self.latency_mean_s.map(shown)),
            or_none(self.latency_p99_s.map(shown)),
            or_none(self.latency_max_s.map(shown)),
            or_none(self.flushes.map(|flushes| flushes.to_string())),
            number(self.predicted_mib_s),
            or_none(self.difference.map(|part| format!("{:+.0} %", 100.0 * part))),
        ]
    }
}

const HEAD: [&str; 12] = [
    "pattern",
    "method",
    "record",
    "written",
    "MiB/s",
    "of the disks",
    "latency",
    "99 %",
    "longest",
    "flushes",
    "predicted MiB/s",
    "time",
];

/// Returns the rows as a table.
pub fn lines(rows: &[WriteRow]) -> Vec<String> {
    let mut table = TextTable::new(2);
    table.row(HEAD);
    rows.iter().for_each(|row| table.row(row.cells()));
    table.lines().collect()
}

const LEAD: &str = "Processes write one shared file in small records: with a request for each record (traditional), \
    in two collective phases, collectively with the agents fetching the data (disk-directed), and record by record \
    into a cache in each process, which all processes flush together (write-cached, ENWRICH). The time ends when all \
    data are on the disks. The traditional method writes only the first part of the file, which takes long enough.";

/// Returns the page as the text of an HTML file. `command` is the command that reproduces it.
pub fn page(rows: &[WriteRow], command: &str) -> String {
    let groups =
        rows.chunk_by(|one, next| (&one.pattern, one.record_bytes) == (&next.pattern, next.record_bytes));
    let mut parts: Vec<NumbersPart> = groups.map(bars).collect();
    parts.push(NumbersPart::Table(NumbersTable {
        title: "All runs".into(),
        notes: vec![
            "The last column is the relative difference of the predicted from the measured time.".into(),
        ],
        head: HEAD.map(str::to_owned).into(),
        text_columns: 2,
        rows: rows.iter().map(|row| row.cells().into()).collect(),
    }));
    let lead = vec![LEAD.to_owned(), format!("Made by: {command}")];
    NumbersPage { title: "Writing small records together".into(), lead, parts }.html()
}

/// Returns a bar chart of the measured and predicted throughputs of all methods.
fn bars(rows: &[WriteRow]) -> NumbersPart {
    let bar = |name: String, value: Option<f64>| Some((name, Sample::of(&[value?])?));
    let both = |row: &WriteRow| {
        [
            bar(row.method.clone(), row.throughput_mib_s),
            bar(format!("{}, predicted", row.method), row.predicted_mib_s),
        ]
    };
    let title = format!("{}, records of {}", rows[0].pattern, Size(rows[0].record_bytes));
    NumbersPart::Bars(NumbersBars {
        title,
        measurand: Measurand::THROUGHPUT,
        bars: rows.iter().flat_map(both).flatten().collect(),
        together: 2,
    })
}
