//! Rules for the contents and names of source files.

use crate::{Text, Tree};

/// Crates whose code must not depend on the host computer.
const PURE: [&str; 14] = [
    "machine",
    "layout",
    "description",
    "disk",
    "fs-protocol",
    "fs-client",
    "fs-io-node",
    "fs",
    "request-log",
    "jobs",
    "sim",
    "experiment",
    "statistics",
    "promises",
];

/// Names that would make a run depend on the host, and their replacements.
const IMPURE: [(&str, &str); 13] = [
    ("std::time::Instant", "machine::Instant"),
    ("std::time::{", "machine::{Instant, Duration}"),
    ("SystemTime", "machine::Instant"),
    ("std::thread", "Machine::spawn"),
    ("std::net", "machine::Net"),
    ("std::fs", "machine::Disk"),
    ("std::env", "an argument"),
    ("std::process", "an error"),
    ("rand::", "a stream derived from the run's seed (crates/machines/sim/src/random.rs)"),
    ("getrandom", "a stream derived from the run's seed (crates/machines/sim/src/random.rs)"),
    ("HashMap", "BTreeMap, or a table with its own order"),
    ("HashSet", "BTreeSet"),
    ("compio", "the traits of the crate machine"),
];

/// The only file in these crates that may read the host's files: it loads descriptions.
const MAY_READ_FILES: &str = "crates/machines/description/src/load.rs";

/// Files with justified `unsafe` code; the reason is at the top of the file or next to the code.
const MAY_BE_UNSAFE: [&str; 19] = [
    "crates/command/interruption/src/signals.rs",
    "crates/interfaces/libpdiol/src/c.rs",
    "crates/interfaces/libpdiol/src/handle.rs",
    "crates/interfaces/libpdiol/src/lock_tests.rs",
    "crates/interfaces/libpdiol/src/primitives.rs",
    "crates/interfaces/libpdiol/tests/lock.rs",
    "crates/traces/libtlv/src/c.rs",
    "crates/machines/machine/src/lent.rs",
    "crates/interfaces/mpi-io/src/c.rs",
    "crates/interfaces/mpi-io/src/data_transfer.rs",
    "crates/interfaces/mpi-io/src/process.rs",
    "crates/interfaces/node/src/lease.rs",
    "crates/interfaces/python/src/fresh_bytes.rs",
    "crates/machines/real/src/disk/at_once.rs",
    "crates/machines/real/src/disk/mod.rs",
    "crates/machines/real/src/disk/write_back.rs",
    "crates/machines/sim/src/executor/waker.rs",
    "crates/traces/tlv/src/recording.rs",
    "crates/traces/tlv/src/ticks.rs",
];

/// Parts of file names that do not describe the contents.
const EMPTY_NAMES: [&str; 3] = ["util", "helper", "misc"];

/// Code that reads the contents of a payload.
const LOOKS: [&str; 4] = ["Piece::Bytes", "Piece::Phantom", "SharedBytes", ".into_vec()"];

fn complain(text: &Text, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", text.path)
}

fn sources_of<'a>(tree: &'a Tree, name: &str) -> impl Iterator<Item = &'a Text> + use<'a> {
    let folder = format!("/{name}/src/");
    tree.ending(".rs").filter(move |text| text.path.starts_with("crates/") && text.path.contains(&folder))
}

/// Complains about files without an introduction as their first line.
pub fn every_source_opens_with_an_introduction(tree: &Tree) -> Vec<String> {
    let introduced = |text: &&Text| {
        text.text.lines().next().is_some_and(|line| line.len() > "//! ".len() && line.starts_with("//! "))
    };
    let without = tree.ending(".rs").filter(|text| !introduced(text));
    without.map(|text| complain(text, 1, "begin with `//!` and the contents of the file")).collect()
}

/// Complains about file names that do not describe the contents.
pub fn file_names_describe_their_contents(tree: &Tree) -> Vec<String> {
    let empty = |text: &&Text| EMPTY_NAMES.iter().any(|name| text.stem().contains(name));
    tree.ending(".rs")
        .filter(empty)
        .map(|text| complain(text, 1, "name the file after its contents"))
        .collect()
}

/// Maximum number of characters in a line; code is slightly shorter (`rustfmt.toml`), but no tool formats comments.
const WIDTH: usize = 120;

/// Complains about comments beyond the maximum width.
pub fn comments_keep_within_the_width(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for text in tree.ending(".rs") {
        for (number, line) in (1..).zip(text.text.lines()) {
            let width = line.chars().count();
            if width > WIDTH && line.trim_start().starts_with("//") {
                complaints.push(complain(
                    text,
                    number,
                    &format!("the comment has {width} characters, more than {WIDTH}"),
                ));
            }
        }
    }
    complaints
}

/// Complains about files that are not part of their crate.
pub fn every_source_file_is_declared(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for text in tree.ending(".rs") {
        let Some((of_crate, within)) = text.path.split_once("/src/") else { continue };
        let module = match within.rsplit_once('/') {
            Some((folder, "mod.rs")) => folder.rsplit('/').next().unwrap_or(folder),
            _ => text.stem(),
        };
        let declaration = format!("mod {module};");
        let mut siblings =
            tree.ending(".rs").filter(|other| other.path.starts_with(&format!("{of_crate}/src/")));
        let declared =
            siblings.any(|other| other.code().any(|(_, line)| line.trim_end().ends_with(&declaration)));
        let is_root = matches!(within, "lib.rs" | "main.rs") || within.starts_with("bin/");
        if !declared && !is_root {
            complaints.push(complain(text, 1, "no `mod` declares it"));
        }
    }
    complaints
}

