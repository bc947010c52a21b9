//! The node file: the names of the agents.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use pdiol::agents::{self, Agent};
use pdiol::{Error, ErrorKind, Result};

/// The environment variable with another path of the node file.
const VARIABLE: &str = "PDIOLCONF";

/// The node file in the user's home directory.
const NAME: &str = "PDIOLconf";

/// The agents of the first of: the file $PDIOLCONF, $STARFISH_AGENTS, the file $HOME/PDIOLconf, the configuration of
/// `starfish`.
pub(crate) fn find() -> Result<Vec<Agent>> {
    if let Some(path) = set(VARIABLE) {
        return read(Path::new(&path));
    }
    let usual = env::home_dir().map(|home| home.join(NAME)).filter(|path: &PathBuf| path.exists());
    match usual.filter(|_| set(agents::VARIABLE).is_none()) {
        Some(path) => read(&path),
        None => agents::find(),
    }
}

fn set(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

fn read(path: &Path) -> Result<Vec<Agent>> {
    let wrong = |why: &dyn std::fmt::Display| {
        let error = Error::new(ErrorKind::Invalid, format!("the node file {}", path.display()), why);
        error.with_remedy("It has the names of the agents, as HOST:PORT or HOST, one on each line")
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let names: Vec<&str> = names(&text).collect();
    if names.is_empty() { Err(wrong(&"it names no agent")) } else { agents::named(names) }
}

/// The names in a node file: words, but what follows a `#` on its line.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let without_remark = |line: &'_ str| line.split('#').next().unwrap_or_default().len();
    text.lines().flat_map(move |line| line[..without_remark(line)].split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_file_is_words_and_remarks() {
        let text = "# the cluster\nbrule-m-a brule-m-b:7118\n\n brule-m-c # the slow one\r\n#brule-m-d";
        assert_eq!(names(text).collect::<Vec<_>>(), ["brule-m-a", "brule-m-b:7118", "brule-m-c"]);
    }

    #[test]
    fn an_empty_or_missing_node_file_is_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("nodes");
        assert!(read(&path).expect_err("missing").to_string().contains(&path.display().to_string()));
        fs::write(&path, "# none\n").expect("room");
        let error = read(&path).expect_err("empty");
        assert!(error.to_string().contains("it names no agent"), "{error}");
        fs::write(&path, "127.0.0.1:1 127.0.0.1").expect("room");
        assert_eq!(read(&path).expect("two").len(), 2);
    }
}
