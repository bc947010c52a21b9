//! Names of types: one name, one meaning.

use std::collections::BTreeMap;

use crate::Tree;

/// Names that several types may have, with the reason.
const SHARED: [(&str, &[&str]); 5] = [
    (
        "each crate, command or module has a separate one, and they cannot be confused",
        &[
            "Arguments",
            "Error",
            "Failure",
            "Fault",
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
    ("a trait of the crate machine, and its implementations in the machines", &["Disk", "Metadata", "Net"]),
    ("the same concept in several interfaces", &["File", "Handle", "Session", "Agent", "Agents", "Tree"]),
    ("a declaration in a program, and its record in a trace", &["Argument", "Counter"]),
    ("a description, and the object built from it", &["Disks", "Network", "Torus", "Layout", "Space"]),
];

/// Keywords that declare a type.
const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "union "];

/// Declaration of a type.
struct Declaration {
    /// Directory of the crate.
    home: String,
    place: String,
    /// True if it is visible in the whole crate or beyond; false if only in a module.
    is_wide: bool,
}

/// Complains about types with the same name that other files can see, except the shared names. A type visible only in
/// its parent module may have the name of a type in another crate.
pub fn each_type_name_has_one_meaning(tree: &Tree) -> Vec<String> {
    let mut types: BTreeMap<&str, Vec<Declaration>> = BTreeMap::new();
    for text in tree.ending(".rs") {
        let Some((home, _)) = text.path.split_once("/src/") else { continue };
        for (number, line) in text.product_lines() {
            if let Some((name, is_wide)) = declared(line) {
                let place = format!("{}:{number}", text.path);
                types.entry(name).or_default().push(Declaration { home: home.to_owned(), place, is_wide });
            }
        }
    }
    let is_shared = |name: &str| SHARED.iter().any(|(_, names)| names.contains(&name));
    let mut complaints = Vec::new();
    for (name, types) in types.iter().filter(|(name, _)| !is_shared(name)) {
        for places in alike(types) {
            complaints.push(format!("{name} is the name of several types: {}", places.join(", ")));
        }
    }
    if tree.get("crates/tests/tidy/src/names.rs").is_some() {
        let of_one = |name: &&str| types.get(name).is_none_or(|types| alike(types).is_empty());
        let stale = SHARED.iter().flat_map(|(_, names)| names.iter().copied()).filter(of_one);
        complaints.extend(stale.map(|name| {
            format!("no two types share the name {name}: remove it from the list in the crate tidy")
        }));
    }
    complaints
}

/// Returns the places of types that must not share their name: the types visible in whole crates, and the types of the
/// same crate.
fn alike(types: &[Declaration]) -> Vec<Vec<&str>> {
    let wide: Vec<&str> = types.iter().filter(|one| one.is_wide).map(|one| &*one.place).collect();
    if wide.len() > 1 {
        return vec![wide];
    }
    let mut by_crate: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in types {
        by_crate.entry(&one.home).or_default().push(&one.place);
    }
    by_crate.into_values().filter(|places| places.len() > 1).collect()
}

/// Returns the name of the type that a line declares for other files, and true if the whole crate can see it.
fn declared(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let (whose, rest) = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?,
        None => ("crate", rest),
    };
    let rest = rest.strip_prefix(' ')?;
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    Some((name, whose == "crate"))
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
            ("crates/c/src/v.rs", "pub(super) struct Three;\npub(super) enum Four {}\n"),
            ("crates/c/src/w.rs", "pub(crate) struct Four;\n"),
        ]);
        let complaints = each_type_name_has_one_meaning(&tree);
        assert_eq!(
            complaints,
            [
                "Four is the name of several types: crates/c/src/v.rs:2, crates/c/src/w.rs:1",
                "One is the name of several types: crates/a/src/x.rs:1, crates/b/src/y.rs:1",
            ]
        );
    }
}
