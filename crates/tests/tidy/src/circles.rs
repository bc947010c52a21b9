//! Cycles of dependencies among the files of a crate: files of a cycle can be understood and tested only together.
//!
//! The rule compares sibling modules; a file and the folder of the same name are one module. A module depends on
//! another if a `use`, or a path that begins with `crate`, `super` or `self`, refers to the other module; re-exported
//! names refer to their origin. A module and its descendants are one unit, so that a parent and its children may use
//! each other. The rule ignores tests, and does not see macro output, names in strings, and modules within a file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{Text, Tree};

/// Path of a module from the root of its crate.
type Path = Vec<String>;

/// File of a crate as a module.
struct Module<'a> {
    text: &'a Text,
    /// Names from other modules that the module uses, as paths from the root.
    uses: Vec<Path>,
    /// Imported names, and their paths.
    brought_in: BTreeMap<String, Path>,
}

/// Complains about files of a crate that use each other in a cycle.
pub fn no_files_use_each_other_in_circles(tree: &Tree) -> Vec<String> {
    let folders: BTreeSet<&str> =
        tree.ending(".rs").filter_map(|text| Some(text.path.split_once("/src/")?.0)).collect();
    let complaints = |folder: &&str| {
        let folder = (*folder).to_owned();
        let circles = circles_of(tree, &folder).into_iter();
        circles
            .map(|(circle, why)| format!("{folder}: {circle} depend on each other in a cycle: {why}"))
            .collect::<Vec<_>>()
    };
    folders.iter().flat_map(complaints).collect()
}

/// Returns the cycles of a crate: their members, and the uses among them.
fn circles_of(tree: &Tree, folder: &str) -> Vec<(String, String)> {
    let modules = modules_of(tree, folder);
    // For each module, the uses among its children, with the file of the first use.
    let mut levels: BTreeMap<&[String], BTreeMap<&str, BTreeMap<String, &str>>> = BTreeMap::new();
    for (from, module) in &modules {
        for path in &module.uses {
            let to = resolve(&modules, path, 0);
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if common < from.len() && common < to.len() {
                let users = levels.entry(&from[..common]).or_default().entry(&from[common]).or_default();
                users.entry(to[common].clone()).or_insert(&module.text.path);
            }
        }
    }
    levels.into_values().flat_map(|uses| circles_among(&uses)).collect()
}

/// Returns a shortest cycle through each module that is in any, each cycle once.
fn circles_among(uses: &BTreeMap<&str, BTreeMap<String, &str>>) -> Vec<(String, String)> {
    let mut circles: BTreeMap<BTreeSet<&str>, (String, String)> = BTreeMap::new();
    for &start in uses.keys() {
        let Some(around) = way_back(uses, start) else { continue };
        let steps = around.iter().zip(around.iter().cycle().skip(1));
        let why = steps.map(|(from, to)| format!("{to} in {}", uses[from][*to])).collect::<Vec<_>>();
        let members: BTreeSet<&str> = around.into_iter().collect();
        let name = members.iter().copied().collect::<Vec<_>>().join(", ");
        circles.entry(members).or_insert((name, format!("it uses {}", why.join(", "))));
    }
    circles.into_values().collect()
}

/// Returns the shortest path from a module back to itself, without the repeated end.
fn way_back<'a>(uses: &'a BTreeMap<&str, BTreeMap<String, &str>>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in uses.get(way[way.len() - 1]).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push_back(way.iter().copied().chain([next.as_str()]).collect());
            }
        }
    }
    None
}

/// Returns the module that a path refers to, or that contains the item of the path.
fn resolve(modules: &BTreeMap<Path, Module>, path: &[String], depth: u32) -> Path {
    let mut at = Path::new();
    for (index, name) in path.iter().enumerate() {
        let child: Path = at.iter().chain([name]).cloned().collect();
        if modules.contains_key(&child) {
            at = child;
            continue;
        }
        let brought = modules.get(&at).and_then(|module| module.brought_in.get(name));
        // Two modules may import each other's names by `*`, so the depth is limited.
        return match brought {
            Some(target) if depth < 10 => {
                let target: Path = target.iter().chain(&path[index + 1..]).cloned().collect();
                resolve(modules, &target, depth + 1)
            }
            _ => at,
        };
    }
    at
}

