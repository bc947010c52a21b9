//! Statistics of several trials.

use statistics::Sample;

use crate::Trial;

/// Summary of several trials of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of trials.
    pub trials: usize,
    /// Mean throughput in MiB/s.
    pub throughput_mib_s: f64,
    /// Coefficient of variation of the throughput: standard deviation divided by mean.
    pub cv: f64,
    /// Mean number of disk movements of all disks.
    pub disk_movements: f64,
    /// Mean number of flushes of the write cache, and of flushes because of a full directory; `None` without a write
    /// cache.
    pub flushes: Option<(f64, f64)>,
    /// Number of timed events of all trials.
    pub events: u64,
    /// Mean virtual time of the measured part, in seconds.
    pub virtual_s: f64,
    /// Hash of the event digests of all trials, in order.
    pub digest: u64,
}

/// Values of a trial from which a summary is computed.
#[derive(Clone, Copy, Debug)]
pub struct TrialNumbers {
    throughput_mib_s: f64,
    disk_movements: f64,
    flushes: Option<(f64, f64)>,
    events: u64,
    virtual_s: f64,
    digest: u64,
}

impl From<&Trial> for TrialNumbers {
    fn from(trial: &Trial) -> Self {
        TrialNumbers {
            throughput_mib_s: trial.throughput_mib_s(),
            disk_movements: trial.disk_movements as f64,
            flushes: trial.flushes().map(|tally| (tally.flushes as f64, tally.directory_flushes() as f64)),
            events: trial.events,
            virtual_s: trial.elapsed.as_secs_f64(),
            digest: trial.digest,
        }
    }
}

/// Summarises trials that transferred data and took time.
///
/// # Panics
/// If `trials` is empty.
pub fn summarise(trials: &[TrialNumbers]) -> Summary {
    let sample = |value: &dyn Fn(&TrialNumbers) -> f64| {
        let values: Vec<f64> = trials.iter().map(value).collect();
        Sample::of(&values).expect("there are trials, and each took time")
    };
    let mean = |value: &dyn Fn(&TrialNumbers) -> f64| sample(value).mean();
    let throughput = sample(&|trial| trial.throughput_mib_s);
    Summary {
        trials: trials.len(),
        throughput_mib_s: throughput.mean(),
        cv: throughput.cv(),
        disk_movements: mean(&|trial| trial.disk_movements),
        flushes: trials[0].flushes.map(|_| {
            let of = |trial: &TrialNumbers| trial.flushes.unwrap_or_default();
            (mean(&|trial| of(trial).0), mean(&|trial| of(trial).1))
        }),
        events: trials.iter().map(|trial| trial.events).sum(),
        virtual_s: mean(&|trial| trial.virtual_s),
        digest: trials.iter().fold(0, |digest, trial| digest.rotate_left(7) ^ trial.digest),
    }
}
