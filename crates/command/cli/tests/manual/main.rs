//! Tests of the manual and the README. Commands must behave as the pages show, and drawings and lists must match the
//! program.
//!
//! `commands.rs` documents the format of a page with commands. This command updates the generated pages:
//!
//!     STARFISH_MANUAL=write cargo test -p starfish --test manual

mod commands;
mod keys;
mod metrics;
mod page;
mod pictures;

use std::path::{Path, PathBuf};

/// Returns the folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Checks a generated page byte for byte, or writes the page if the variable requests that.
fn assert_page_is(path: &str, made: &str) {
    let file = root().join(path);
    if std::env::var_os("STARFISH_MANUAL").is_some_and(|wish| wish == "write") {
        std::fs::write(&file, made).expect("a page");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == made,
        "{path} is out of date: run STARFISH_MANUAL=write cargo test -p starfish --test manual"
    );
}