/// Returns the modules of a crate by their paths, without those for tests.
fn modules_of<'a>(tree: &'a Tree, folder: &str) -> BTreeMap<Path, Module<'a>> {
    let start = format!("{folder}/src/");
    let is_library = tree.get(&format!("{start}lib.rs")).is_some();
    let mut texts: BTreeMap<Path, &Text> = BTreeMap::new();
    for text in tree.ending(".rs") {
        let Some(within) = text.path.strip_prefix(&start) else { continue };
        let name = within.trim_end_matches(".rs").trim_end_matches("/mod");
        match name {
            "main" if is_library => {}
            "lib" | "main" => _ = texts.insert(Path::new(), text),
            // Each is a separate crate.
            _ if name.starts_with("bin/") => {}
            _ => _ = texts.insert(name.split('/').map(str::to_owned).collect(), text),
        }
    }
    let paths: BTreeSet<Path> = texts.keys().cloned().collect();
    let for_tests: BTreeSet<Path> =
        texts.iter().flat_map(|(path, text)| modules_for_tests(path, text)).collect();
    texts.retain(|path, _| !(0..=path.len()).any(|end| for_tests.contains(&path[..end])));
    texts.into_iter().map(|(path, text)| (path.clone(), module(&paths, &path, text))).collect()
}

fn modules_for_tests(path: &Path, text: &Text) -> Vec<Path> {
    let lines: Vec<&str> = text.text.lines().map(str::trim).collect();
    let marked = lines.windows(2).filter(|two| two[0] == "#[cfg(test)]");
    let names = marked.filter_map(|two| two[1].strip_prefix("mod ")?.strip_suffix(';'));
    names.map(|name| path.iter().cloned().chain([name.to_owned()]).collect()).collect()
}

fn module<'a>(modules: &BTreeSet<Path>, path: &Path, text: &'a Text) -> Module<'a> {
    let tokens = tokens(&text.product_code());
    let mut module = Module { text, uses: Vec::new(), brought_in: BTreeMap::new() };
    let absolute = |written: &[String]| absolute(modules, path, written);
    let mut at = 0;
    while at < tokens.len() {
        // In a type, `use<..>` lists captured parameters.
        if tokens[at] == "use" && tokens.get(at + 1).is_some_and(|token| token != "<") {
            let mut found = Vec::new();
            at = use_tree(&tokens, at + 1, Path::new(), &mut found);
            for (name, written) in found {
                if let Some(path) = absolute(&written) {
                    module.brought_in.insert(name, path.clone());
                    module.uses.push(path);
                }
            }
        } else if ["crate", "super", "self"].contains(&tokens[at].as_str()) {
            let (end, written) = plain_path(&tokens, at);
            module.uses.extend(absolute(&written));
            at = end;
        } else {
            at += 1;
        }
    }
    module
}

/// Returns the path from the root of the crate, if a written path leads into the crate.
fn absolute(modules: &BTreeSet<Path>, path: &Path, written: &[String]) -> Option<Path> {
    let child = |name: &String| path.iter().chain([name]).cloned().collect::<Path>();
    let ups = written.iter().take_while(|name| *name == "super").count();
    let (base, rest) = match written.first()?.as_str() {
        "crate" => (&path[..0], &written[1..]),
        "self" => (&path[..], &written[1..]),
        "super" => (&path[..path.len().checked_sub(ups)?], &written[ups..]),
        _ if modules.contains(&child(&written[0])) => (&path[..], written),
        _ => return None,
    };
    Some(base.iter().chain(rest).cloned().collect())
}

