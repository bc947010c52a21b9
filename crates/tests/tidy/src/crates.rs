//! Allowed dependencies among our crates.
//!
//! ```text
//!   machine, layout, statistics,
//!   interruption, replacement,
//!   placement, trace               nothing of ours
//!   namespace                      machine, layout
//!   web                            nothing of ours
//!   workspace-hack                 real, for its features
//!   viewer                         trace, trace-formats, web
//!   metrics                        machine, fs, mount, web
//!   description, disk              machine
//!   fs-protocol                    machine, layout, namespace
//!   fs-client, fs-io-node          fs-protocol, recording, trace; never each other
//!   fs                             these three          never sim or real
//!   sim, real                      machine, description, disk
//!   recording                      machine, trace
//!   request-log                    machine, layout
//!   jobs                           fs, namespace, request-log
//!   experiment                     sim, jobs, placement, statistics
//!   plan                           experiment
//!   page                           statistics
//!   trace-formats                  machine, trace
//!   reproduce                      plan, statistics, page, placement
//!   node                           real and fs
//!   mount                          node, and the crates that node uses
//!   mpi-io                         node, layout, namespace,
//!                                  request-log; nothing depends on it
//!   pdiol                          node
//!   libpdiol                       pdiol, node; nothing depends on it
//!   tlv                            trace
//!   libtlv                         tlv; nothing depends on it
//!   command-line                   node
//!   agent-set                      command-line, node
//!   applications                   command-line, pdiol, node, interruption, placement, replacement
//!   test-agents                    pdiol, node, real and fs; tests only depend on it
//!   fuzz, prerequisites            nothing of ours; tests only depend on them
//!   promises                       fs; its tests also sim, real, experiment, node
//!   seeds                          promises, page, sim, real and fs; nothing depends on it
//!   starfish (crates/command/cli)  anything; nothing depends on it
//!   python                         the crates with Python bindings; nothing depends on it
//! ```

use toml::{Table, Value};

use crate::{Text, Tree};

