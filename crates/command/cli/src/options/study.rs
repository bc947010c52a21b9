//! Finds a study: a built-in study, or one in a folder.
//!
//! A study is a folder with plans (`*.toml`), and with published tables (`*.csv`) in its subfolder `published`.

use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};
use reproduce::{PlacementStudy, Statement, Study, TextFile};

use command_line::failure::{Failure, Result};

/// Built-in studies, by name.
const BUILT_IN: [(&str, Dir<'_>); 3] = [
    ("starfish-3.0", include_dir!("$CARGO_MANIFEST_DIR/../../../experiments/starfish-3.0")),
    ("enwrich", include_dir!("$CARGO_MANIFEST_DIR/../../../experiments/enwrich")),
    ("placement", include_dir!("$CARGO_MANIFEST_DIR/../../../experiments/placement")),
];

/// Returns the names of the built-in studies.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Subfolder of the published tables.
const PUBLISHED: &str = "published";

/// File with the statements of a report.
const STATEMENTS: &str = "statements.csv";

/// Maximum size of a plan or table in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Study of either kind.
pub(crate) enum AnyStudy {
    /// Study of access methods.
    Methods(Study),
    /// Study of jobs that share disks.
    Placement(PlacementStudy),
}

/// File with its contents.
struct Read {
    name: String,
    text: String,
}

/// Finds, reads and checks the study: the built-in one of this name, or the one in this folder.
pub(crate) fn load(name_or_path: &str) -> Result<AnyStudy> {
    let built_in = BUILT_IN.iter().find(|(name, _)| *name == name_or_path);
    let (name, plans, published, statements) = match built_in {
        Some((name, dir)) => {
            let published = dir.get_dir(PUBLISHED).map_or(Vec::new(), |dir| embedded(name, dir, "csv"));
            let statements = dir.get_file(STATEMENTS).and_then(|file| file.contents_utf8());
            (
                (*name).to_owned(),
                embedded(name, dir, "toml"),
                published,
                statements.unwrap_or_default().to_owned(),
            )
        }
        None => {
            let path = Path::new(name_or_path);
            let plans = in_folder(path, "toml").map_err(|error| not_found(name_or_path, error))?;
            // A study without published tables does not have this folder.
            let published = path.join(PUBLISHED);
            let tables = if published.is_dir() { in_folder(&published, "csv") } else { Ok(Vec::new()) };
            let tables = tables.map_err(|error| Failure::usage(published.to_string_lossy(), error))?;
            let statements = path.join(STATEMENTS);
            let text = if statements.is_file() { fs::read_to_string(&statements) } else { Ok(String::new()) };
            let text = text.map_err(|error| Failure::usage(statements.to_string_lossy(), error))?;
            (folder_name(path), plans, tables, text)
        }
    };
    if plans.iter().any(|plan| plan::is_of_placements(&plan.text)) {
        let study = PlacementStudy::parse(&name, &as_texts(&plans));
        return study.map(AnyStudy::Placement).map_err(|error| Failure::usage(name_or_path, error));
    }
    let study = Study::parse(&name, &as_texts(&plans), &as_texts(&published));
    let mut study = study.map_err(|error| Failure::usage(name_or_path, error))?;
    let statements = Statement::read(&format!("{name}/{STATEMENTS}"), &statements);
    study.statements = statements.map_err(|error| Failure::usage(name_or_path, error))?;
    Ok(AnyStudy::Methods(study))
}

/// Returns the name of the study in a folder, which is the name of the folder.
fn folder_name(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(|| "study".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn not_found(name: &str, error: std::io::Error) -> Failure {
    let known: Vec<&str> = names().collect();
    let failure = Failure::usage(format!("study {name}"), error);
    failure.remedy(format!(
        "Name one of the built-in studies ({}), or a directory with plans.",
        known.join(", ")
    ))
}

/// Returns the files in a built-in folder that have this extension, by name.
fn embedded(study: &str, dir: &Dir<'_>, extension: &str) -> Vec<Read> {
    let with_extension =
        dir.files().filter(|file| file.path().extension().is_some_and(|end| end == extension));
    let read = |file: &include_dir::File<'_>| Read {
        name: format!("{study}/{}", file.path().display()),
        text: file.contents_utf8().unwrap_or_default().to_owned(),
    };
    let mut files: Vec<Read> = with_extension.map(read).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// Returns the files in a folder that have this extension, by name.
fn in_folder(folder: &Path, extension: &str) -> std::io::Result<Vec<Read>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == extension) && path.is_file() {
            let name = path.to_string_lossy().into_owned();
            let named = |error| std::io::Error::other(format!("{name}: {error}"));
            if fs::metadata(&path).map_err(named)?.len() > BYTES_MAX {
                return Err(named(std::io::Error::other(
                    "it is longer than 1 MiB, the limit for files of a study",
                )));
            }
            let text = fs::read_to_string(&path).map_err(named)?;
            files.push(Read { name, text });
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

fn as_texts(files: &[Read]) -> Vec<TextFile<'_>> {
    files.iter().map(|Read { name, text }| TextFile { name, text }).collect()
}