/// Reads the imports of `use` from a tree of paths; returns its end.
fn use_tree(tokens: &[String], mut at: usize, mut path: Path, found: &mut Vec<(String, Path)>) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}" && token != ";") {
                    at = use_tree(tokens, at, path.clone(), found);
                    at += usize::from(tokens.get(at).is_some_and(|token| token == ","));
                }
                return at + 1;
            }
            "as" => {
                found.push((tokens.get(at + 1).cloned().unwrap_or_default(), path));
                return at + 2;
            }
            "," | "}" | ";" => break,
            // The names imported by `*` are unknown, but the module is used.
            "*" => at += 1,
            "self" if !path.is_empty() => at += 1,
            name => {
                path.push(name.to_owned());
                at += 1;
            }
        }
    }
    if let Some(name) = path.last().cloned() {
        found.push((name, path));
    }
    at.max(1)
}

/// Reads a path in code; returns its end.
fn plain_path(tokens: &[String], mut at: usize) -> (usize, Path) {
    let mut path = vec![tokens[at].clone()];
    at += 1;
    while tokens.get(at).is_some_and(|token| token == "::") {
        let Some(name) = tokens.get(at + 1).filter(|name| is_name(name)) else { break };
        path.push(name.clone());
        at += 2;
    }
    (at, path)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Splits code into names, `::` and single characters.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = if rest.starts_with("::") {
            2
        } else if is_letter(first) {
            rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(texts: &[(&str, &str)]) -> Vec<String> {
        circles_of(&Tree::of(texts), "crates/x").into_iter().map(|(circle, _)| circle).collect()
    }

    #[test]
    fn circular_uses_of_files_are_found() {
        let texts = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Three;\n"),
            ("crates/x/src/a.rs", "use crate::b::{self, Two};\n"),
            ("crates/x/src/b.rs", "fn f() -> super::Three { super::c::g(); }\n"),
            ("crates/x/src/c.rs", "// use crate::b;\nuse std::fmt;\n"),
        ];
        assert_eq!(circles(&texts), [""; 0]);
        let mut circle = texts;
        circle[3].1 = "use std::fmt;\nuse crate::a::One as Uno;\n";
        assert_eq!(circles(&circle), ["a, b, c"]);
        let complaint = &no_files_use_each_other_in_circles(&Tree::of(&circle))[0];
        assert!(
            complaint
                .ends_with("it uses b in crates/x/src/a.rs, c in crates/x/src/b.rs, a in crates/x/src/c.rs")
        );
    }

    #[test]
    fn imported_names_are_resolved_to_their_files() {
        let texts = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;\npub use b::{inner::{Deep, other}, Two as Second};\n"),
            ("crates/x/src/a.rs", "use crate::Second;\n"),
            ("crates/x/src/b.rs", "use crate::a;\n"),
            ("crates/x/src/b/inner.rs", "use super::super::a::One;\n"),
        ];
        assert_eq!(circles(&texts), ["a, b"]);
        let mut by_folder = texts;
        by_folder[1].1 = "fn f() { crate::Deep::new() }\n";
        by_folder[2].1 = "";
        assert_eq!(circles(&by_folder), ["a, b"]);
        by_folder[3].1 = "";
        assert_eq!(circles(&by_folder), [""; 0]);
    }

    #[test]
    fn parents_with_children_and_tests_form_no_circle() {
        let texts = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod trial;\nuse a::One;\n"),
            ("crates/x/src/a/mod.rs", "mod c;\nmod d;\nuse c::Three;\nuse crate::b::Two;\n"),
            ("crates/x/src/a/c.rs", "use super::{One, d};\n"),
            ("crates/x/src/a/d.rs", "use super::One;\n"),
            ("crates/x/src/b.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}\n"),
            ("crates/x/src/trial.rs", "use crate::a; use crate::b;\n"),
        ];
        assert_eq!(circles(&texts), [""; 0]);
        let mut below = texts;
        below[3].1 = "use super::{One, c::Three};\n";
        assert_eq!(circles(&below), ["c, d"]);
    }
}