/// Allowed dependencies of each crate, among ours.
const ARROWS: [(&str, &[&str]); 52] = [
    (
        "applications",
        &["command-line", "interruption", "namespace", "node", "pdiol", "placement", "replacement"],
    ),
    ("agent-set", &["command-line", "node"]),
    ("command-line", &["machine", "node"]),
    ("conversion", &["command-line", "fs", "layout", "machine", "namespace", "node", "real", "transfer"]),
    ("fsck", &["command-line", "fs", "layout", "machine", "namespace", "node", "transfer"]),
    (
        "doctor",
        &[
            "agent-set",
            "command-line",
            "fs",
            "machine",
            "mount",
            "namespace",
            "node",
            "statistics",
            "transfer",
        ],
    ),
    ("interruption", &[]),
    (
        "account",
        &[
            "command-line",
            "description",
            "experiment",
            "fs",
            "interruption",
            "machine",
            "node",
            "placement",
            "recording",
            "sim",
            "statistics",
            "trace",
            "trace-formats",
            "transfer",
        ],
    ),
    (
        "studies",
        &[
            "account",
            "agent-set",
            "applications",
            "command-line",
            "description",
            "experiment",
            "fs",
            "jobs",
            "layout",
            "machine",
            "node",
            "page",
            "pdiol",
            "placement",
            "plan",
            "real",
            "recording",
            "request-log",
            "statistics",
            "transfer",
        ],
    ),
    (
        "transfer",
        &[
            "command-line",
            "fs",
            "interruption",
            "jobs",
            "layout",
            "machine",
            "namespace",
            "node",
            "real",
            "replacement",
            "trace",
        ],
    ),
    ("machine", &[]),
    ("layout", &[]),
    ("namespace", &["layout", "machine"]),
    ("description", &["machine"]),
    ("disk", &["description", "machine"]),
    ("fs-protocol", &["layout", "machine", "namespace"]),
    ("fs-client", &["fs-protocol", "layout", "machine", "namespace", "recording", "trace"]),
    ("fs-io-node", &["fs-protocol", "layout", "machine", "namespace", "recording", "trace"]),
    ("fs", &["fs-client", "fs-io-node", "fs-protocol", "machine"]),
    ("sim", &["description", "disk", "machine"]),
    ("real", &["description", "disk", "machine"]),
    ("recording", &["machine", "trace"]),
    ("request-log", &["layout", "machine"]),
    ("jobs", &["fs", "layout", "machine", "namespace", "request-log"]),
    (
        "experiment",
        &[
            "description",
            "disk",
            "fs",
            "jobs",
            "layout",
            "machine",
            "placement",
            "request-log",
            "sim",
            "statistics",
        ],
    ),
    ("node", &["fs", "layout", "machine", "namespace", "real", "recording", "trace"]),
    ("mount", &["fs", "layout", "machine", "namespace", "node", "real"]),
    ("mpi-io", &["layout", "machine", "namespace", "node", "request-log"]),
    ("pdiol", &["layout", "node"]),
    ("libpdiol", &["node", "pdiol"]),
    ("plan", &["description", "experiment", "fs", "layout", "machine", "sim", "statistics"]),
    ("page", &["statistics"]),
    ("reproduce", &["description", "layout", "page", "placement", "plan", "statistics"]),
    (
        "starfish",
        &[
            "account",
            "agent-set",
            "applications",
            "command-line",
            "conversion",
            "description",
            "doctor",
            "experiment",
            "fs",
            "fsck",
            "interruption",
            "jobs",
            "layout",
            "machine",
            "metrics",
            "mount",
            "namespace",
            "node",
            "page",
            "pdiol",
            "placement",
            "plan",
            "real",
            "recording",
            "replacement",
            "reproduce",
            "request-log",
            "studies",
            "trace",
            "trace-formats",
            "transfer",
            "viewer",
        ],
    ),
    ("fuzz", &[]),
    ("prerequisites", &[]),
    ("placement", &[]),
    ("replacement", &[]),
    (
        "seeds",
        &[
            "description",
            "fs",
            "interruption",
            "layout",
            "machine",
            "namespace",
            "page",
            "promises",
            "real",
            "sim",
        ],
    ),
    ("promises", &["fs", "layout", "machine", "namespace", "trace"]),
    ("statistics", &[]),
    ("python", &["description", "experiment", "layout", "namespace", "node", "plan", "tlv", FEATURES]),
    ("test-agents", &["fs", "machine", "namespace", "node", "pdiol", "real"]),
    ("tidy", &[]),
    ("tlv", &["trace"]),
    ("libtlv", &["tlv"]),
    ("metrics", &["fs", "machine", "mount", "web"]),
    ("viewer", &["trace", "trace-formats", "web"]),
    ("web", &[]),
    (FEATURES, &["real"]),
    ("trace", &[]),
    ("trace-formats", &["machine", "trace"]),
];

/// Crates that must not depend on a runtime, and their allowed third-party crates.
const FEW: [(&str, &[&str]); 2] =
    [("machine", &["thiserror", "twox-hash"]), ("layout", &["serde", "thiserror"])];

/// Crates that nothing may depend on, not even tests.
const LAST: [&str; 6] = ["libpdiol", "libtlv", "mpi-io", "starfish", "python", "seeds"];

/// Crate that lists the features required by the whole workspace.
const FEATURES: &str = "workspace-hack";

/// Requirements of the Python package.
const PYTHON_PROJECT: &str = "python/pyproject.toml";

/// Requirements of the viewer's page.
const PAGE_PACKAGE: &str = "crates/traces/viewer/page/package.json";

/// Decision record with the reason for each third-party package.
const REASONS: &str = "docs/adr/0010-dependencies.md";

struct Manifest<'a> {
    path: &'a str,
    name: String,
    table: Table,
}

fn manifests(tree: &Tree) -> Vec<Manifest<'_>> {
    let manifests = tree.ending("/Cargo.toml").map(|Text { path, text }| {
        let table: Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let name = table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
        Manifest { path, name: name.unwrap_or_default().to_owned(), table }
    });
    manifests.collect()
}

