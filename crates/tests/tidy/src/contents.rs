//! Tables of contents: lists of modules in the header comment of a module.

use std::collections::BTreeSet;

use crate::{Text, Tree};

/// Complains about a header comment that lists some modules of the file but not all, except modules for tests.
pub fn every_table_of_contents_is_complete(tree: &Tree) -> Vec<String> {
    let sources = tree.ending(".rs").filter(|text| text.path.contains("/src/"));
    let complaint = |text: &Text| {
        let listed = listed(text);
        let (there, missing): (Vec<_>, Vec<_>) = modules(text).partition(|module| listed.contains(module));
        let is_list = !there.is_empty() && !missing.is_empty();
        is_list.then(|| format!("{}: the list in its header comment lacks {}", text.path, missing.join(", ")))
    };
    sources.filter_map(complaint).collect()
}

/// Returns the modules that a file declares in separate files.
fn modules(text: &Text) -> impl Iterator<Item = &str> {
    let before = std::iter::once("").chain(text.text.lines());
    text.text.lines().zip(before).filter_map(|(line, before)| {
        let rest = line.strip_prefix("pub").unwrap_or(line).trim_start();
        let rest =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(rest, |(_, rest)| rest);
        let module = rest.strip_prefix("mod ")?.strip_suffix(';')?;
        (before != "#[cfg(test)]").then_some(module)
    })
}

/// Returns the names in backquotes in the items of lists in the header comment: files, folders or modules.
fn listed(text: &Text) -> BTreeSet<&str> {
    let mut is_item = false;
    let head = text.text.lines().map_while(|line| line.strip_prefix("//!"));
    let items = head.filter(|line| {
        is_item = line.starts_with(" - ") || (is_item && line.starts_with("   "));
        is_item
    });
    let quoted = items.flat_map(|line| line.split('`').skip(1).step_by(2));
    let steps = quoted.flat_map(|quoted| quoted.split(['/', ':']));
    steps.map(|step| step.strip_suffix(".rs").unwrap_or(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_missing_from_a_list_are_named() {
        let modules = "mod a;\npub mod b;\npub(crate) mod c;\n#[cfg(test)]\nmod d;\n";
        let complaints = |head: &str| {
            let text = format!("{head}\n{modules}");
            every_table_of_contents_is_complete(&Tree::of(&[("crates/x/src/lib.rs", &text)]))
        };
        let lacking = "crates/x/src/lib.rs: the list in its header comment lacks";
        assert_eq!(complaints("//! All.\n//!\n//! - `a.rs`: one"), [format!("{lacking} b, c")]);
        assert_eq!(
            complaints("//! - `a.rs`: one; [`b`]:\n//!   another\n//!\n//! `c.rs`"),
            [format!("{lacking} c")]
        );
        assert_eq!(complaints("//! - `x/a.rs`: one;\n//!   [`b::Two`]\n//! - `c/`: the rest"), [""; 0]);
        assert_eq!(complaints("//! What `a.rs` does is told there."), [""; 0]);
    }
}
