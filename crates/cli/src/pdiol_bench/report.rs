//! What was measured and predicted, as a table, CSV or JSON.

use std::fmt::Write;

use fs::Prefetch;
use serde::Serialize;

use super::limits::Limits;
use super::targets::targets;
use super::times::Times;
use crate::failure::{Failure, Result};
use crate::table::Table;
use node::Size;

/// All that a run of the benchmark found out.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// What this computer gives; nothing if nothing was measured.
    pub(crate) limits: Option<Limits>,
    /// Whether the disks were this computer's own; otherwise they were modelled.
    pub(crate) host_disks: bool,
    /// Of the rate of four modelled disks, what writing a file and flushing it got.
    pub(crate) write_share: Option<f64>,
    /// Bytes of that file.
    pub(crate) write_bytes: u64,
    /// The runs, program by program and size by size, the local disk first.
    pub(crate) rows: Vec<Row>,
}

/// One program on one file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The program.
    pub(crate) application: &'static str,
    /// Bytes of the file.
    pub(crate) file_bytes: u64,
    /// How many disks it was striped over; 0 if it lay on one that was used locally.
    pub(crate) disks: usize,
    /// The window in pages, or `adaptive`; empty for the local disk.
    pub(crate) window: String,
    /// Seconds, if it was measured; so are the next ones.
    pub(crate) elapsed_s: Option<f64>,
    /// The processor's in the program and its library.
    pub(crate) user_s: Option<f64>,
    /// The processor's in the kernel for it.
    pub(crate) system_s: Option<f64>,
    /// The elapsed time without these.
    pub(crate) waiting_s: Option<f64>,
    /// The processor's for the agents.
    pub(crate) agents_s: Option<f64>,
    /// Seconds that the simulated machine takes, if it can tell.
    pub(crate) predicted_s: Option<f64>,
    /// How many times faster than the disk used locally, both measured; both predicted if nothing was.
    pub(crate) speed_up: f64,
}

impl Row {
    /// The row of a run on `disks` disks, or on the local one if there is no window.
    pub(crate) fn new(
        application: &'static str,
        file_bytes: u64,
        place: Option<(usize, Prefetch)>,
        times: Option<Times>,
        predicted_s: Option<f64>,
    ) -> Row {
        let seconds = |part: fn(&Times) -> std::time::Duration| times.map(|times| part(&times).as_secs_f64());
        Row {
            application,
            file_bytes,
            disks: place.map_or(0, |(disks, _)| disks),
            window: place.map_or_else(String::new, |(_, window)| window.to_string()),
            elapsed_s: seconds(|times| times.elapsed),
            user_s: seconds(|times| times.user),
            system_s: seconds(|times| times.system),
            waiting_s: seconds(Times::waiting),
            agents_s: seconds(|times| times.others),
            predicted_s,
            speed_up: 1.0,
        }
    }

    /// The seconds that count: measured ones if there are any, or else predicted ones, of which there are some then.
    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed_s.or(self.predicted_s).unwrap_or(f64::NAN)
    }

    /// By how much the prediction is more than what was measured, as a part of that.
    pub(crate) fn difference(&self) -> Option<f64> {
        Some(self.predicted_s? / self.elapsed_s? - 1.0)
    }

    /// Whether it ran on the disk used locally.
    pub(crate) fn is_local(&self) -> bool {
        self.disks == 0
    }

    /// Whether its window was adaptive.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.window == "adaptive"
    }
}

impl Results {
    /// Fills in the speed-ups of rows of the same program and file over their local disk.
    pub(crate) fn compare(&mut self) {
        let locals: Vec<Row> = self.rows.iter().filter(|row| row.is_local()).cloned().collect();
        for row in &mut self.rows {
            let same =
                |local: &&Row| (local.application, local.file_bytes) == (row.application, row.file_bytes);
            if let Some(local) = locals.iter().find(same) {
                row.speed_up = local.seconds() / row.seconds();
            }
        }
    }

    /// The lines of a table, and below it what is to be reached.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.limit_lines();
        let mut table = Table::new(4);
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
        let mut table = Table::new(1);
        table.row([
            "what its authors hold it to (largest file, adaptive window unless said otherwise)",
            "goal",
            "found",
            "met",
        ]);
        targets.iter().for_each(|target| table.row(target.cells()));
        table.lines().collect()
    }

    /// What this computer gives, in words.
    fn limit_lines(&self) -> Vec<String> {
        let Some(limits) = &self.limits else { return Vec::new() };
        let mut table = Table::new(1);
        table.row(LIMITS_HEAD);
        limit_cells(limits).into_iter().for_each(|cells| table.row(cells));
        table.lines().chain([String::new()]).collect()
    }

    /// All rows as CSV, with a head.
    pub(crate) fn csv(&self) -> Vec<String> {
        let mut lines = vec![
            "application,file_bytes,disks,window,elapsed_s,user_s,system_s,waiting_s,agents_s,predicted_s,\
             difference,speed_up"
                .to_owned(),
        ];
        for row in &self.rows {
            let mut line = format!("{},{},{},{}", row.application, row.file_bytes, row.disks, row.window);
            let measured = [row.elapsed_s, row.user_s, row.system_s, row.waiting_s, row.agents_s];
            let values = measured.into_iter().chain([row.predicted_s, row.difference(), Some(row.speed_up)]);
            for value in values {
                let text = value.map_or_else(String::new, |value| format!("{value:.6}"));
                // Writing to a string cannot fail.
                let _ = write!(line, ",{text}");
            }
            lines.push(line);
        }
        lines
    }

    /// All of it as JSON.
    pub(crate) fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|error| Failure::new("printing JSON", error))
    }
}

/// The heads of the columns about this computer.
pub(crate) const LIMITS_HEAD: [&str; 3] =
    ["this computer, nothing slowed down", "", "processor time for 1 GiB"];

/// The cells of a table about this computer.
pub(crate) fn limit_cells(limits: &Limits) -> [[String; 3]; 7] {
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

/// The heads of the columns of a table.
pub(crate) const HEAD: [&str; 11] = [
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

/// The cells of a row of a table.
pub(crate) fn cells(row: &Row) -> [String; 11] {
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

/// A part as per cent, with its sign.
pub(crate) fn percent(part: f64) -> String {
    // Zero has no sign, whatever it was before it was rounded.
    let tenths = (1000.0 * part).round();
    if tenths == 0.0 { "0.0 %".to_owned() } else { format!("{:+.1} %", tenths / 10.0) }
}
