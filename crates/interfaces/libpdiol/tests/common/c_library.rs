//! What the tests of the C libraries have in common: how programs are compiled, and where a library is found.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Options of compilers, with which a program ends at its first mistake with memory.
pub(crate) const SANITIZERS: [&str; 4] =
    ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

/// The workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// A directory with the libraries of this name, called as they are when they are installed.
pub(crate) fn installed(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let built = test.ancestors().find(|directory| directory.join(format!("liblib{name}.so")).exists());
    let built = built.expect("Cargo builds all kinds of a library for its tests");
    let directory = built.join(format!("lib{name}"));
    fs::create_dir_all(&directory).expect("a directory");
    for (from, to) in [("so", "so"), ("so", "so.0"), ("a", "a")] {
        let link = directory.join(format!("lib{name}.{to}"));
        // It may be there from the last time.
        let _ = symlink(built.join(format!("liblib{name}.{from}")), link);
    }
    directory
}

/// The sanitizers for a program of `tests/c` that checks itself: all of them, unless it forks.
///
/// The sanitizer of addresses has an allocator of its own, whose locks another thread may hold at the moment of a fork
/// (LLVM mended it in version 18, GCC 12 has it): then the child waits for ever as soon as it allocates.
pub(crate) fn sanitizers(program: &str) -> &'static [&'static str] {
    const WITHOUT_ADDRESSES: [&str; 3] = [SANITIZERS[0], "-fsanitize=undefined", SANITIZERS[2]];
    if program.starts_with("fork") { &WITHOUT_ADDRESSES } else { &SANITIZERS }
}

/// Runs a command, which is to succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}
