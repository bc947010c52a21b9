//! Texts of the project: sources, manifests and documents, by their paths from its root.

use std::fs;
use std::io;
use std::path::Path;

/// Input of the rules: every text file of the project.
#[derive(Debug, Default)]
pub struct Tree {
    texts: Vec<Text>,
}

/// Text file.
#[derive(Debug)]
pub struct Text {
    /// Path from the root of the project, with `/` between the parts.
    pub path: String,
    /// Contents.
    pub text: String,
}

/// Folders with texts of the project, in addition to the root itself. Build results are elsewhere.
const FOLDERS: [&str; 8] =
    [".ci", "benches", "crates", "docs", "examples", "experiments", "machines", "python"];

const KINDS: [&str; 5] = ["rs", "toml", "md", "py", "json"];

impl Tree {
    /// Reads the project at `root`.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.add_folder(root, "", &FOLDERS)?;
        tree.texts.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// Returns a tree of these paths and texts.
    pub fn of(texts: &[(&str, &str)]) -> Tree {
        let text = |&(path, text): &(&str, &str)| Text { path: path.into(), text: text.into() };
        Tree { texts: texts.iter().map(text).collect() }
    }

    /// Adds the texts of a folder and its subfolders. If `only` is not empty, considers only these entries of the
    /// folder.
    fn add_folder(&mut self, root: &Path, folder: &str, only: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                let built = ["target", "__pycache__", "node_modules"].contains(&name.as_str());
                if !built && (only.is_empty() || only.contains(&name.as_str())) {
                    self.add_folder(root, &path, &[])?;
                }
            } else if KINDS.iter().any(|kind| Path::new(&name).extension().is_some_and(|end| end == *kind)) {
                self.texts.push(Text { text: fs::read_to_string(entry.path())?, path });
            }
        }
        Ok(())
    }

    /// Returns all texts, sorted by path.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.texts.iter()
    }

    /// Returns the texts whose paths have this ending.
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a Text> {
        self.texts().filter(move |text| text.path.ends_with(end))
    }

    /// Returns the text of this path.
    pub fn get(&self, path: &str) -> Option<&Text> {
        self.texts().find(|text| text.path == path)
    }
}

impl Text {
    /// Returns the lines of code with their numbers, without comments after `//`.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines()).map(|(number, line)| (number, line.split("//").next().unwrap_or("")))
    }

    /// Returns the lines of code with their numbers, without the tests at the end.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut lines = self.code().peekable();
        std::iter::from_fn(move || {
            let (number, line) = lines.next()?;
            let opens_tests = |next: &&(usize, &str)| next.1.trim_start().starts_with("mod tests {");
            let is_end = line.trim() == "#[cfg(test)]" && lines.peek().as_ref().is_some_and(opens_tests);
            (!is_end).then_some((number, line))
        })
    }

    /// Returns the code without the tests at the end.
    pub fn product_code(&self) -> String {
        self.product_lines().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the file's name without its extension.
    pub fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.split_once('.').map_or(name, |(stem, _)| stem)
    }
}
