//! Names of types: one name, one meaning.

use std::collections::BTreeMap;

use crate::Tree;

/// Names that several types may have, and why.
const SHARED: [(&str, &[&str]); 5] = [
    (
        "each crate, command or module has its own, and nobody means another's",
        &[
            "Arguments",
            "Error",
            "Failure",
            "Kind",
            "Limits",
            "Method",
            "Options",
            "Outcome",
            "Progress",
            "Record",
            "Report",
            "Request",
            "Result",
            "Settings",
            "Statistics",
            "State",
        ],
    ),
    ("the seam says what there is, and each machine has one", &["Disk", "Metadata", "Net"]),
    ("the same thing, seen from another door", &["File", "Handle", "Session", "Agent", "Agents", "Tree"]),
    ("what a program declares, and what a trace has of it", &["Argument", "Counter"]),
    (
        "what is described, and what is made of the description",
        &["Disks", "Network", "Torus", "Layout", "Space"],
    ),
];

/// What declares a type.
const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "union "];

/// No two types that other files can see have the same name, but for those that are better off with it.
pub fn a_name_of_a_type_has_one_meaning(tree: &Tree) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for text in tree.ending(".rs").filter(|text| text.path.contains("/src/")) {
        for (number, line) in text.product_lines() {
            if let Some(name) = declared(line) {
                places.entry(name).or_default().push(format!("{}:{number}", text.path));
            }
        }
    }
    let is_shared = |name: &str| SHARED.iter().any(|(_, names)| names.contains(&name));
    let several = places.iter().filter(|(name, places)| places.len() > 1 && !is_shared(name));
    let mut complaints: Vec<String> = several
        .map(|(name, places)| format!("{name} is the name of several types: {}", places.join(", ")))
        .collect();
    if tree.get("crates/tidy/src/names.rs").is_some() {
        let of_one = |name: &&str| places.get(name).is_none_or(|places| places.len() < 2);
        let stale = SHARED.iter().flat_map(|(_, names)| names.iter().copied()).filter(of_one);
        complaints.extend(
            stale.map(|name| format!("{name} is shared by nobody: take it off the list in the crate tidy")),
        );
    }
    complaints
}

/// The name of the type that a line declares for other files to see.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix("(crate)").unwrap_or(rest).strip_prefix(' ')?;
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_types_of_one_name_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", "pub struct One<T>(T);\n    pub(crate) enum Two {}\nstruct Three;\n"),
            ("crates/b/src/y.rs", "pub(crate) type One = u8;\npub struct Three;\npub(super) struct Two;\n"),
            ("crates/b/tests/z.rs", "pub struct One;\n"),
            ("crates/b/src/z.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    pub struct One;\n}\n"),
        ]);
        let complaints = a_name_of_a_type_has_one_meaning(&tree);
        assert_eq!(
            complaints,
            ["One is the name of several types: crates/a/src/x.rs:1, crates/b/src/y.rs:1"]
        );
    }
}
