//! Standard Prometheus metrics of a process, under their usual names, and the release of the program.

use std::fs as files;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::{SysconfVar, sysconf};

use crate::family::MetricFamily;
use crate::family::MetricUnit::{Bytes, Seconds};
use crate::samples::{MetricValue, Samples};

const BUILD: MetricFamily = MetricFamily::info("starfish_build", &["version"], "The release of Starfish");

const START: MetricFamily =
    MetricFamily::gauge("process_start_time", &[], "Start time of the process, in seconds since 1970")
        .in_unit(Seconds);

const CPU: MetricFamily =
    MetricFamily::counter("process_cpu", &[], "Processor time that the process has used").in_unit(Seconds);

const MEMORY: MetricFamily =
    MetricFamily::gauge("process_resident_memory", &[], "Resident memory of the process").in_unit(Bytes);

const OPEN_FILES: MetricFamily =
    MetricFamily::gauge("process_open_fds", &[], "Open files and connections of the process");

const OPEN_FILES_MAX: MetricFamily =
    MetricFamily::gauge("process_max_fds", &[], "Limit of open files and connections");

/// The families of any process.
pub static FAMILIES: [MetricFamily; 6] = [BUILD, START, CPU, MEMORY, OPEN_FILES, OPEN_FILES_MAX];

/// Start time of a process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStart(SystemTime);

impl ProcessStart {
    /// Returns the current time as the start time of this process. Call this function first.
    #[expect(clippy::disallowed_methods, reason = "Prometheus requires wall-clock time")]
    pub fn now() -> Self {
        ProcessStart(SystemTime::now())
    }

    /// Adds the metrics of this process. Omits values that the system does not report.
    pub fn add_to(self, samples: &mut Samples) {
        FAMILIES.iter().for_each(|family| samples.add_family(family));
        samples.add(&BUILD, [fs::RELEASE], MetricValue::Info);
        let since_1970 = self.0.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        samples.add(&START, [], MetricValue::Seconds(since_1970.as_secs_f64()));
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
            let used = seconds(usage.user_time()) + seconds(usage.system_time());
            samples.add(&CPU, [], MetricValue::Seconds(used));
        }
        if let Some(bytes) = resident_bytes() {
            samples.add(&MEMORY, [], bytes);
        }
        if let Ok(open) = files::read_dir("/proc/self/fd") {
            // One descriptor belongs to the directory that is being listed.
            samples.add(&OPEN_FILES, [], open.count().saturating_sub(1) as u64);
        }
        if let Ok((now, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
            samples.add(&OPEN_FILES_MAX, [], now);
        }
    }
}

/// Returns the resident memory in bytes, from proc(5).
fn resident_bytes() -> Option<u64> {
    let statm = files::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    let page = sysconf(SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page).ok()?)
}
