//! Loads a description from text, or fails with file and line.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Limit of the length of a description, in bytes.
pub const SIZE_LIMIT: usize = 1 << 20;

/// Type described by one TOML text.
pub trait Description: Sized {
    /// Name of the type in the message "no ... has the name".
    const KIND: &'static str;

    /// Names and texts of the descriptions that are part of the program.
    const BUILT_IN: &'static [(&'static str, &'static str)];

    /// Decodes the text: checks keys, units and types.
    fn decode(text: &str) -> Result<Self, toml::de::Error>;

    /// Checks each value, and that the values are consistent. Also loads the descriptions named in the text; relative
    /// paths in the text start at `folder`.
    fn checked(self, folder: &Path) -> Result<Self, Misfit>;

    /// Decodes and checks `text`. Errors name `file`, and paths in the text are relative to the folder of `file`.
    fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let refuse = |offset, message| Misfit { span: offset..offset, message }.refused(text, file);
        if text.len() > SIZE_LIMIT {
            return Err(refuse(0, format!("expected at most {SIZE_LIMIT} bytes of description")));
        }
        let description = Self::decode(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            refuse(offset, about_key(text, offset, &in_plain_words(error.message())))
        })?;
        description.checked(folder_of(file)).map_err(|misfit| misfit.refused(text, file))
    }

    /// Loads the description at a path ending in `.toml`, or else the built-in description of this name.
    fn load(name_or_path: &str) -> Result<Self, Error> {
        let (text, file) = text_of::<Self>(name_or_path)?;
        Self::parse(&text, &file)
    }
}

/// Returns the unchecked text that [`Description::load`] would read, and its name for error messages.
pub fn text_of<D: Description>(name_or_path: &str) -> Result<(String, String), Error> {
    if name_or_path.ends_with(".toml") {
        return Ok((read_text(name_or_path)?, name_or_path.to_owned()));
    }
    let known = D::BUILT_IN.iter().find(|(name, _)| *name == name_or_path);
    let Some((name, text)) = known else {
        return Err(Error::Unknown {
            kind: D::KIND,
            name: name_or_path.to_owned(),
            known: D::BUILT_IN.iter().map(|(name, _)| *name).collect(),
        });
    };
    Ok(((*text).to_owned(), format!("{name}.toml")))
}

/// Returns the folder of a file, which may be missing.
fn folder_of(file: &str) -> &Path {
    Path::new(file).parent().unwrap_or(Path::new(""))
}

/// Resolves a name or path that was read from a file of `folder`: a relative path starts at this folder.
pub fn in_folder(name_or_path: &str, folder: &Path) -> String {
    match name_or_path.ends_with(".toml") {
        true => folder.join(name_or_path).to_string_lossy().into_owned(),
        false => name_or_path.to_owned(),
    }
}

/// Converts a name or path, relative to the current directory, to a name or path that is valid in `file`.
pub(crate) fn from_elsewhere(name_or_path: &str, file: &str) -> String {
    match std::path::absolute(name_or_path) {
        Ok(path) if name_or_path.ends_with(".toml") && folder_of(file) != Path::new("") => {
            path.to_string_lossy().into_owned()
        }
        _ => name_or_path.to_owned(),
    }
}

/// Reason why loading a description failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a valid description.
    #[error("{file}:{line}: {message}")]
    Refused {
        /// File as the caller named it.
        file: String,
        /// Line of the mistake, counted from one.
        line: usize,
        /// Expected input at this line.
        message: String,
    },

    /// The text has several mistakes, listed here in the order of the text.
    #[error("{}", lines(.0))]
    Several(Vec<Error>),

    /// An override of a value is invalid.
    #[error("{overrides}: {message}")]
    Override {
        /// Overrides as `key=value`. If only several overrides together cause the error, they are separated by commas.
        overrides: String,
        /// Expected input.
        message: String,
    },

    /// The file cannot be read.
    #[error("{file}: {error}")]
    Unreadable {
        /// File as the caller named it.
        file: String,
        /// Error of the operating system.
        error: io::Error,
    },

    /// No built-in description has this name.
    #[error("no {kind} has the name {name:?}: expected a path ending in .toml or one of {}", .known.join(", "))]
    Unknown {
        /// Kind of the description.
        kind: &'static str,
        /// Unknown name.
        name: String,
        /// Known names.
        known: Vec<&'static str>,
    },
}

/// Well-formed but impossible value, and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Range in bytes of the invalid text.
    pub span: Range<usize>,
    /// Expected input, as a lower-case fragment.
    pub message: String,
}

impl Misfit {
    /// Converts the misfit to an error in `text`. The error names the text `file`.
    pub fn refused(self, text: &str, file: &str) -> Error {
        Error::Refused { file: file.to_owned(), line: line_of(text, self.span.start), message: self.message }
    }

    /// Combines all misfits into one error, in the given order.
    pub fn all_refused(all: Vec<Misfit>, text: &str, file: &str) -> Error {
        let mut refused: Vec<Error> = all.into_iter().map(|misfit| misfit.refused(text, file)).collect();
        if refused.len() == 1 { refused.remove(0) } else { Error::Several(refused) }
    }
}

/// Maximum number of mistakes reported at once.
const MISTAKES_MAX: usize = 20;

fn lines(errors: &[Error]) -> String {
    let shown = errors.iter().take(MISTAKES_MAX).map(Error::to_string);
    let more = errors.len().checked_sub(MISTAKES_MAX).filter(|&more| more > 0);
    let more = more.map(|more| format!("and {more} more mistakes after these"));
    shown.chain(more).collect::<Vec<_>>().join("\n")
}

/// Rewords an error about a number outside the range of a Rust type: replaces the name of the type by the range.
fn in_plain_words(message: &str) -> String {
    let possible = |bits: u32| format!("expected a whole number from 0 to {}", u64::MAX >> (64 - bits));
    match message.rsplit_once("expected u").and_then(|(before, bits)| Some((before, bits.parse().ok()?))) {
        Some((before, bits @ (8 | 16 | 32 | 64))) => format!("{before}{}", possible(bits)),
        _ => message.to_owned(),
    }
}

/// Prefixes an error about a value with the key of the value, which is on the same line.
fn about_key(text: &str, offset: usize, message: &str) -> String {
    let is_of_value =
        ["missing field", "invalid type", "invalid value"].iter().any(|of| message.starts_with(of));
    let line = text.get(..offset).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    match line.split_once('=').map(|(key, _)| key.trim()).filter(|key| is_of_value && !key.is_empty()) {
        Some(key) => format!("{key}: {message}"),
        None => message.to_owned(),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// Returns the text of `file`. A text longer than [`SIZE_LIMIT`] is cut off just above this limit, so that parsing
/// rejects it.
pub fn read_text(file: &str) -> Result<String, Error> {
    let unreadable = |error| Error::Unreadable { file: file.to_owned(), error };
    let mut text = String::new();
    let mut bounded = File::open(file).map_err(unreadable)?.take(SIZE_LIMIT as u64 + 1);
    bounded.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}
