//! Rule that every promise is checked on all machines and in all configurations.

use crate::{Text, Tree};

/// Directory of the file system's promises, and file with their list.
const PROMISES: &str = "crates/tests/promises/src/";
const LIST: &str = "crates/tests/promises/src/lib.rs";

/// Files that check the list on each machine, and the code that does so in both configurations.
const CHECKED: [(&str, &[&str]); 2] = [
    ("crates/tests/promises/tests/simulated.rs", &["check_all("]),
    (
        "crates/tests/promises/tests/real.rs",
        &["promises::for_all_promises!(each);", "for base in Configuration::ALL {"],
    ),
];

/// Code that checks each promise in both configurations in a single call.
const BOTH: &str = "$($promise(testbed, report); $promise(testbed, agent);)*";

/// Promises that are not on the list, because they need a special machine.
const APART: [&str; 4] = [
    // Requires disks that take time.
    "demand_is_served_before_background",
    "reads_delayed_by_writes_are_reported",
    // Requires a machine that contains defects.
    "a_defect_fails_only_one_request",
    // Takes a number of requests suited to the machine.
    "random_requests_are_all_answered",
];

/// Complains about promises that are not checked on both machines and in both configurations.
pub fn every_promise_is_checked_in_both_configurations(tree: &Tree) -> Vec<String> {
    let Some(list) = tree.get(LIST) else { return vec![format!("{LIST}: there is no list of promises")] };
    let listed: Vec<&str> = list.text.lines().filter_map(|line| line.trim().strip_suffix(',')).collect();
    let mut defects = Vec::new();
    for text in tree.ending(".rs").filter(|text| text.path.starts_with(PROMISES)) {
        let left_out = promises_of(text).filter(|name| !listed.contains(name) && !APART.contains(name));
        defects.extend(left_out.map(|name| format!("{}: {name} is not on the list in {LIST}", text.path)));
    }
    if !list.text.contains(BOTH) {
        defects.push(format!("{LIST}: check_all does not check each promise in both configurations"));
    }
    for (path, signs) in CHECKED {
        let text = tree.get(path).map_or("", |text| &text.text);
        let missing = signs.iter().filter(|sign| !text.contains(**sign));
        defects.extend(missing.map(|sign| format!("{path}: `{sign}` is missing: are all promises checked?")));
    }
    defects
}

/// Returns the functions with the signature of a promise: a testbed and a base.
fn promises_of(text: &Text) -> impl Iterator<Item = &str> {
    text.text.split("\npub fn ").skip(1).filter_map(|rest| {
        let head = &rest[..rest.find('{')?];
        let is_promise = head.contains("testbed: &impl Testbed") && head.contains("base: Base");
        head.split('(').next().filter(|_| is_promise)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchecked_promise_is_found() {
        let list = format!("one,\n{BOTH}\npub fn one(testbed: &impl Testbed, base: Base) {{}}\n");
        let other = "\npub fn two(\n    testbed: &impl Testbed,\n    base: Base,\n) {}\npub fn three() {}\n";
        let mut texts: Vec<(&str, &str)> = vec![(LIST, &list), ("crates/tests/promises/src/other.rs", other)];
        let signs: Vec<String> = CHECKED.iter().map(|(_, signs)| signs.join("\n")).collect();
        texts.extend(CHECKED.iter().zip(&signs).map(|((path, _), text)| (*path, text.as_str())));
        let left_out = format!("crates/tests/promises/src/other.rs: two is not on the list in {LIST}");
        assert_eq!(every_promise_is_checked_in_both_configurations(&Tree::of(&texts)), [left_out]);
        texts[3].1 = "promises::for_all_promises!(each);";
        assert_eq!(every_promise_is_checked_in_both_configurations(&Tree::of(&texts)).len(), 2);
    }
}
