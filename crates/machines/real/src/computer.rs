//! Information about the computer of this process, from Linux (proc(5)). Other systems do not provide it.

use std::fs;

use machine::{Computer, Duration};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// Unit of times in `/proc/stat`, in nanoseconds: USER_HZ is 100 on all current versions of Linux.
const TICK: u64 = 10_000_000;

/// Returns this computer, with the work of its processors until now.
pub(crate) fn this() -> Option<Computer> {
    let boot = boot()?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let nanoseconds = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0) * 1000;
    Some(Computer {
        id: boot,
        processors: stat.lines().filter(|line| is_of_one_processor(line)).count() as u32,
        worked: Duration::from_nanos(ticks_of_work(&stat)? * TICK),
        worked_for_node: Duration::from_nanos(
            nanoseconds(usage.user_time()) + nanoseconds(usage.system_time()),
        ),
    })
}

/// Returns a number that identifies the current boot of the computer.
pub(crate) fn boot() -> Option<u64> {
    id(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// Hashes a random UUID to a number.
fn id(boot: &str) -> Option<u64> {
    let digits: String = boot.trim().chars().filter(|&character| character != '-').collect();
    let all = u128::from_str_radix(&digits, 16).ok()?;
    Some((all >> 64) as u64 ^ all as u64)
}

fn is_of_one_processor(line: &str) -> bool {
    line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Returns the sum of the busy ticks of all processors. The fields are user, nice, system, idle, iowait, irq, softirq
/// and steal. The fields for guests follow, but are already part of user and nice.
fn ticks_of_work(stat: &str) -> Option<u64> {
    let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Option<Vec<u64>> = fields.split_whitespace().take(8).map(|field| field.parse().ok()).collect();
    let ticks = ticks?;
    Some([0, 1, 2, 5, 6, 7].iter().filter_map(|&field| ticks.get(field)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_excludes_idle_time() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 90 1\ncpu0 1 1 1 1\ncpu11 1 1 1 1\nintr 3\n";
        assert_eq!(ticks_of_work(stat), Some(171));
        assert_eq!(stat.lines().filter(|line| is_of_one_processor(line)).count(), 2);
        assert_eq!(ticks_of_work("cpu  1 2 x 4\n"), None);
        assert_eq!(id("00000000-0000-0003-0000-000000000005\n"), Some(6));
        assert_eq!(id("no such file"), None);
    }

    #[test]
    fn this_computer_has_a_constant_id_and_counts_busy_time() {
        let (first, mut second) = (this().expect("Linux"), this().expect("Linux"));
        while second.worked_for_node < first.worked_for_node + Duration::from_nanos(3 * TICK) {
            second = this().expect("Linux");
        }
        assert_eq!((first.id, first.processors), (second.id, second.processors));
        assert!(first.processors > 0 && second.worked > first.worked, "{first:?} {second:?}");
    }
}
