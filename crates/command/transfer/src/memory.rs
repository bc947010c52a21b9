//! The memory of this computer, as Linux tells about it (proc_meminfo(5)).

use std::fs;

use command_line::failure::{Failure, Result};
use node::Size;

/// All of it, in bytes, if that is known.
pub fn all() -> Option<u64> {
    of_this_computer("MemTotal:")
}

/// What programs can still have of it, in bytes, if that is known.
fn available() -> Option<u64> {
    of_this_computer("MemAvailable:")
}

/// Remedy where what is simulated does not fit.
pub const PHANTOM: &str = "Add --phantom: then what is read is not checked, and takes no memory.";

/// Refuses what would not fit into what programs can still have of it, by a failure that is told what is needed and
/// what is free: a tenth is left to others.
pub fn check(needed: u64, refused: impl FnOnce(String, String) -> Failure) -> Result<()> {
    match available().filter(|available| needed > available / 10 * 9) {
        Some(free) => Err(refused(Size(needed).rounded(), Size(free).rounded())),
        None => Ok(()),
    }
}

/// Refuses a simulation that would not fit into memory, where simulated disks have their files, before anything runs.
pub fn check_stored(what: &str, needed: u64, remedy: &str) -> Result<()> {
    check(needed, |needed, free| {
        let why = format!("that needs about {needed}, and {free} of memory are free here");
        Failure::new(what, why).remedy(remedy)
    })
}

fn of_this_computer(key: &str) -> Option<u64> {
    bytes(&fs::read_to_string("/proc/meminfo").ok()?, key)
}

/// The number of the line that begins with `key`, which is in KiB.
fn bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_bytes() {
        let text = "MemTotal:       16310140 kB\nMemFree:          264096 kB\nMemAvailable:    9130072 kB\n";
        assert_eq!(bytes(text, "MemAvailable:"), Some(9_130_072 << 10));
        assert_eq!(bytes(text, "MemTotal:"), Some(16_310_140 << 10));
        assert_eq!(bytes("MemTotal: 1 kB\n", "MemAvailable:"), None);
        assert!(all() >= available());
    }
}
