//! All marks of rare places in the sources of the workspace.
//!
//! A mark is an invocation of `machine::sometimes!` with a string literal. The list is read from the sources, because a
//! compiled program only knows the marks that it has reached.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Invocation of the macro, up to its first argument.
const MARK: &str = "machine::sometimes!(";

/// Crates with marks, as folders in the workspace.
const FOLDERS: [&str; 2] = ["crates/files", "crates/machines/sim"];

/// Returns all marks with their files in the workspace, in the order of the marks.
///
/// # Errors
/// If the sources are missing, or two marks have the same name.
pub fn marks() -> Result<BTreeMap<String, String>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (mut marks, mut folders) = (BTreeMap::new(), FOLDERS.map(|folder| root.join(folder)).to_vec());
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text =
                    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let file = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
                for mark in marks_of(&text) {
                    if let Some(other) = marks.insert(mark?.to_owned(), file.clone()) {
                        return Err(format!("{other} and {file} have the same mark"));
                    }
                }
            }
        }
    }
    Ok(marks)
}

/// Returns the marks in the text of a source.
fn marks_of(text: &str) -> impl Iterator<Item = Result<&str, String>> {
    text.split(MARK).skip(1).map(|rest| {
        let literal = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
        literal.map(|(name, _)| name).ok_or_else(|| format!("a mark without a name: {:.40}", rest))
    })
}