/// Complains about simulated code that depends on more than its description and its seed.
pub fn pure_crates_do_not_query_the_host(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for text in PURE.iter().flat_map(|name| sources_of(tree, name)) {
        for (number, line) in text.code() {
            // A grouped import would hide the imported modules from this rule.
            if line.trim_start().starts_with("use std::{") {
                complaints.push(complain(text, number, "import each module of std separately"));
            }
            for (word, instead) in IMPURE {
                let word_is_whole = line.match_indices(word).any(|(at, _)| begins_a_word(line, at));
                if word_is_whole && !(word == "std::fs" && text.path == MAY_READ_FILES) {
                    complaints.push(complain(text, number, &format!("no {word} here: use {instead}")));
                }
            }
        }
    }
    complaints
}

fn begins_a_word(line: &str, at: usize) -> bool {
    !line[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

/// Complains about code of the file system that reads payloads.
pub fn the_file_system_never_inspects_a_payload(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    let crates = ["fs", "fs-client", "fs-io-node", "fs-protocol"];
    for text in crates.iter().flat_map(|name| sources_of(tree, name)) {
        for (number, line) in text.code() {
            if let Some(look) = LOOKS.iter().find(|look| line.contains(**look)) {
                complaints.push(complain(text, number, &format!("{look} reads the contents of a payload")));
            }
        }
    }
    complaints
}

/// Complains about waits in layout arithmetic.
pub fn layout_never_waits(tree: &Tree) -> Vec<String> {
    let waits = |line: &str| line.contains("async ") || line.contains(".await");
    let lines = sources_of(tree, "layout")
        .flat_map(|text| text.code().map(move |(number, line)| (text, number, line)));
    lines
        .filter(|(.., line)| waits(line))
        .map(|(text, number, _)| complain(text, number, "layout code must not wait"))
        .collect()
}

/// Complains about `unsafe` in files without a justification.
pub fn unsafe_code_is_only_in_listed_files(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for text in tree.ending(".rs").filter(|text| !text.path.starts_with("crates/tests/tidy/")) {
        let is_unsafe = |line: &str| line.contains("unsafe ") || line.contains("#[allow(unsafe_code");
        let first = text.code().find(|(_, line)| is_unsafe(line));
        match first {
            Some((number, _)) if !MAY_BE_UNSAFE.contains(&text.path.as_str()) => {
                complaints.push(complain(
                    text,
                    number,
                    "unsafe code needs a comment with the reason, and an entry in the crate tidy",
                ));
            }
            None if MAY_BE_UNSAFE.contains(&text.path.as_str()) => {
                complaints.push(complain(
                    text,
                    1,
                    "the file has no unsafe code any more: remove it from the list in the crate tidy",
                ));
            }
            _ => {}
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_introduction_is_found() {
        let tree = Tree::of(&[("crates/x/src/a.rs", "//! A.\n"), ("crates/x/src/b.rs", "use a;\n")]);
        assert_eq!(every_source_opens_with_an_introduction(&tree).len(), 1);
    }

    #[test]
    fn meaningless_file_names_are_found() {
        let tree = Tree::of(&[("crates/x/src/utils.rs", ""), ("crates/x/src/seek.rs", "")]);
        assert_eq!(file_names_describe_their_contents(&tree).len(), 1);
    }

    #[test]
    fn a_too_long_comment_is_found() {
        let (fits, long) = (format!("//! {}\n", "x".repeat(116)), format!("    // {}\n", "ä".repeat(114)));
        let tree = Tree::of(&[("crates/x/src/a.rs", &fits), ("crates/x/src/b.rs", &long)]);
        let complaints = comments_keep_within_the_width(&tree);
        assert_eq!(complaints, ["crates/x/src/b.rs:1: the comment has 121 characters, more than 120"]);
    }

    #[test]
    fn an_undeclared_source_file_is_found() {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "mod a;\npub(crate) mod b;\n// mod c;\n"),
            ("crates/x/src/a.rs", ""),
            ("crates/x/src/b/mod.rs", ""),
            ("crates/x/src/c.rs", ""),
        ]);
        assert_eq!(every_source_file_is_declared(&tree), ["crates/x/src/c.rs:1: no `mod` declares it"]);
    }

    #[test]
    fn the_host_clock_is_found_in_code_and_not_in_comments() {
        let text = "//! x\n// std::time is for others\nuse std::time::Instant;\nuse std::{cell, fs};\nlet brand::x = 1;\n";
        let tree = Tree::of(&[("crates/files/fs/src/a.rs", text), ("crates/machines/real/src/a.rs", text)]);
        let complaints = pure_crates_do_not_query_the_host(&tree);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].starts_with("crates/files/fs/src/a.rs:3:"), "{complaints:?}");
    }

    #[test]
    fn an_inspection_of_a_payload_is_found() {
        let tree = Tree::of(&[("crates/files/fs/src/a.rs", "if let Piece::Bytes(b) = p {}\n")]);
        assert_eq!(the_file_system_never_inspects_a_payload(&tree).len(), 1);
    }

    #[test]
    fn an_async_function_in_layout_is_found() {
        let tree = Tree::of(&[("crates/files/layout/src/a.rs", "pub async fn a() {}\n")]);
        assert_eq!(layout_never_waits(&tree).len(), 1);
    }

    #[test]
    fn unlisted_unsafe_code_and_stale_entries_are_found() {
        let tree = Tree::of(&[
            ("crates/files/fs/src/a.rs", "unsafe { b() }\n"),
            ("crates/machines/sim/src/executor/waker.rs", "fn a() {}\n"),
        ]);
        assert_eq!(unsafe_code_is_only_in_listed_files(&tree).len(), 2);
    }
}