impl Manifest<'_> {
    fn names(&self, section: &str) -> impl Iterator<Item = &str> {
        self.table
            .get(section)
            .and_then(Value::as_table)
            .into_iter()
            .flat_map(|table| table.keys().map(String::as_str))
    }
}

fn ours(name: &str) -> Option<&'static [&'static str]> {
    ARROWS.iter().find(|(ours, _)| *ours == name).map(|(_, allowed)| *allowed)
}

/// Complains about disallowed dependencies among our crates.
pub fn crates_have_only_allowed_dependencies(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for manifest in manifests(tree) {
        let Manifest { path, name, .. } = &manifest;
        let Some(allowed) = ours(name) else {
            complaints.push(format!(
                "{path}: list in crates/tests/tidy/src/crates.rs the crates that {name} may depend on"
            ));
            continue;
        };
        for section in ["dependencies", "build-dependencies"] {
            let forbidden =
                manifest.names(section).filter(|other| ours(other).is_some_and(|_| !allowed.contains(other)));
            complaints.extend(forbidden.map(|other| format!("{path}: {name} may not depend on {other}")));
        }
        if let Some(last) = manifest.names("dev-dependencies").find(|other| LAST.contains(other)) {
            complaints.push(format!("{path}: not even tests may depend on {last}"));
        }
    }
    complaints
}

/// Complains about third-party crates in the machine's traits and the layout, except a few.
pub fn the_innermost_crates_use_few_others(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for manifest in manifests(tree) {
        let Some((name, few)) = FEW.iter().find(|(name, _)| *name == manifest.name) else { continue };
        let others = manifest.names("dependencies").filter(|other| !few.contains(other));
        complaints.extend(others.map(|other| format!("{}: {name} may not use {other}", manifest.path)));
    }
    complaints
}

