//! The time a program takes, and on what: as the tables of the thesis have it.
//!
//! User and system time are the processor's, of all threads of the program (`getrusage`). What is left of the elapsed
//! time is waiting. Threads that work at once may use more than the elapsed time; then there is no waiting to be seen,
//! and it is 0. Agents on the same computer are other programs: their time is not in it.

use std::time::{Duration, Instant};

use command_line::say;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::files::Files;

/// Measures from now on.
#[derive(Debug)]
pub struct Stopwatch {
    start: Instant,
    user: Duration,
    system: Duration,
    bytes: (u64, u64),
}

/// Time and bytes of a program or a phase of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// From the beginning to the end.
    pub elapsed: Duration,
    /// The processor's in the program.
    pub user: Duration,
    /// The processor's in the kernel for it.
    pub system: Duration,
    /// Bytes read of inputs.
    pub bytes_read: u64,
    /// Bytes written to outputs.
    pub bytes_written: u64,
}

impl Stopwatch {
    /// Starts.
    pub fn start(files: &Files) -> Stopwatch {
        let (user, system) = processor();
        Stopwatch { start: Instant::now(), user, system, bytes: files.bytes() }
    }

    /// The usage since the start.
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
    /// The names of the columns.
    pub const HEAD: &str = "program,phase,bytes_read,bytes_written,elapsed_s,user_s,system_s,waiting_s";

    /// The elapsed time that the processor did not work for the program.
    pub fn waiting(&self) -> Duration {
        self.elapsed.saturating_sub(self.user + self.system)
    }

    /// A row of a table.
    pub fn row(&self, program: &str, phase: &str) -> String {
        let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
        let times = [self.elapsed, self.user, self.system, self.waiting()].map(seconds).join(",");
        format!("{program},{phase},{},{},{times}", self.bytes_read, self.bytes_written)
    }
}

fn processor() -> (Duration, Duration) {
    // It cannot fail for the process itself.
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
    fn a_row_adds_up() {
        let milliseconds = Duration::from_millis;
        let (elapsed, user, system) = (milliseconds(1000), milliseconds(200), milliseconds(50));
        let usage = Usage { elapsed, user, system, bytes_read: 7, bytes_written: 9 };
        assert_eq!(usage.row("mycat", "all"), "mycat,all,7,9,1.000000,0.200000,0.050000,0.750000");
        assert_eq!(Usage { user: milliseconds(2000), ..usage }.waiting(), Duration::ZERO);
        assert_eq!(Usage::HEAD.split(',').count(), usage.row("x", "y").split(',').count());
    }
}
