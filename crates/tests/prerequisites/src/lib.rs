//! Prerequisites of tests: programs, devices and privileges that a computer may lack.
//!
//! A test whose prerequisite is missing calls [`skip`], which records the test, and returns. `make test` ends with the
//! list of skipped tests; `cargo test` prints each of them on standard error. A program of ours that was not built is a
//! failure, not a missing prerequisite.

use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::thread;

/// Environment variable that names the file of skipped tests: lines of a reason, a tab and a test.
const LIST: &str = "STARFISH_SKIPPED";

/// Records the calling test as skipped. The test harness names each test's thread after the test.
pub fn skip(why: impl Display) {
    let program =
        env::current_exe().ok().and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    // Cargo ends the name of a test program with a hyphen and a hash.
    let program = program.as_deref().and_then(|name| Some(name.rsplit_once('-')?.0)).unwrap_or("test");
    let current = thread::current();
    let test = current.name().unwrap_or("in another thread");
    record(env::var_os(LIST), &one_line(&why.to_string()), &format!("{program} {test}"));
}

/// Appends to the list. Without a list, prints directly to standard error, because the test harness shows only the
/// output of failed tests.
fn record(list: Option<std::ffi::OsString>, why: &str, test: &str) {
    let written = match list {
        // Write each line in one piece, because many processes append at the same time.
        Some(path) => File::options()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{why}\t{test}\n").as_bytes())),
        None => io::stderr().write_all(format!("skipped {test}: {why}\n").as_bytes()),
    };
    written.expect("the list of skipped tests can be written");
}

/// Returns the first line of a message, without the remedy.
fn one_line(why: &str) -> String {
    why.lines().next().unwrap_or_default().replace('\t', " ")
}

/// Returns true if a program is in the search path; records the calling test as skipped otherwise.
pub fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_found = env::split_paths(&path).any(|directory| directory.join(program).exists());
    if !is_found {
        skip(format_args!("no program {program}"));
    }
    is_found
}

/// Records the calling test as skipped if a failed mount means that this user cannot mount on this computer; panics for
/// any other failure.
pub fn cannot_mount(failure: &str) {
    let lacks = ["/dev/fuse", "fusermount3", "Operation not permitted"];
    let lack = lacks.iter().find(|lack| failure.contains(**lack)).unwrap_or_else(|| panic!("{failure}"));
    skip(format_args!("this user cannot mount: {lack}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skipped_test_is_a_line_of_the_list() {
        let list = env::temp_dir().join(format!("starfish-skipped-{}", std::process::id()));
        for test in ["a", "b"] {
            record(Some(list.clone().into()), &one_line("no\tprogram x\n  Install it."), test);
        }
        let recorded = std::fs::read_to_string(&list);
        let _ = std::fs::remove_file(&list);
        assert_eq!(recorded.expect("a list"), "no program x\ta\nno program x\tb\n");
    }

    #[test]
    #[should_panic(expected = "no agents")]
    fn other_mount_failures_do_not_skip_a_test() {
        cannot_mount("namespace: no agents");
    }
}
