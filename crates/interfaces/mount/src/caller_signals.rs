//! Detects signals for a thread of a program that waits for an answer of this mount.
//!
//! For a signal the kernel sends an interrupt message, but `fuser` 0.18 does not forward this message, so that not even
//! SIGKILL would end the wait. Therefore unbounded waits poll for signals. The answer EINTR is correct only if the
//! waiting thread itself will receive the signal; otherwise its program would get an error without a cause.

use std::fs;

/// The signals of a thread.
pub(crate) struct CallerSignals {
    thread: u32,
    /// Signals to the whole process that were pending at the last poll.
    shared_before: u64,
}

/// Signal state of a thread in /proc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    own: u64,
    shared: u64,
    blocked: u64,
    threads: u64,
}

impl CallerSignals {
    pub(crate) fn of(thread: u32) -> CallerSignals {
        CallerSignals { thread, shared_before: 0 }
    }

    /// True if a signal has arrived that ends the wait. Always false for a thread that is not visible in /proc of this
    /// process.
    pub(crate) fn have_come(&mut self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default();
        self.look(read(&status))
    }

    fn look(&mut self, pending: Pending) -> bool {
        let shared = pending.shared & !pending.blocked;
        // Another thread may be about to receive a signal to the process. If it is still pending at the next poll, this
        // thread will receive it.
        let is_left = shared & self.shared_before != 0;
        self.shared_before = shared;
        pending.own & !pending.blocked != 0 || is_left || shared != 0 && pending.threads == 1
    }
}

fn read(status: &str) -> Pending {
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map_or("0", str::trim).to_owned()
    };
    let mask = |name| u64::from_str_radix(&value(name), 16).unwrap_or(0);
    let threads = value("Threads").parse().unwrap_or(0);
    Pending { own: mask("SigPnd"), shared: mask("ShdPnd"), blocked: mask("SigBlk"), threads }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tsleep\nThreads:\t2\nSigQ:\t1/9\nSigPnd:\t0000000000000100\n\
                          ShdPnd:\t0000000000004000\nSigBlk:\t0000000000000100\n";

    #[test]
    fn the_status_file_of_proc_is_parsed() {
        assert_eq!(read(STATUS), Pending { own: 0x100, shared: 0x4000, blocked: 0x100, threads: 2 });
        assert_eq!(read(""), Pending::default());
    }

    #[test]
    fn a_signal_ends_the_wait_unless_another_thread_takes_it() {
        let pending = read(STATUS);
        let mut signals = CallerSignals::of(1);
        assert!(!signals.look(pending), "one is blocked, and the other thread may take the other");
        assert!(signals.look(pending), "it has not");
        assert!(CallerSignals::of(1).look(Pending { threads: 1, ..pending }));
        assert!(CallerSignals::of(1).look(Pending { blocked: 0, ..pending }));
    }

    #[test]
    fn this_process_has_no_pending_signal() {
        assert!(!CallerSignals::of(std::process::id()).have_come());
        assert!(!CallerSignals::of(0).have_come());
    }
}
