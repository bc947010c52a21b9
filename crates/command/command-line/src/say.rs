//! Lines on standard error: what a program says beside its results.

use std::fmt;
use std::io::{self, Write};

use crate::words::visible_lines;

/// Writes a line to standard error, as `eprintln!` does, whether or not that can be written.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {
        $crate::say_line(format_args!($($words)*))
    };
}

/// Writes a line to standard error, or several, with the names in them made visible. If nobody reads it any more, or
/// its disk is full, the program goes on: what it does and its exit code do not depend on who listens.
pub fn say_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", visible_lines(&line.to_string()));
}
