//! Rules for documents: decision records are listed, complete and name all fitted numbers; links and named sources
//! exist.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::{Text, Tree};

const RECORDS: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";
const CALIBRATION: &str = "docs/adr/0009-calibration.md";
const PARTS: [&str; 5] = ["Status: ", "## Context", "## Decision", "## Alternatives", "## Consequences"];

fn records(tree: &Tree) -> impl Iterator<Item = &Text> {
    tree.ending(".md").filter(|text| text.path.starts_with(RECORDS) && text.path != INDEX)
}

/// Complains about decision records that the list does not link.
pub fn every_decision_is_listed(tree: &Tree) -> Vec<String> {
    let index = tree.get(INDEX).map_or("", |text| &text.text);
    let name = |text: &Text| text.path[RECORDS.len()..].to_owned();
    let missing = records(tree).map(name).filter(|name| !index.contains(&format!("({name})")));
    missing.map(|name| format!("{INDEX}: {name} is not in the list")).collect()
}

/// Complains about decision records without their number, title or parts.
pub fn every_decision_is_complete(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for Text { path, text } in records(tree) {
        let number = path[RECORDS.len()..].split('-').next().and_then(|number| number.parse::<u32>().ok());
        let title = number.map(|number| format!("# {number}. "));
        if !title.is_some_and(|title| text.starts_with(&title)) {
            complaints.push(format!("{path}: a record NNNN-words.md must begin with `# N. Title`"));
        }
        let missing = PARTS.iter().filter(|part| !text.lines().any(|line| line.starts_with(**part)));
        complaints.extend(missing.map(|part| format!("{path}: no `{part}`")));
    }
    complaints
}

/// Complains about fitted numbers that the record of calibrations does not name.
pub fn every_calibrated_number_is_on_record(tree: &Tree) -> Vec<String> {
    let record = tree.get(CALIBRATION).map_or("", |text| &text.text);
    let mut complaints = Vec::new();
    for Text { path, text } in tree.ending(".toml").filter(|text| text.path.starts_with("machines/")) {
        let table: Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut fitted = Vec::new();
        collect_calibrated(&table, "", &mut fitted);
        let missing = fitted.iter().filter(|name| !record.contains(&format!("`{name}`")));
        complaints.extend(missing.map(|name| format!("{CALIBRATION}: does not name {name} of {path}")));
    }
    complaints
}

/// Collects the names of calibrated entries in `table`, itself called `name`.
fn collect_calibrated(table: &Table, name: &str, found: &mut Vec<String>) {
    if table.contains_key("calibrated") {
        found.push(name.to_owned());
    }
    for (key, value) in table {
        if let Value::Table(inner) = value {
            // An entry "cycles..." has the name of its table, the kind of work.
            let name = if key.starts_with("cycles") { name } else { key };
            collect_calibrated(inner, name, found);
        }
    }
}

/// Complains about links and paths in documents that refer to missing files of the project.
pub fn every_link_has_a_target(tree: &Tree, root: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for text in tree.ending(".md") {
        let folder = Path::new(&text.path).parent().unwrap_or(Path::new(""));
        let linked = links(&text.text).map(|link| folder.join(link));
        let named = paths(&text.text).map(PathBuf::from);
        for path in linked.chain(named).filter(|path| !root.join(path).exists()) {
            complaints.push(format!("{}: {} does not exist", text.path, path.display()));
        }
    }
    complaints
}

/// Complains about missing source files that prose or a comment names by the end of their path.
pub fn every_named_source_exists(tree: &Tree) -> Vec<String> {
    let sources: Vec<&str> = tree.ending(".rs").map(|text| &*text.path).collect();
    let is_there = |name: &str| {
        let ends_so = |path: &&str| {
            path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
        };
        sources.iter().any(ends_so)
    };
    let mut complaints = Vec::new();
    for text in tree.ending(".md").chain(tree.ending(".rs")) {
        let is_prose = |line: &&str| text.path.ends_with(".md") || line.trim_start().starts_with("//");
        let missing =
            text.text.lines().filter(is_prose).flat_map(sources_named).filter(|name| !is_there(name));
        complaints.extend(missing.map(|name| format!("{}: {name} does not exist", text.path)));
    }
    complaints
}

/// Returns texts in backquotes that look like a source file.
fn sources_named(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|name| {
        name.len() > ".rs".len() && name.ends_with(".rs") && !name.contains(['*', ' ', '<', '{'])
    })
}

/// Returns the targets of Markdown links that are files of the project.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    local.map(|target| target.split('#').next().unwrap_or(target))
}

/// Returns texts in backquotes that look like the path of a file or folder of ours.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let ours = |path: &&str| {
        ["crates/", "docs/", "experiments/", "machines/", "benches/", ".ci/"]
            .iter()
            .any(|top| path.starts_with(top))
    };
    quoted.filter(ours).filter(|path| !path.contains(['*', ' ', '<', '{']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_and_incomplete_decision_records_are_found() {
        let whole = "# 2. Two\n\nStatus: accepted\n\n## Context\n\n## Decision\n\n## Alternatives\n\n## Consequences\n";
        let tree = Tree::of(&[
            (INDEX, "- [One](0001-one.md)\n"),
            ("docs/adr/0001-one.md", "# 1. One\n"),
            ("docs/adr/0002-two.md", whole),
        ]);
        assert_eq!(every_decision_is_listed(&tree), [format!("{INDEX}: 0002-two.md is not in the list")]);
        assert_eq!(every_decision_is_complete(&tree).len(), PARTS.len());
    }

    #[test]
    fn an_unrecorded_calibrated_number_is_named() {
        let machine = "[cost]\na = { cycles = { value = 1, calibrated = 'x' } }\nb = { value = 1 }\n";
        let tree = Tree::of(&[("machines/m.toml", machine), (CALIBRATION, "`b`")]);
        let complaints = every_calibrated_number_is_on_record(&tree);
        assert_eq!(complaints, [format!("{CALIBRATION}: does not name a of machines/m.toml")]);
    }

    #[test]
    fn a_named_source_that_does_not_exist_is_found() {
        let tree = Tree::of(&[
            (
                "docs/a.md",
                "`client/file.rs` and `file.rs` are there, `ile.rs` and `*.rs` are no names or no files",
            ),
            ("crates/x/src/client/file.rs", "//! See `gone.rs`.\nlet name = \"`none.rs`\";"),
        ]);
        let complaints = every_named_source_exists(&tree);
        assert_eq!(
            complaints,
            ["docs/a.md: ile.rs does not exist", "crates/x/src/client/file.rs: gone.rs does not exist"]
        );
    }

    #[test]
    fn links_and_paths_are_found() {
        let text = "See [a](docs/a.md#top) and [b](https://b.example), `crates/x/src` and `crates/*/src`.";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md"]);
        assert_eq!(paths(text).collect::<Vec<_>>(), ["crates/x/src"]);
    }
}
