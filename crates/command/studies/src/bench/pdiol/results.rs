//! Measurements and predictions.

use fs::Prefetch;
use serde::Serialize;
use statistics::Sample;

use super::limits::Limits;
use crate::bench::times::Times;

/// Results of a run of the benchmark.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Limits of this computer; `None` if nothing was measured.
    pub limits: Option<Limits>,
    /// True if the disks are this computer's own, false if they are modelled.
    pub host_disks: bool,
    /// Throughput of writing and flushing a file, as a share of the transfer rate of four modelled disks.
    pub write_share: Option<f64>,
    /// Size of this file in bytes.
    pub write_bytes: u64,
    /// The runs, grouped by program and file size, each group with the local disk first.
    pub rows: Vec<ProgramRow>,
}

/// Result of one program on one file.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRow {
    /// Name of the program.
    pub application: &'static str,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Number of disks over which the file is striped; 0 for the disk used locally.
    pub disks: usize,
    /// Window in pages, or `adaptive`; empty for the local disk.
    pub window: String,
    /// Elapsed time in seconds. `None` if the run was not measured; so for the next four fields.
    pub elapsed_s: Option<f64>,
    /// Processor time in the program and its library, in seconds.
    pub user_s: Option<f64>,
    /// Processor time in the kernel for the program, in seconds.
    pub system_s: Option<f64>,
    /// Elapsed time without the user and the system time, in seconds.
    pub waiting_s: Option<f64>,
    /// Processor time of the agents, in seconds.
    pub agents_s: Option<f64>,
    /// Statistics of the elapsed times of all rounds, if measured.
    pub rounds: Option<ElapsedRounds>,
    /// Predicted elapsed time in seconds, if the run can be predicted.
    pub predicted_s: Option<f64>,
    /// Speed-up over the disk used locally: from measured times, or from predicted times if nothing was measured.
    pub speed_up: f64,
}

/// Statistics of the elapsed times of all rounds, in addition to the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ElapsedRounds {
    /// Mean in seconds.
    pub mean_s: f64,
    /// Minimum in seconds.
    pub min_s: f64,
    /// Maximum in seconds.
    pub max_s: f64,
    /// Variance in square seconds (with divisor n - 1); 0 for one round.
    pub variance_s2: f64,
}

impl ElapsedRounds {
    /// Returns the statistics of these times in seconds, or `None` without times.
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
    /// Returns the row of a run. `place` is the number of disks and the prefetch setting, or `None` for the local disk.
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

    /// Returns the measured elapsed time in seconds, or else the predicted one.
    pub fn seconds(&self) -> f64 {
        self.elapsed_s.or(self.predicted_s).unwrap_or(f64::NAN)
    }

    /// Returns the relative difference of the predicted from the measured time.
    pub fn difference(&self) -> Option<f64> {
        Some(self.predicted_s? / self.elapsed_s? - 1.0)
    }

    /// True if the run was on the disk used locally.
    pub fn is_local(&self) -> bool {
        self.disks == 0
    }

    /// True if the window was adaptive.
    pub fn is_adaptive(&self) -> bool {
        self.window == "adaptive"
    }
}

impl Results {
    /// Computes the speed-up of each row over the local-disk row of the same program and file size.
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

/// Formats a share in per cent, with its sign.
pub fn percent(part: f64) -> String {
    // Print zero without a sign, even if the value was negative before rounding.
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
