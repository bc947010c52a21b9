//! Patterns of paths, as in shells: `*`, `?` and `[...]`, each within one name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use command_line::failure::{Failure, Result};
use glob::{MatchOptions, Pattern};
use namespace::InodeKind;
use node::{Error, ErrorKind};

use crate::namespace::{FoundPath, Namespace, joined};

/// Matching rules of shells: a name that begins with a dot is matched only by a pattern that begins with a dot.
const AS_SHELLS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// True if the text is a pattern, not just a path.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn compiled(text: &str) -> Result<Pattern> {
    Pattern::new(text).map_err(|error| Failure::usage(text, format!("it is not a valid pattern: {error}")))
}

/// Returns the inodes that a path or a pattern matches, in the order of the paths. If a file with exactly this path
/// exists, only that file is returned, even if the path looks like a pattern. A path that is not UTF-8 is never a
/// pattern. A link at the end is followed only if `follow` is set.
pub async fn found(namespace: &Namespace, name: &OsStr, follow: bool) -> Result<Vec<FoundPath>> {
    let path = name.as_bytes();
    let meant = match name.to_str().filter(|text| is_pattern(text)) {
        None => vec![namespace.look_at_link(path).await?],
        Some(text) => match namespace.find_at(path, false).await? {
            Some(found) => vec![found],
            None => match matching(namespace, text).await? {
                none if none.is_empty() => return Err(nothing_like(text)),
                all => all,
            },
        },
    };
    let mut all = Vec::new();
    for found in meant {
        let is_followed = follow && matches!(found.inode.kind, InodeKind::Link { .. });
        // For a dangling link, return the link.
        let led_to = if is_followed { namespace.find_at(&found.path, true).await? } else { None };
        all.push(led_to.unwrap_or(found));
    }
    Ok(all)
}

async fn matching(namespace: &Namespace, text: &str) -> Result<Vec<FoundPath>> {
    let start: &[u8] = if text.starts_with('/') { b"/" } else { b"" };
    let mut so_far = vec![FoundPath { path: start.to_vec(), ..namespace.look(b"/").await? }];
    for part in text.split('/').filter(|part| !part.is_empty()) {
        let pattern = if is_pattern(part) { Some(compiled(part)?) } else { None };
        let mut next = Vec::new();
        for found in so_far {
            match &pattern {
                // Links to directories are followed.
                Some(pattern) => {
                    let path: &[u8] = if found.path.is_empty() { b"/" } else { &found.path };
                    let there = namespace.find_at(path, true).await?;
                    if let Some(directory) = there.filter(|found| found.inode.is_directory()) {
                        let directory = FoundPath { path: found.path, ..directory };
                        let entries = namespace.entries(&directory).await?;
                        next.extend(entries.into_iter().filter(|entry| is_meant(pattern, &entry.path)));
                    }
                }
                None => {
                    let path = joined(&found.path, part.as_bytes());
                    next.extend(namespace.find_at(&path, false).await?);
                }
            }
        }
        so_far = next;
    }
    Ok(so_far)
}

fn is_meant(pattern: &Pattern, path: &[u8]) -> bool {
    let (_, name) = crate::namespace::split(path);
    pattern.matches_with(&String::from_utf8_lossy(name), AS_SHELLS)
}

fn nothing_like(text: &str) -> Failure {
    let why = if is_pattern(text) { "no file matches" } else { "no such file" };
    let error = Error::new(ErrorKind::NotFound, text, why);
    Failure::from(error.with_remedy("`starfish ls` lists the existing files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_shells() {
        let is_match =
            |pattern: &str, path: &str| is_meant(&compiled(pattern).expect("one"), path.as_bytes());
        assert!(is_match("*.dat", "a/b/x.dat") && is_match("x[0-9]?", "x12") && is_match(".*", ".x"));
        assert!(!is_match("*", ".x") && !is_match("*.dat", "x.data") && !is_match("x[0-9]", "xa"));
        assert!(compiled("a[").is_err());
    }
}
