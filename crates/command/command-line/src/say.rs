//! Lines on standard error: messages of a program in addition to its results.

use std::fmt;
use std::io::{self, Write};

use crate::words::visible_lines;

/// Writes a line to standard error, as `eprintln!` does, but ignores write errors.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {
        $crate::say_line(format_args!($($words)*))
    };
}

/// Writes one or more lines to standard error, with control characters escaped. Ignores write errors: a closed pipe or
/// a full disk must change neither the work nor the exit code of the program.
pub fn say_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", visible_lines(&line.to_string()));
}
