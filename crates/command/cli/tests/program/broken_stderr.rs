//! Programs whose standard error cannot be written: their work and exit code are unaffected.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::Stdio;

use crate::common::{starfish, wait};

/// Returns the exit code of a command whose standard error is on a full disk.
fn code_without_stderr(arguments: &[&str], directory: &Path) -> Option<i32> {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a device of Linux");
    let mut command = starfish(arguments);
    command.current_dir(directory).stderr(full);
    command.stdout(File::create(directory.join("output")).expect("room"));
    wait(&mut command.stdin(Stdio::null()).spawn().expect("the program")).code()
}

#[test]
fn a_full_standard_error_changes_neither_output_nor_exit_code() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let code = |arguments: &[&str]| code_without_stderr(arguments, directory.path());
    let text = |name: &str| fs::read_to_string(directory.path().join(name)).expect("text");
    // The command reports that the trace was cut.
    let small = ["simulate", "--pattern", "rb", "--method", "traditional", "--trials", "1"];
    assert_eq!(code(&[&small[..], &["--trace", "cut.tlv", "--trace-limit", "10"]].concat()), Some(0));
    assert!(text("output").contains("rb"), "{}", text("output"));
    // A message is also due for a cut trace that is read.
    assert_eq!(code(&["view", "cut.tlv", "--html", "cut.html"]), Some(0));
    fs::write(directory.path().join("broken.tlv"), "no trace").expect("room");
    assert_eq!(code(&["trace", "summary", "broken.tlv"]), Some(1));
    assert_eq!(code(&[&small[..], &["--record-cp", "0"]].concat()), Some(2));
    assert_eq!(code(&["simulate", "--pattern", "zz"]), Some(2));
}
