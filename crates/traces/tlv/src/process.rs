//! What a trace says of the process that is recorded.

use std::fs::File;
use std::io::Read;

use nix::time::ClockId;
use nix::unistd::gethostname;
use trace::{ProcessInfo, ProcessNumber, TEXT_BYTES_MAX};

use crate::ticks;

/// The name of this computer.
pub(crate) fn host() -> String {
    gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// This process, whose records count from now on.
pub(crate) fn info(program: &str) -> ProcessInfo {
    ProcessInfo {
        host: host(),
        number: ProcessNumber::Pid(std::process::id()),
        program: program.to_owned(),
        command_line: command_line(),
        zero_unix_ns: Some(ticks::nanoseconds(ClockId::CLOCK_REALTIME)),
    }
}

/// The command line, as far as a trace has room for it. The standard library does not know it in every C program.
fn command_line() -> String {
    let mut arguments = Vec::new();
    // Where the kernel does not tell it, there is none.
    let _ = File::open("/proc/self/cmdline")
        .and_then(|file| file.take(TEXT_BYTES_MAX as u64).read_to_end(&mut arguments));
    String::from_utf8_lossy(&arguments).trim_end_matches('\0').replace('\0', " ")
}