/// Returns the packages named in the lists of strings anywhere in a table of Python requirements such as `pandas>=2.2`.
fn required(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Table(table)) => table.values().flat_map(|inner| required(Some(inner))).collect(),
        Some(Value::Array(array)) => array.iter().flat_map(|inner| required(Some(inner))).collect(),
        Some(Value::String(text)) => {
            let end = text
                .find(|character: char| !(character.is_ascii_alphanumeric() || "-_.".contains(character)));
            vec![text[..end.unwrap_or(text.len())].to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Returns the packages required by the Python package, its build and its tests.
fn python_packages(tree: &Tree) -> Vec<String> {
    let Some(Text { path, text }) = tree.get(PYTHON_PROJECT) else { return Vec::new() };
    let table: Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    let of = |section: &str, key| required(table.get(section).and_then(|section| section.get(key)));
    let mut packages = of("build-system", "requires");
    packages.extend(of("project", "dependencies"));
    packages.extend(of("project", "optional-dependencies"));
    packages.extend(required(table.get("dependency-groups")));
    packages
}

/// Returns the packages that build and test the viewer's page, or become part of it.
fn page_packages(tree: &Tree) -> Vec<String> {
    let Some(Text { path, text }) = tree.get(PAGE_PACKAGE) else { return Vec::new() };
    let package: serde_json::Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let of =
        |section: &str| package[section].as_object().into_iter().flat_map(|section| section.keys().cloned());
    of("dependencies").chain(of("devDependencies")).collect()
}

/// Complains about third-party crates or packages without a reason in the decision record, and about reasons without a
/// use.
pub fn every_foreign_crate_has_a_reason(tree: &Tree) -> Vec<String> {
    let reasons = tree.get(REASONS).map_or("", |text| &text.text);
    let mut used = python_packages(tree);
    used.extend(page_packages(tree));
    // Skip workspace-hack, which only repeats the requirements of other crates.
    for manifest in manifests(tree).iter().filter(|manifest| manifest.name != FEATURES) {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            used.extend(manifest.names(section).filter(|name| ours(name).is_none()).map(str::to_owned));
        }
    }
    used.sort();
    used.dedup();
    let row = |name: &str| format!("| {name} |");
    let without = used.iter().filter(|name| !reasons.contains(&row(name)));
    let mut complaints: Vec<_> = without.map(|name| format!("{REASONS}: no row for {name}")).collect();
    let rows = reasons.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let unused = rows.filter(|name| {
        !["crate", "package", "package of npm"].contains(name) && !used.iter().any(|other| other == name)
    });
    complaints.extend(unused.map(|name| format!("{REASONS}: nothing uses {name}")));
    complaints
}

/// Complains about crates without the workspace's lints.
pub fn every_crate_inherits_the_common_lints(tree: &Tree) -> Vec<String> {
    let takes = |manifest: &Manifest| {
        manifest.table.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool)
            == Some(true)
    };
    let without = manifests(tree).into_iter().filter(|manifest| !takes(manifest));
    without.map(|manifest| format!("{}: `lints.workspace = true` is missing", manifest.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(manifest: &str) -> Tree {
        Tree::of(&[("crates/x/Cargo.toml", manifest), (REASONS, "| slab | a table |\n")])
    }

    #[test]
    fn the_file_system_cannot_import_a_machine() {
        let tree = tree("[package]\nname = 'fs'\n[dependencies]\nmachine = '1'\nsim = '1'\n");
        assert_eq!(
            crates_have_only_allowed_dependencies(&tree),
            ["crates/x/Cargo.toml: fs may not depend on sim"]
        );
    }

    #[test]
    fn a_crate_without_listed_dependencies_is_found() {
        assert_eq!(crates_have_only_allowed_dependencies(&tree("[package]\nname = 'new'\n")).len(), 1);
    }

    #[test]
    fn missing_and_stale_reasons_for_foreign_crates_are_found() {
        let unknown = tree("[package]\nname = 'fs'\n[dependencies]\nslab = '1'\ntokio = '1'\n");
        assert_eq!(every_foreign_crate_has_a_reason(&unknown), [format!("{REASONS}: no row for tokio")]);
        let unused = tree("[package]\nname = 'fs'\n");
        assert_eq!(every_foreign_crate_has_a_reason(&unused), [format!("{REASONS}: nothing uses slab")]);
        let heavy = tree("[package]\nname = 'machine'\n[dependencies]\nslab = '1'\n");
        assert_eq!(the_innermost_crates_use_few_others(&heavy).len(), 1);
    }

    #[test]
    fn a_missing_reason_for_a_python_package_is_found() {
        let project =
            "[project]\ndependencies = ['slab>=1']\noptional-dependencies.all = ['a-b[c]==2', 'd']\n";
        let tree = Tree::of(&[(PYTHON_PROJECT, project), (REASONS, "| slab | a table |\n| d | why |\n")]);
        assert_eq!(every_foreign_crate_has_a_reason(&tree), [format!("{REASONS}: no row for a-b")]);
    }

    #[test]
    fn missing_and_stale_reasons_for_npm_packages_are_found() {
        let package = r#"{ "devDependencies": { "slab": "1", "@types/a": "2" } }"#;
        let tree = Tree::of(&[(PAGE_PACKAGE, package), (REASONS, "| slab | a table |\n| d | why |\n")]);
        let complaints = [format!("{REASONS}: no row for @types/a"), format!("{REASONS}: nothing uses d")];
        assert_eq!(every_foreign_crate_has_a_reason(&tree), complaints);
    }

    #[test]
    fn a_test_dependency_on_a_last_crate_is_found() {
        let tree = Tree::of(&[(
            "crates/x/Cargo.toml",
            "[package]\nname = 'fs'\n[dev-dependencies]\npython = '1'\n",
        )]);
        assert_eq!(
            crates_have_only_allowed_dependencies(&tree),
            ["crates/x/Cargo.toml: not even tests may depend on python"]
        );
    }

    #[test]
    fn a_crate_without_the_common_lints_is_found() {
        assert_eq!(every_crate_inherits_the_common_lints(&tree("[package]\nname = 'fs'\n")).len(), 1);
        assert!(every_crate_inherits_the_common_lints(&tree("[lints]\nworkspace = true\n")).is_empty());
    }
}
