//! Time of a program, split as in the tables of the thesis.
//!
//! User and system time are the processor time of all threads of the program (`getrusage`). The rest of the elapsed
//! time is waiting. If concurrent threads use more processor time than the elapsed time, waiting cannot be determined
//! and is reported as 0. Agents on the same host are separate processes: their time is not included.

use std::time::{Duration, Instant};

use command_line::say;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::files::Files;

/// A stopwatch that starts when it is made.
#[derive(Debug)]
pub struct Stopwatch {
    start: Instant,
    user: Duration,
    system: Duration,
    bytes: (u64, u64),
}

/// Time and bytes of a program or one of its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Elapsed time.
    pub elapsed: Duration,
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel for the program.
    pub system: Duration,
    /// Bytes read from inputs.
    pub bytes_read: u64,
    /// Bytes written to outputs.
    pub bytes_written: u64,
}

impl Stopwatch {
    /// Starts the stopwatch.
    pub fn start(files: &Files) -> Stopwatch {
        let (user, system) = processor();
        Stopwatch { start: Instant::now(), user, system, bytes: files.bytes() }
    }

    /// Returns the usage since the start.
    pub fn usage(&self, files: &Files) -> Usage {
        let (elapsed, (user, system)) = (self.start.elapsed(), processor());
        let (read, written) = files.bytes();
        Usage {
            elapsed,
            user: user.saturating_sub(self.user),
            system: system.saturating_sub(self.system),
            bytes_read: read - self.bytes.0,
            bytes_written: written - self.bytes.1,
        }
    }
}

impl Usage {
    /// Names of the columns.
    pub const HEAD: &str = "program,phase,bytes_read,bytes_written,elapsed_s,user_s,system_s,waiting_s";

    /// Returns the elapsed time minus the processor time, or 0 if negative.
    pub fn waiting(&self) -> Duration {
        self.elapsed.saturating_sub(self.user + self.system)
    }

    /// Returns a row of the table.
    pub fn row(&self, program: &str, phase: &str) -> String {
        let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
        let times = [self.elapsed, self.user, self.system, self.waiting()].map(seconds).join(",");
        format!("{program},{phase},{},{},{times}", self.bytes_read, self.bytes_written)
    }
}

fn processor() -> (Duration, Duration) {
    // The call cannot fail for the process itself.
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Default::default() };
    (duration(usage.user_time()), duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
}

/// Prints the usage of a program by phase; the last row is the total.
pub(crate) fn print(program: &str, phases: &[(&str, Usage)]) {
    say!("{}", Usage::HEAD);
    phases.iter().for_each(|(phase, usage)| say!("{}", usage.row(program, phase)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_all_columns_and_no_negative_waiting_time() {
        let milliseconds = Duration::from_millis;
        let (elapsed, user, system) = (milliseconds(1000), milliseconds(200), milliseconds(50));
        let usage = Usage { elapsed, user, system, bytes_read: 7, bytes_written: 9 };
        assert_eq!(usage.row("mycat", "all"), "mycat,all,7,9,1.000000,0.200000,0.050000,0.750000");
        assert_eq!(Usage { user: milliseconds(2000), ..usage }.waiting(), Duration::ZERO);
        assert_eq!(Usage::HEAD.split(',').count(), usage.row("x", "y").split(',').count());
    }
}
