//! What was measured and predicted.

use fs::Prefetch;
use serde::Serialize;
use statistics::Sample;

use super::limits::Limits;
use crate::bench::times::Times;

/// All that a run of the benchmark found out.
#[derive(Debug, Serialize)]
pub struct Results {
    /// What this computer gives; nothing if nothing was measured.
    pub limits: Option<Limits>,
    /// Whether the disks were this computer's own; otherwise they were modelled.
    pub host_disks: bool,
    /// Of the rate of four modelled disks, what writing a file and flushing it got.
    pub write_share: Option<f64>,
    /// Bytes of that file.
    pub write_bytes: u64,
    /// The runs, program by program and size by size, the local disk first.
    pub rows: Vec<ProgramRow>,
}

/// One program on one file.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRow {
    /// The program.
    pub application: &'static str,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How many disks it was striped over; 0 if it lay on one that was used locally.
    pub disks: usize,
    /// The window in pages, or `adaptive`; empty for the local disk.
    pub window: String,
    /// Seconds, if it was measured; so are the next ones.
    pub elapsed_s: Option<f64>,
    /// The processor's in the program and its library.
    pub user_s: Option<f64>,
    /// The processor's in the kernel for it.
    pub system_s: Option<f64>,
    /// The elapsed time without these.
    pub waiting_s: Option<f64>,
    /// The processor's for the agents.
    pub agents_s: Option<f64>,
    /// The elapsed times of all rounds, if they were measured.
    pub rounds: Option<ElapsedRounds>,
    /// Seconds that the simulated machine takes, if it can tell.
    pub predicted_s: Option<f64>,
    /// How many times faster than the disk used locally, both measured; both predicted if nothing was.
    pub speed_up: f64,
}

/// Statistics of the elapsed times of all rounds, besides the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ElapsedRounds {
    /// Seconds, as the next two.
    pub mean_s: f64,
    /// The least, in seconds.
    pub min_s: f64,
    /// The most, in seconds.
    pub max_s: f64,
    /// Square seconds, divided by n - 1; 0 for one round.
    pub variance_s2: f64,
}

impl ElapsedRounds {
    /// The statistics of these times in seconds; None if there are none.
    pub fn of(seconds: &[f64]) -> Option<ElapsedRounds> {
        let sample = Sample::of(seconds)?;
        Some(ElapsedRounds {
            mean_s: sample.mean(),
            min_s: seconds.iter().copied().fold(f64::INFINITY, f64::min),
            max_s: seconds.iter().copied().fold(0.0, f64::max),
            variance_s2: sample.deviation().powi(2),
        })
    }
}

impl ProgramRow {
    /// The row of a run on `disks` disks, or on the local one if there is no window.
    pub fn new(
        application: &'static str,
        file_bytes: u64,
        place: Option<(usize, Prefetch)>,
        times: Option<Times>,
        predicted_s: Option<f64>,
    ) -> ProgramRow {
        let seconds = |part: fn(&Times) -> std::time::Duration| times.map(|times| part(&times).as_secs_f64());
        ProgramRow {
            application,
            file_bytes,
            disks: place.map_or(0, |(disks, _)| disks),
            window: place.map_or_else(String::new, |(_, window)| window.to_string()),
            elapsed_s: seconds(|times| times.elapsed),
            user_s: seconds(|times| times.user),
            system_s: seconds(|times| times.system),
            waiting_s: seconds(Times::waiting),
            agents_s: seconds(|times| times.others),
            rounds: None,
            predicted_s,
            speed_up: 1.0,
        }
    }

    /// The seconds that count: measured ones if there are any, or else predicted ones, of which there are some then.
    pub fn seconds(&self) -> f64 {
        self.elapsed_s.or(self.predicted_s).unwrap_or(f64::NAN)
    }

    /// By how much the prediction is more than what was measured, as a part of that.
    pub fn difference(&self) -> Option<f64> {
        Some(self.predicted_s? / self.elapsed_s? - 1.0)
    }

    /// Whether it ran on the disk used locally.
    pub fn is_local(&self) -> bool {
        self.disks == 0
    }

    /// Whether its window was adaptive.
    pub fn is_adaptive(&self) -> bool {
        self.window == "adaptive"
    }
}

impl Results {
    /// Fills in the speed-ups of rows of the same program and file over their local disk.
    pub fn compare(&mut self) {
        let locals: Vec<ProgramRow> = self.rows.iter().filter(|row| row.is_local()).cloned().collect();
        for row in &mut self.rows {
            let same = |local: &&ProgramRow| {
                (local.application, local.file_bytes) == (row.application, row.file_bytes)
            };
            if let Some(local) = locals.iter().find(same) {
                row.speed_up = local.seconds() / row.seconds();
            }
        }
    }
}

/// A part as per cent, with its sign.
pub fn percent(part: f64) -> String {
    // Zero has no sign, whatever it was before it was rounded.
    let tenths = (1000.0 * part).round();
    if tenths == 0.0 { "0.0 %".to_owned() } else { format!("{:+.1} %", tenths / 10.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_mean_extremes_and_variance() {
        assert_eq!(ElapsedRounds::of(&[]), None);
        let rounds = ElapsedRounds { mean_s: 3.0, min_s: 1.0, max_s: 5.0, variance_s2: 4.0 };
        assert_eq!(ElapsedRounds::of(&[5.0, 1.0, 3.0]), Some(rounds));
    }
}
