//! Memory size of this computer, as Linux reports it (proc_meminfo(5)).

use std::fs;

use command_line::failure::{Failure, Result};
use node::Size;

/// Returns the size of the memory in bytes, if known.
pub fn all() -> Option<u64> {
    of_this_computer("MemTotal:")
}

/// Returns the bytes available to programs, if known.
fn available() -> Option<u64> {
    of_this_computer("MemAvailable:")
}

/// Remedy for simulated files that are too large for the memory.
pub const PHANTOM: &str = "Add --phantom: phantom data take no memory, and are not checked.";

/// Fails if `needed` bytes do not fit into 90 % of the available memory; the other 10 % are left to other programs.
/// `refused` receives the needed and the available size as texts and returns the failure.
pub fn check(needed: u64, refused: impl FnOnce(String, String) -> Failure) -> Result<()> {
    match available().filter(|available| needed > available / 10 * 9) {
        Some(free) => Err(refused(Size(needed).rounded(), Size(free).rounded())),
        None => Ok(()),
    }
}

/// Fails, before the start of a simulation, if its files would not fit into memory, because simulated disks keep their
/// files in memory.
pub fn check_stored(what: &str, needed: u64, remedy: &str) -> Result<()> {
    check(needed, |needed, free| {
        let why = format!("this needs about {needed} of memory, and {free} are free on this computer");
        Failure::new(what, why).remedy(remedy)
    })
}

fn of_this_computer(key: &str) -> Option<u64> {
    bytes(&fs::read_to_string("/proc/meminfo").ok()?, key)
}

/// Returns the number in the line that begins with `key`, converted from KiB to bytes.
fn bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_of_meminfo_are_converted_to_bytes() {
        let text = "MemTotal:       16310140 kB\nMemFree:          264096 kB\nMemAvailable:    9130072 kB\n";
        assert_eq!(bytes(text, "MemAvailable:"), Some(9_130_072 << 10));
        assert_eq!(bytes(text, "MemTotal:"), Some(16_310_140 << 10));
        assert_eq!(bytes("MemTotal: 1 kB\n", "MemAvailable:"), None);
        assert!(all() >= available());
    }
}
