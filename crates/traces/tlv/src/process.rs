//! Description of the recorded process in a trace.

use std::fs::File;
use std::io::Read;

use nix::time::ClockId;
use nix::unistd::gethostname;
use trace::{ProcessInfo, ProcessNumber, TEXT_BYTES_MAX};

use crate::ticks;

/// Returns the name of this computer.
pub(crate) fn host() -> String {
    gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the description of this process, with time 0 at this call.
pub(crate) fn info(program: &str) -> ProcessInfo {
    ProcessInfo {
        host: host(),
        number: ProcessNumber::Pid(std::process::id()),
        program: program.to_owned(),
        command_line: command_line(),
        zero_unix_ns: Some(ticks::nanoseconds(ClockId::CLOCK_REALTIME)),
    }
}

/// Returns the command line, truncated to the maximum length of a text in a trace. In C programs, `std::env::args` may
/// be empty.
fn command_line() -> String {
    let mut arguments = Vec::new();
    // If this read fails, the command line is empty.
    let _ = File::open("/proc/self/cmdline")
        .and_then(|file| file.take(TEXT_BYTES_MAX as u64).read_to_end(&mut arguments));
    String::from_utf8_lossy(&arguments).trim_end_matches('\0').replace('\0', " ")
}
