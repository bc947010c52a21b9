//! Computes a hash of the sources that determine simulation results, and passes it to the program as `SIMULATOR`.
//!
//! A result belongs to the simulator that computed it. The version number does not identify the simulator, because most
//! changes leave it unchanged. A hash of the executable does not either: it differs between the command line and the
//! Python package, and between two builds of the same sources. Comments and tests do not affect this hash.

#[path = "src/simulator_sources.rs"]
mod simulator_sources;

use std::env::var;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(var("CARGO_MANIFEST_DIR").expect("cargo says where we are")).join("../../..");
    let mut hasher = blake3::Hasher::new();
    for name in simulator_sources::SOURCES {
        let source = root.join(name);
        println!("cargo::rerun-if-changed={}", source.display());
        let decides = |file: &PathBuf| file.strip_prefix(&root).is_ok_and(simulator_sources::decides);
        for file in files(&source).iter().filter(|file| decides(file)) {
            // The file is missing if a package contains its sources without this file.
            let Ok(text) = read_to_string(file) else { continue };
            for line in simulator_sources::decisive_lines(&text) {
                hasher.update(line.as_bytes()).update(b"\n");
            }
            // Separate the files, so that the hash changes when lines are moved from one file to the next.
            hasher.update(b"\0");
        }
    }
    println!("cargo::rustc-env=SIMULATOR={}", &hasher.finalize().to_hex()[..16]);
}

/// Returns the files at or below `path`, in an order that does not depend on the file system.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = read_dir(path) else { return vec![path.to_owned()] };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path)).collect()
}
