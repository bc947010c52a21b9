//! The parts of the simulator's sources that determine simulation results. The build script hashes them.
//!
//! Tests and comments do not affect results, so journals remain valid when they are edited. Comments after code on the
//! same line do count, and so do all lines that could matter: hashing too many lines is safer than hashing too few.

use std::path::Path;

/// Inputs of a simulation besides its description: the sources in these directories and files, and the exact versions
/// of other crates.
pub(crate) const SOURCES: [&str; 16] = [
    "crates/machines/machine/src",
    "crates/files/layout/src",
    "crates/machines/description/src",
    "crates/machines/disk/src",
    "crates/files/namespace/src",
    "crates/files/fs-protocol/src",
    "crates/files/fs-client/src",
    "crates/files/fs-io-node/src",
    "crates/files/fs/src",
    "crates/experiments/placement/src",
    "crates/experiments/request-log/src",
    "crates/experiments/jobs/src",
    "crates/machines/sim/src",
    "crates/experiments/experiment/src",
    "crates/experiments/plan/src/measurement.rs",
    "Cargo.lock",
];

/// Name of modules that contain only tests.
const TESTS: &str = "conformance";

/// True if the source at `path` can affect results.
pub(crate) fn decides(path: &Path) -> bool {
    path.iter().all(|part| Path::new(part).file_stem() != Some(TESTS.as_ref()))
}

/// Iterates over the lines of a source that affect results: all except empty lines, comment lines, and items that exist
/// only in tests. Such items are recognised by the format that rustfmt produces: an item begins and ends at the margin.
pub(crate) fn decisive_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter(move |line| {
        let is_in_test = is_test || *line == "#[cfg(test)]";
        let ends = *line == "}" || !line.starts_with([' ', '#', '/']) && line.ends_with(';');
        is_test = is_in_test && !ends;
        let code = line.trim_start();
        !is_in_test && !code.is_empty() && !code.starts_with("//")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        decisive_lines(text).collect()
    }

    /// Crates that only report about a simulation and do not affect it.
    const OBSERVERS: [&str; 3] = ["recording", "statistics", "trace"];

    /// The list must contain the sources of `experiment` and of all crates in this repository that `experiment` depends
    /// on.
    #[test]
    fn the_sources_include_all_crates_that_a_simulation_depends_on() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let floors: Vec<_> =
            crates.read_dir().expect("a directory").map(|floor| floor.expect("one").path()).collect();
        let (mut seen, mut new) = (BTreeSet::new(), vec!["experiment".to_owned()]);
        while let Some(name) = new.pop() {
            let manifests = floors.iter().map(|floor| floor.join(&name).join("Cargo.toml"));
            let Some(manifest) = manifests.map(std::fs::read_to_string).find_map(Result::ok) else {
                continue;
            };
            if OBSERVERS.contains(&&*name) || !seen.insert(name) {
                continue;
            }
            let dependencies = manifest.split("\n[").find_map(|table| table.strip_prefix("dependencies]"));
            let names =
                dependencies.unwrap_or_default().lines().filter_map(|line| line.split(['.', ' ']).next());
            new.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
        }
        let decide = |name: &String| SOURCES.iter().any(|source| source.ends_with(&format!("/{name}/src")));
        assert!(seen.len() > 5 && seen.iter().all(decide), "{seen:?}");
    }

    fn exists(path: &str) -> bool {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path).exists()
    }

    #[test]
    fn every_named_source_exists() {
        let missing: Vec<_> = SOURCES.into_iter().filter(|path| !exists(path)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn comments_and_tests_are_not_decisive() {
        let code = "use x::y;\n\nfn f() {\n    g(1); // beside\n}\n";
        let with_others = "//! What it is.\n\nuse x::y;\n\n/// Says more.\nfn f() {\n    // Why.\n    g(1); // beside\n}\n\n\
            #[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn t() {\n        f();\n    }\n}\n";
        assert_eq!(lines(with_others), lines(code));
    }

    #[test]
    fn code_after_a_test_and_comments_on_lines_of_code_change_the_hash() {
        let text = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod other;\nfn f() {}\n";
        assert_eq!(lines(text), ["fn f() {}"]);
        assert_eq!(
            lines("#[cfg(test)]\nimpl X {\n    fn f() {}\n}\nconst Y: u8 = 1; // 2\n"),
            ["const Y: u8 = 1; // 2"]
        );
        assert_ne!(lines("f(1);"), lines("f(2);"));
    }

    #[test]
    fn laws_of_machines_are_not_decisive() {
        for (path, expected) in [
            ("crates/machines/machine/src/conformance.rs", false),
            ("crates/machines/machine/src/conformance/metadata.rs", false),
            ("crates/machines/sim/src/conformance.rs", false),
            ("crates/files/fs-io-node/src/cache.rs", true),
            ("Cargo.lock", true),
        ] {
            assert!(exists(path), "{path}");
            assert_eq!(decides(Path::new(path)), expected, "{path}");
        }
    }
}
