//! Access patterns of the compute nodes in a case, by name: patterns of arrays, and random request logs.
//!
//! The random logs replace the lost traces of figure 11 of the ENWRICH report, and have the same statistics
//! (`request_log::Generator`). Equal names, sizes and numbers of nodes produce equal logs.

use std::fmt;
use std::str::FromStr;

use jobs::ArrayPattern;
use layout::{Operation, Problem};
use request_log::{Generator, Kind};

/// Access pattern: the data of each compute node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessPattern {
    /// The compute nodes access arrays in a pattern of the reports.
    Arrays(ArrayPattern),
    /// The compute nodes replay a log of writes. Each request of a node starts when its previous request has completed.
    Log(DrawnLog),
}

/// A random log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrawnLog {
    /// Log of message-passing programs: `cmmd`.
    Cmmd,
    /// Log of data-parallel programs, one of three: `cmf1` to `cmf3`.
    Cmf(u8),
}

/// Number of jobs that share the nodes of a log.
const JOBS: u32 = 4;

/// Number of files of each job. Files of CMMD programs are ten times as large as files of CMF programs.
const CMMD_FILES: u32 = 2;
const CMF_FILES: u32 = 10 * CMMD_FILES;

impl AccessPattern {
    /// Iterates over the patterns of the STARFISH report, in its order.
    pub fn all() -> impl Iterator<Item = AccessPattern> {
        ArrayPattern::all().map(AccessPattern::Arrays)
    }

    /// Returns the operation: read or write.
    pub fn operation(&self) -> Operation {
        match self {
            AccessPattern::Arrays(pattern) => pattern.operation(),
            AccessPattern::Log(_) => Operation::Write,
        }
    }

    /// True if the array is a matrix. Shape and grid have an effect only then.
    pub fn is_of_matrix(&self) -> bool {
        matches!(self, AccessPattern::Arrays(pattern) if pattern.is_of_matrix())
    }

    /// Returns the pattern of arrays, or `None` for a log.
    pub fn arrays(&self) -> Option<ArrayPattern> {
        match self {
            AccessPattern::Arrays(pattern) => Some(*pattern),
            AccessPattern::Log(_) => None,
        }
    }
}

impl DrawnLog {
    /// All random logs, in the order of the report.
    pub const ALL: [DrawnLog; 4] = [DrawnLog::Cmmd, DrawnLog::Cmf(1), DrawnLog::Cmf(2), DrawnLog::Cmf(3)];

    /// Returns the generator of the log. The log has about `file_bytes` bytes in total, in requests that average
    /// `record_bytes` bytes.
    pub fn generator(self, problem: &Problem) -> Generator {
        let (kind, files, seed) = match self {
            DrawnLog::Cmmd => (Kind::Cmmd, CMMD_FILES, 0),
            DrawnLog::Cmf(number) => (Kind::Cmf, CMF_FILES, number),
        };
        let jobs = JOBS.min(problem.nodes);
        let of_file = problem.file_bytes / u64::from(jobs * files).max(1);
        Generator {
            nodes: problem.nodes,
            jobs,
            files,
            records: (of_file / problem.record_bytes.max(1)).max(1),
            record_bytes: problem.record_bytes,
            seed: seed.into(),
            ..kind.generator()
        }
    }
}

impl<P: Into<ArrayPattern>> From<P> for AccessPattern {
    fn from(pattern: P) -> Self {
        AccessPattern::Arrays(pattern.into())
    }
}

impl fmt::Display for AccessPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessPattern::Arrays(pattern) => pattern.fmt(f),
            AccessPattern::Log(log) => log.fmt(f),
        }
    }
}

impl fmt::Display for DrawnLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawnLog::Cmmd => f.pad("cmmd"),
            DrawnLog::Cmf(number) => f.pad(&format!("cmf{number}")),
        }
    }
}

impl FromStr for AccessPattern {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let log = DrawnLog::ALL.into_iter().find(|log| log.to_string() == name);
        log.map_or_else(|| name.parse().map(AccessPattern::Arrays), |log| Ok(AccessPattern::Log(log)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_logs_have_the_statistics_of_the_report() {
        let problem = Problem::new(64 << 20, 800, 32);
        let totals: Vec<_> =
            DrawnLog::ALL.into_iter().map(|log| log.generator(&problem).log().totals()).collect();
        for totals in &totals {
            // Section 5.3 of the report: 500 to 1200 bytes on average.
            assert!((500.0..1200.0).contains(&totals.mean_bytes()), "{totals:?}");
        }
        let file_bytes = |log: DrawnLog| {
            let log = log.generator(&problem).log();
            log.files().iter().map(|file| file.end).sum::<u64>() / log.files().len() as u64
        };
        // "On an average a magnitude larger".
        let ratio = file_bytes(DrawnLog::Cmmd) as f64 / file_bytes(DrawnLog::Cmf(1)) as f64;
        assert!((5.0..20.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn pattern_names_of_the_reports_are_parsed_and_others_rejected() {
        for name in ["rb", "wcc", "wrnnbb", "cmmd", "cmf1", "cmf3"] {
            assert_eq!(name.parse::<AccessPattern>().expect("a name").to_string(), name);
        }
        for name in ["cmf", "cmf0", "cmf4", "log"] {
            assert!(name.parse::<AccessPattern>().is_err(), "{name}");
        }
    }
}
