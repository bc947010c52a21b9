//! Checks that the pictures of the access patterns in the manual are those that the program draws.

use std::process::Command;

use layout::Pattern;

use crate::{assert_page_is, root};

/// Returns the names of the patterns that read. Each pattern that writes has the same picture.
fn drawn() -> impl Iterator<Item = &'static str> {
    Pattern::NAMES.into_iter().filter(|name| name.starts_with('r'))
}

#[test]
fn pictures_match_the_drawings_of_the_program() {
    for name in drawn() {
        let draw =
            Command::new(env!("CARGO_BIN_EXE_starfish")).args(["patterns", name, "--format", "svg"]).output();
        let drawing = String::from_utf8(draw.expect("the program").stdout).expect("text");
        assert_page_is(&format!("docs/manual/patterns/{name}.svg"), &drawing);
    }
}

#[test]
fn every_picture_is_on_the_page() {
    let page = std::fs::read_to_string(root().join("docs/manual/patterns.md")).expect("a page");
    for name in drawn() {
        assert!(page.contains(&format!("(patterns/{name}.svg)")), "{name}");
    }
}
