//! Gives the program the hash of the sources that decide what a simulation comes to, as `SIMULATOR`.
//!
//! A result belongs to the simulator that computed it. Its version alone would not tell, since most changes do
//! not change the version; the hash of the executable would, but it differs between the command line and the
//! Python package, and between two builds of the same sources. Comments and tests do not count.

#[path = "src/decisive.rs"]
mod decisive;

use std::env::var;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(var("CARGO_MANIFEST_DIR").expect("cargo says where we are")).join("../../..");
    let mut hasher = blake3::Hasher::new();
    for name in decisive::SOURCES {
        let source = root.join(name);
        println!("cargo::rerun-if-changed={}", source.display());
        let decides = |file: &PathBuf| file.strip_prefix(&root).is_ok_and(decisive::decides);
        for file in files(&source).iter().filter(|file| decides(file)) {
            // Absent where a package brings its sources without it.
            let Ok(text) = read_to_string(file) else { continue };
            for line in decisive::decisive_lines(&text) {
                hasher.update(line.as_bytes()).update(b"\n");
            }
            // What ends one file does not begin the next.
            hasher.update(b"\0");
        }
    }
    println!("cargo::rustc-env=SIMULATOR={}", &hasher.finalize().to_hex()[..16]);
}

/// The files at or below `path`, in an order that does not depend on the file system.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = read_dir(path) else { return vec![path.to_owned()] };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path)).collect()
}
