//! What was measured and predicted, as a table, CSV or JSON, and beside what is to be reached.

use std::fmt::Write;

use serde::Serialize;

use super::Window;
use super::limits::Limits;
use super::times::Times;
use crate::failure::{Failure, Result};
use crate::table::Table;
use pdiol::Size;

/// All that a run of the benchmark found out.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// What this computer gives; nothing if nothing was measured.
    pub(crate) limits: Option<Limits>,
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
    /// Seconds that the simulated machine takes.
    pub(crate) predicted_s: f64,
    /// How many times faster than the disk used locally, both measured; both predicted if nothing was.
    pub(crate) speed_up: f64,
}

impl Row {
    /// The row of a run on `disks` disks, or on the local one if there is no window.
    pub(crate) fn new(
        application: &'static str,
        file_bytes: u64,
        place: Option<(usize, Window)>,
        times: Option<Times>,
        predicted_s: f64,
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

    /// The seconds that count: measured ones if there are any.
    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed_s.unwrap_or(self.predicted_s)
    }

    /// By how much the prediction is more than what was measured, as a part of that.
    pub(crate) fn difference(&self) -> Option<f64> {
        self.elapsed_s.map(|elapsed| self.predicted_s / elapsed - 1.0)
    }

    fn is_local(&self) -> bool {
        self.disks == 0
    }

    fn is_adaptive(&self) -> bool {
        self.window == "adaptive"
    }
}

/// Something that is to be reached, and what was.
#[derive(Debug, PartialEq)]
pub(crate) struct Target {
    /// What it is.
    pub(crate) what: String,
    /// What is to be reached.
    pub(crate) wanted: String,
    /// What was.
    pub(crate) found: String,
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
        let mut table = Table::new(1);
        table.row(["largest file, adaptive window unless said otherwise", "to reach", "found"]);
        for Target { what, wanted, found } in self.targets() {
            table.row([what, wanted, found]);
        }
        lines.extend(table.lines());
        lines
    }

    /// What this computer gives, in words.
    pub(crate) fn limit_lines(&self) -> Vec<String> {
        let Some(limits) = &self.limits else { return Vec::new() };
        let mb_s = |value: f64| format!("{value:.0} MB/s");
        let mut table = Table::new(1);
        table.row(["this computer, nothing slowed down", "", "processor time for 1 GiB"]);
        table.row(["copying in memory", &mb_s(limits.copy), ""]);
        table.row(["reading a local file from the page cache", &mb_s(limits.local_read), ""]);
        table.row(["one plain sender, one receiver", &mb_s(limits.one_sender), ""]);
        let stripe = format!("{:.2} s", limits.bare_stripe_processor);
        table.row(["bare stripe: four plain senders, one receiver", &mb_s(limits.bare_stripe), &stripe]);
        let striped = format!("{:.2} s", limits.striped_processor);
        table.row(["striped file, four agents, from their page cache", &mb_s(limits.striped), &striped]);
        table.row(["a page from an agent's memory", &format!("{:.3} ms", 1000.0 * limits.page), ""]);
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
            let values =
                measured.into_iter().chain([Some(row.predicted_s), row.difference(), Some(row.speed_up)]);
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

    /// What is to be reached and can be told from the rows.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        let mut applications: Vec<&str> = self.rows.iter().map(|row| row.application).collect();
        applications.dedup();
        for application in applications {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.application == application).collect();
            let largest = rows.iter().map(|row| row.file_bytes).max().unwrap_or(0);
            let rows: Vec<&Row> = rows.into_iter().filter(|row| row.file_bytes == largest).collect();
            targets.extend(speed_up_targets(application, &rows));
        }
        targets.extend(self.prediction_target());
        if let Some(share) = self.write_share {
            let what = format!("writing {}, four disks, of their rate", Size(self.write_bytes));
            targets.push(Target { what, wanted: "0.97".into(), found: format!("{share:.3}") });
        }
        if let Some(limits) = &self.limits {
            let (speed, time) = (
                limits.striped / limits.bare_stripe,
                limits.striped_processor / limits.bare_stripe_processor,
            );
            let target = |what: &str, wanted: &str, found: f64| Target {
                what: what.into(),
                wanted: wanted.into(),
                found: format!("{found:.2}"),
            };
            targets.push(target("from the page cache, against the bare stripe", "0.80", speed));
            targets.push(target("its processor time, against the bare stripe", "at most 1.5", time));
        }
        targets
    }

    fn prediction_target(&self) -> Option<Target> {
        let differs = |row: &&Row| row.difference().map(f64::abs);
        let worst = self
            .rows
            .iter()
            .filter(|row| row.difference().is_some())
            .max_by(|one, other| differs(one).unwrap_or(0.0).total_cmp(&differs(other).unwrap_or(0.0)))?;
        let what = format!(
            "predicted against measured, at worst: {} {}, {} disks, window {}",
            worst.application,
            Size(worst.file_bytes),
            worst.disks,
            if worst.is_local() { "of the local disk" } else { &worst.window },
        );
        let found = percent(worst.difference().unwrap_or(0.0));
        Some(Target { what, wanted: "within 10 %".into(), found })
    }
}

/// What is to be reached by one program on one file.
fn speed_up_targets(application: &str, rows: &[&Row]) -> Vec<Target> {
    let mut targets = Vec::new();
    let four = if application == "cat" { "3.85" } else { "3.80" };
    for (disks, wanted) in [(1, "0.99"), (2, "1.95"), (4, four)] {
        let of_these: Vec<&&Row> = rows.iter().filter(|row| row.disks == disks).collect();
        let Some(adaptive) = of_these.iter().find(|row| row.is_adaptive()) else { continue };
        let what = format!("{application}, {disks} disks, speed-up over the local disk");
        targets.push(Target { what, wanted: wanted.into(), found: format!("{:.3}", adaptive.speed_up) });
        let fixed = of_these.iter().filter(|row| !row.is_adaptive()).map(|row| row.seconds());
        let best = fixed.fold(f64::INFINITY, f64::min);
        if best.is_finite() {
            let what = format!("{application}, {disks} disks, time against the best fixed window");
            let found = percent(adaptive.seconds() / best - 1.0);
            targets.push(Target { what, wanted: "at most +3 %".into(), found });
        }
    }
    if let Some(row) = rows.iter().find(|row| row.disks == 4 && row.window == "1") {
        let what = format!("{application}, 4 disks, window 1, speed-up over the local disk");
        targets.push(Target { what, wanted: "below 1".into(), found: format!("{:.3}", row.speed_up) });
    }
    targets
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
        seconds(Some(row.predicted_s)),
        row.difference().map_or_else(|| "-".to_owned(), percent),
        format!("{:.3}", row.speed_up),
    ]
}

fn percent(part: f64) -> String {
    format!("{:+.1} %", 100.0 * part)
}
