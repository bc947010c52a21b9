//! The manual and the README: their commands do what the pages show, and what is drawn or listed there is what the
//! program has.
//!
//! How a page is written so that it can be tested is told in `commands.rs`. Pages that are made from the code are made
//! anew by
//!
//!     STARFISH_MANUAL=write cargo test -p starfish --test manual

mod commands;
mod keys;
mod metrics;
mod page;
mod pictures;

use std::path::{Path, PathBuf};

/// The folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A page of which every byte is made from the code: it is as it is to be, or is written if that is asked for.
fn assert_page_is(path: &str, made: &str) {
    let file = root().join(path);
    if std::env::var_os("STARFISH_MANUAL").is_some_and(|wish| wish == "write") {
        std::fs::write(&file, made).expect("a page");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == made,
        "{path} is not what the code gives: STARFISH_MANUAL=write cargo test -p starfish --test manual writes it"
    );
}
