//! Log of sweeps: a file of comma-separated values with a row for each 50,000 runs of schedules.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;

use crate::coverage::CoverageCounts;
use crate::kind_names::FAULTS;

/// Log of a sweep in progress.
pub struct SweepLog {
    file: PathBuf,
    commit: String,
    /// First seed of the next row. Runs of several threads overlap, so a row is exact up to the runs in flight.
    first_seed: u64,
}

impl SweepLog {
    /// Number of runs of a row, so that a sweep that is cut off loses little.
    pub const ROW_RUNS: u64 = 50_000;

    /// Returns the log of a sweep from a seed on. Rows are appended to `file`.
    pub fn new(file: PathBuf, first_seed: u64) -> SweepLog {
        let describe = ["describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"];
        let described = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(describe).output();
        let commit = described.ok().filter(|described| described.status.success());
        let commit = commit.map(|described| String::from_utf8_lossy(&described.stdout).trim().to_owned());
        SweepLog { file, commit: commit.unwrap_or_default(), first_seed }
    }

    /// Appends a row for runs since the last row. `marks` is the number of marks that the sweep has reached so far.
    ///
    /// # Errors
    /// If the file cannot be written, or has other columns.
    pub fn append(&mut self, counts: &CoverageCounts, marks: Option<usize>) -> Result<(), String> {
        let CoverageCounts { runs, failed, faults, .. } = counts;
        let columns = ["date", "commit", "first seed", "runs", "failed", "marks", "faults"];
        let head = columns.into_iter().chain(FAULTS).collect::<Vec<_>>().join(",");
        let date = jiff::Timestamp::now().strftime("%F").to_string();
        let mut row = vec![date, self.commit.clone()];
        row.extend([self.first_seed, *runs, *failed].map(|number| number.to_string()));
        row.push(marks.map(|marks| marks.to_string()).unwrap_or_default());
        row.push(faults.values().sum::<u64>().to_string());
        row.extend(FAULTS.iter().map(|fault| faults.get(fault).copied().unwrap_or_default().to_string()));
        self.first_seed = self.first_seed.wrapping_add(*runs);
        self.append_row(&head, &row.join(",")).map_err(|why| format!("{}: {why}", self.file.display()))
    }

    fn append_row(&self, head: &str, row: &str) -> Result<(), String> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).open(&self.file);
        let (mut file, mut text) = (opened.map_err(|error| error.to_string())?, String::new());
        file.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let rows = match text.lines().next() {
            None => format!("{head}\n{row}\n"),
            Some(before) if before == head => format!("{row}\n"),
            Some(_) => return Err("the log has other columns".into()),
        };
        file.write_all(rows.as_bytes()).map_err(|error| error.to_string())
    }
}
