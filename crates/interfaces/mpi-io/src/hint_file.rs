//! ROMIO's hint file, for programs that pass no hints: the file named in `ROMIO_HINTS`, or a file of the host.
//!
//! The first member of a collective open reads it for all, since other hosts may not have it.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io::Read;

/// The environment variable with the path of the file.
const VARIABLE: &str = "ROMIO_HINTS";

/// Path of the hint file of the host, which is read if `ROMIO_HINTS` names no readable file.
const OF_COMPUTER: &str = "/etc/romio-hints";

/// Limit of the size of the hint file in bytes, without the final 0, as in the header.
pub(crate) const BYTES_MAX: usize = 4095;

thread_local! {
    static NOTED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the contents of the file, or an empty string.
pub(crate) fn read() -> String {
    let named = env::var_os(VARIABLE).and_then(|name| File::open(name).ok());
    let Some(file) = named.or_else(|| File::open(OF_COMPUTER).ok()) else { return String::new() };
    let mut found = Vec::new();
    // An unreadable file or one that is not text contains no hints: a hint is never an error.
    let _ = file.take(BYTES_MAX as u64).read_to_end(&mut found);
    let text = String::from_utf8_lossy(&found);
    text.replace(['\0', char::REPLACEMENT_CHARACTER], " ")
}

/// Stores the contents of the file as read by another process.
pub(crate) fn note(lines: &str) {
    NOTED.replace(lines.to_owned());
}

/// Returns the contents stored last by this thread.
pub(crate) fn noted() -> String {
    NOTED.with_borrow(String::clone)
}
