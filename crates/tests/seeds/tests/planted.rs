//! The list of planted bugs follows the code.

use std::collections::BTreeMap;
use std::path::Path;

use seeds::planted::{Bug, bugs, plant};

#[test]
fn the_text_of_each_planted_bug_occurs_exactly_once() {
    let bugs = bugs().unwrap();
    assert!(bugs.len() >= 60, "{} bugs", bugs.len());
    let mut by_file: BTreeMap<&str, Vec<(usize, &Bug)>> = BTreeMap::new();
    for (number, bug) in (1..).zip(&bugs) {
        by_file.entry(&bug.file).or_default().push((number, bug));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let planted = |(file, bugs): (&&str, &Vec<_>)| {
        let text = std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        plant(&text, bugs)
    };
    let wrong: Vec<String> = by_file.iter().filter_map(|file| planted(file).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
