//! Rows, as text, CSV, JSON and a page.

use command_line::TextTable;
use node::Size;
use page::{Measurand, NumbersBars, NumbersPage, NumbersPart, NumbersTable};
use serde::Serialize;
use statistics::Sample;

use super::{NamesCell, NamesTimes};
use command_line::durations::shown;

/// Measured and predicted results of one operation on files.
#[derive(Clone, Debug, Serialize)]
pub struct NamesRow {
    work: String,
    #[serde(skip)]
    who: String,
    clients: u32,
    outstanding: u32,
    /// Number of files of all clients together.
    files: u64,
    /// Size of each file in bytes.
    bytes: u64,
    elapsed_s: Option<f64>,
    files_per_s: Option<f64>,
    /// Latency of an operation. Listing a directory is a single operation of each client.
    latency_mean_s: Option<f64>,
    latency_p99_s: Option<f64>,
    latency_max_s: Option<f64>,
    predicted_s: f64,
    predicted_files_per_s: f64,
    /// Relative difference of the predicted from the measured time.
    difference: Option<f64>,
}

impl NamesRow {
    /// Returns the row of a cell.
    pub fn new(cell: &NamesCell, measured: Option<NamesTimes>, predicted: NamesTimes) -> Self {
        let files = cell.all_files();
        let seconds = |times: NamesTimes| times.elapsed.as_secs_f64();
        let rate = |seconds: f64| files as f64 / seconds;
        let (elapsed_s, predicted_s) = (measured.map(seconds), seconds(predicted));
        let latency = |index: usize| Some(measured?.latency_s?[index]);
        NamesRow {
            work: cell.name(),
            who: cell.who(),
            clients: cell.clients,
            outstanding: cell.outstanding,
            files,
            bytes: cell.bytes,
            elapsed_s,
            files_per_s: elapsed_s.map(rate),
            latency_mean_s: latency(0),
            latency_p99_s: latency(1),
            latency_max_s: latency(2),
            predicted_s,
            predicted_files_per_s: rate(predicted_s),
            difference: elapsed_s.map(|measured| predicted_s / measured - 1.0),
        }
    }

    fn cells(&self) -> [String; HEAD.len()] {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let rate = |value: Option<f64>| or_none(value.map(|value| format!("{value:.0}")));
        [
            self.work.clone(),
            self.clients.to_string(),
            self.files.to_string(),
            Size(self.bytes).to_string(),
            rate(self.files_per_s),
            or_none(self.latency_mean_s.map(shown)),
            or_none(self.latency_p99_s.map(shown)),
            or_none(self.latency_max_s.map(shown)),
            rate(Some(self.predicted_files_per_s)),
            or_none(self.difference.map(|part| format!("{:+.0} %", 100.0 * part))),
        ]
    }
}

const HEAD: [&str; 10] =
    ["work", "clients", "files", "of", "files/s", "latency", "99 %", "longest", "predicted", "time"];

/// Returns the rows as a table.
pub fn lines(rows: &[NamesRow]) -> Vec<String> {
    let mut table = TextTable::new(1);
    table.row(HEAD);
    rows.iter().for_each(|row| table.row(row.cells()));
    table.lines().collect()
}

const LEAD: &str = "Clients create, stat, list and remove small files, each in a separate directory. The \
                    time ends when the last client is done; no operation waits for stable storage.";

const FILES: Measurand = Measurand { name: "files a second", unit: "files/s" };

/// Returns the page as the text of an HTML file. `command` is the command that reproduces it.
pub fn page(rows: &[NamesRow], command: &str) -> String {
    let mut works: Vec<&str> = Vec::new();
    for row in rows {
        if !works.contains(&&*row.work) {
            works.push(&row.work);
        }
    }
    let mut parts: Vec<NumbersPart> = works.into_iter().map(|work| bars(work, rows)).collect();
    parts.push(NumbersPart::Table(NumbersTable {
        title: "All runs".into(),
        notes: vec![
            "The last column is the relative difference of the predicted from the measured time.".into(),
        ],
        head: HEAD.map(str::to_owned).into(),
        text_columns: 1,
        rows: rows.iter().map(|row| row.cells().into()).collect(),
    }));
    let lead = vec![LEAD.to_owned(), format!("Made by: {command}")];
    NumbersPage { title: "Small files".into(), lead, parts }.html()
}

/// Returns a chart of measured and predicted files per second of one operation, for each number of clients.
fn bars(work: &str, rows: &[NamesRow]) -> NumbersPart {
    let bar = |name: String, value: Option<f64>| Some((name, Sample::of(&[value?])?));
    let both = |row: &NamesRow| {
        let predicted = format!("{}, predicted", row.who);
        [bar(row.who.clone(), row.files_per_s), bar(predicted, Some(row.predicted_files_per_s))]
    };
    NumbersPart::Bars(NumbersBars {
        title: work.to_owned(),
        measurand: FILES,
        bars: rows.iter().filter(|row| row.work == work).flat_map(both).flatten().collect(),
        together: 2,
    })
}
