//! The file of hints that ROMIO reads for programs that give none: that of `ROMIO_HINTS`, or one of the computer.
//!
//! The first of those who open a file together reads it for all, since the others may be where there is none.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io::Read;

/// The environment variable that names it.
const VARIABLE: &str = "ROMIO_HINTS";

/// Where it is if that names none that can be read.
const OF_COMPUTER: &str = "/etc/romio-hints";

/// The most that is read of it, as the header has it, without the 0.
pub(crate) const BYTES_MAX: usize = 4095;

thread_local! {
    static NOTED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What stands in it.
pub(crate) fn read() -> String {
    let named = env::var_os(VARIABLE).and_then(|name| File::open(name).ok());
    let Some(file) = named.or_else(|| File::open(OF_COMPUTER).ok()) else { return String::new() };
    let mut found = Vec::new();
    // What cannot be read, or is no text, gives no hints: a hint is never an error.
    let _ = file.take(BYTES_MAX as u64).read_to_end(&mut found);
    let text = String::from_utf8_lossy(&found);
    text.replace(['\0', char::REPLACEMENT_CHARACTER], " ")
}

/// Says what stands in it, as somebody else has read it.
pub(crate) fn note(lines: &str) {
    NOTED.replace(lines.to_owned());
}

/// What was said last in this thread.
pub(crate) fn noted() -> String {
    NOTED.with_borrow(String::clone)
}
