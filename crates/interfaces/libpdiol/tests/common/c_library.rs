//! Common helpers for tests of the C libraries: compiling programs and finding a library.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Compiler options by which a program ends at its first memory error.
pub(crate) const SANITIZERS: [&str; 4] =
    ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

/// Returns the root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// Returns a directory with the libraries of this name, under their installed names.
pub(crate) fn installed(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let built = test.ancestors().find(|directory| directory.join(format!("liblib{name}.so")).exists());
    let built = built.expect("Cargo builds all kinds of a library for its tests");
    let directory = built.join(format!("lib{name}"));
    fs::create_dir_all(&directory).expect("a directory");
    for (from, to) in [("so", "so"), ("so", "so.0"), ("a", "a")] {
        let link = directory.join(format!("lib{name}.{to}"));
        // The link may exist from a previous run.
        let _ = symlink(built.join(format!("liblib{name}.{from}")), link);
    }
    directory
}

/// Returns the sanitizers for a program of `tests/c` that checks itself: all of them, unless it forks.
///
/// The address sanitizer has its own allocator, and another thread may hold its locks at the moment of a fork. Then the
/// child blocks for ever at its first allocation. LLVM 18 fixed this; GCC 12 has not.
pub(crate) fn sanitizers(program: &str) -> &'static [&'static str] {
    const WITHOUT_ADDRESSES: [&str; 3] = [SANITIZERS[0], "-fsanitize=undefined", SANITIZERS[2]];
    if program.starts_with("fork") { &WITHOUT_ADDRESSES } else { &SANITIZERS }
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}
