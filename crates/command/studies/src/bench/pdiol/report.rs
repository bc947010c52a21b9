//! Measurements and predictions, as a table or CSV.

use std::fmt::Write;

use command_line::TextTable;

use super::limits::Limits;
use super::results::{ElapsedRounds, ProgramRow, Results, percent};
use super::targets::targets;
use node::Size;

impl Results {
    /// Returns the lines of a table, followed by the goals.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.limit_lines();
        let mut table = TextTable::new(4);
        table.row(HEAD);
        for row in &self.rows {
            table.row(cells(row));
        }
        lines.extend(table.lines());
        lines.push(String::new());
        lines.extend(self.target_lines());
        lines
    }

    fn target_lines(&self) -> Vec<String> {
        let targets = targets(self);
        if targets.is_empty() {
            return Vec::new();
        }
        let mut table = TextTable::new(1);
        table.row([
            "goals of the authors of Starfish (largest file, adaptive window unless stated otherwise)",
            "goal",
            "found",
            "met",
        ]);
        targets.iter().for_each(|target| table.row(target.cells()));
        table.lines().collect()
    }

    /// Describes the limits of this computer, one on each line.
    fn limit_lines(&self) -> Vec<String> {
        let Some(limits) = &self.limits else { return Vec::new() };
        let mut table = TextTable::new(1);
        table.row(LIMITS_HEAD);
        limit_cells(limits).into_iter().for_each(|cells| table.row(cells));
        table.lines().chain([String::new()]).collect()
    }

    /// Returns all rows as CSV, with a header.
    pub fn csv(&self) -> Vec<String> {
        let mut lines = vec![
            "application,file_bytes,disks,window,elapsed_s,user_s,system_s,waiting_s,agents_s,predicted_s,\
             difference,speed_up,elapsed_mean_s,elapsed_min_s,elapsed_max_s,elapsed_variance_s2"
                .to_owned(),
        ];
        for row in &self.rows {
            let mut line = format!("{},{},{},{}", row.application, row.file_bytes, row.disks, row.window);
            let measured = [row.elapsed_s, row.user_s, row.system_s, row.waiting_s, row.agents_s];
            let values = measured.into_iter().chain([row.predicted_s, row.difference(), Some(row.speed_up)]);
            let rounds = row.rounds.map(|rounds| {
                let ElapsedRounds { mean_s, min_s, max_s, variance_s2 } = rounds;
                [mean_s, min_s, max_s, variance_s2]
            });
            let of_rounds = rounds.map_or([None; 4], |rounds| rounds.map(Some));
            for value in values.chain(of_rounds) {
                let text = value.map_or_else(String::new, |value| format!("{value:.6}"));
                // Writing to a string cannot fail.
                let _ = write!(line, ",{text}");
            }
            lines.push(line);
        }
        lines
    }
}

/// Column headers of the table of limits.
pub const LIMITS_HEAD: [&str; 3] = ["this computer, nothing slowed down", "", "processor time for 1 GiB"];

/// Returns the cells of the table of limits.
pub fn limit_cells(limits: &Limits) -> [[String; 3]; 7] {
    let row = |what: &str, value: String, time: Option<f64>| {
        [what.to_owned(), value, time.map_or_else(String::new, |time| format!("{time:.2} s"))]
    };
    let mib_s = |value: f64| format!("{value:.0} MiB/s");
    [
        row("copying in memory", mib_s(limits.copy), None),
        row("reading a local file from the page cache", mib_s(limits.local_read), None),
        row("one plain sender, one receiver", mib_s(limits.one_sender), None),
        row(
            "bare stripe: four plain senders, one receiver",
            mib_s(limits.bare_stripe),
            Some(limits.bare_stripe_processor),
        ),
        row(
            "striped file, four agents that find it in the system's page cache",
            mib_s(limits.striped),
            Some(limits.striped_processor),
        ),
        row(
            "striped file, four agents that have it in their own caches",
            mib_s(limits.cached),
            Some(limits.cached_processor),
        ),
        row("a page from an agent's memory", format!("{:.3} ms", 1000.0 * limits.page), None),
    ]
}

/// Column headers of the table of runs.
pub const HEAD: [&str; 11] = [
    "program",
    "file",
    "disks",
    "window",
    "elapsed",
    "user",
    "system",
    "waiting",
    "predicted",
    "difference",
    "speed-up",
];

/// Returns the cells of a row of the table of runs.
pub fn cells(row: &ProgramRow) -> [String; 11] {
    let seconds = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3} s"));
    [
        row.application.to_owned(),
        Size(row.file_bytes).to_string(),
        if row.is_local() { "local".to_owned() } else { row.disks.to_string() },
        row.window.clone(),
        seconds(row.elapsed_s),
        seconds(row.user_s),
        seconds(row.system_s),
        seconds(row.waiting_s),
        seconds(row.predicted_s),
        row.difference().map_or_else(|| "-".to_owned(), percent),
        format!("{:.3}", row.speed_up),
    ]
}
