//! Planted bugs: one-line mistakes in the file system that the schedules should find.
//!
//! `planted.toml` lists them. The program `planted` builds all bugs into one binary. An environment variable selects
//! one of them at run time. In a copy of the source, each bug becomes
//!
//! ```text
//!   if <the variable has the number of this bug> { replace } else { find }
//! ```
//!
//! So `find` and `replace` are both expressions or both statements. The product contains none of this.

use serde::Deserialize;

/// Environment variable with the number of the bug.
pub const VARIABLE: &str = "STARFISH_PLANTED";

/// Planted bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// File in the workspace.
    pub file: String,
    /// Text that occurs exactly once in the file.
    pub find: String,
    /// Text of the mistake.
    pub replace: String,
    /// Effect of the mistake on users.
    pub breaks: String,
}

#[derive(Deserialize)]
struct List {
    bug: Vec<Bug>,
}

/// Returns the bugs of `planted.toml`. The number of a bug is its position, from 1 on.
///
/// # Errors
/// If the list cannot be read.
pub fn bugs() -> Result<Vec<Bug>, String> {
    let list: List = toml::from_str(include_str!("../planted.toml")).map_err(|error| error.to_string())?;
    Ok(list.bug)
}

/// Returns the text of a file with bugs, given with their numbers.
///
/// # Errors
/// If the text of a bug does not occur exactly once, or overlaps with that of another bug.
pub fn plant(text: &str, bugs: &[(usize, &Bug)]) -> Result<String, String> {
    let mut places = Vec::new();
    for &(number, bug) in bugs {
        let found: Vec<usize> = text.match_indices(&bug.find).map(|(at, _)| at).collect();
        let [start] = found[..] else {
            return Err(format!(
                "bug {number}: {} has its text {} times: {:?}",
                bug.file,
                found.len(),
                bug.find
            ));
        };
        places.push((start, number, bug));
    }
    places.sort_unstable_by_key(|(start, ..)| *start);
    let (mut planted, mut end) = (String::new(), 0);
    for (start, number, bug) in places {
        if start < end {
            return Err(format!("bug {number}: its text in {} overlaps with that of another bug", bug.file));
        }
        planted.extend([&text[end..start], &switched(number, bug)]);
        end = start + bug.find.len();
    }
    planted.push_str(&text[end..]);
    Ok(planted)
}

/// Returns the code that executes either the mistake or the original text.
fn switched(number: usize, Bug { find, replace, .. }: &Bug) -> String {
    let read = format!("std::env::var({VARIABLE:?}).ok()?.parse().ok()");
    let switch = format!(
        "{{ static PLANTED: std::sync::LazyLock<Option<u32>> = std::sync::LazyLock::new(|| {read}); \
         *PLANTED == Some({number}) }}"
    );
    let code = format!("if {switch} {{ {replace} }} else {{ {find} }}");
    // An expression may be an operand. Parentheses around a statement would need a semicolon.
    if find.ends_with([';', '}']) { code } else { format!("({code})") }
}
