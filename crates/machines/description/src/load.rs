//! How text becomes a description, or a complaint that names file and line.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// The longest text that is read as a description, in bytes.
pub const SIZE_LIMIT: usize = 1 << 20;

/// Something described by one TOML text.
pub trait Description: Sized {
    /// What is described, to complete the sentence "no ... of this name".
    const KIND: &'static str;

    /// Name and text of the descriptions that are part of the program.
    const BUILT_IN: &'static [(&'static str, &'static str)];

    /// Reads the shape of the text: keys, units and types.
    fn decode(text: &str) -> Result<Self, toml::de::Error>;

    /// Checks what the shape cannot say: that the values are possible, alone and together. Takes in what the text names
    /// and is described elsewhere: paths in it are relative to `folder`.
    fn checked(self, folder: &Path) -> Result<Self, Misfit>;

    /// Reads and checks `text`; complaints will name `file`, and paths in it are relative to the folder of that.
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

    /// Reads the description at a path ending in `.toml`, or else the built-in one of that name.
    fn load(name_or_path: &str) -> Result<Self, Error> {
        let (text, file) = text_of::<Self>(name_or_path)?;
        Self::parse(&text, &file)
    }
}

/// The text of the description that [`Description::load`] would read, not yet checked, and what complaints call it.
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

/// The folder of a file, which may not exist.
fn folder_of(file: &str) -> &Path {
    Path::new(file).parent().unwrap_or(Path::new(""))
}

/// A name or path that stands in a file of this folder: a path is relative to that.
pub fn in_folder(name_or_path: &str, folder: &Path) -> String {
    match name_or_path.ends_with(".toml") {
        true => folder.join(name_or_path).to_string_lossy().into_owned(),
        false => name_or_path.to_owned(),
    }
}

/// A name or path, relative to the current directory, as it may stand in `file`.
pub(crate) fn from_elsewhere(name_or_path: &str, file: &str) -> String {
    match std::path::absolute(name_or_path) {
        Ok(path) if name_or_path.ends_with(".toml") && folder_of(file) != Path::new("") => {
            path.to_string_lossy().into_owned()
        }
        _ => name_or_path.to_owned(),
    }
}

/// Why there is no description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a possible description.
    #[error("{file}:{line}: {message}")]
    Refused {
        /// The file as the caller named it.
        file: String,
        /// The line of the mistake, counted from one.
        line: usize,
        /// What was expected there.
        message: String,
    },

    /// There are several mistakes in the text, here in the order in which they stand there.
    #[error("{}", lines(.0))]
    Several(Vec<Error>),

    /// A value that was to replace one of the text cannot.
    #[error("{overrides}: {message}")]
    Override {
        /// What was to be replaced, as `key=value`; several, with commas, if it takes all of them to go wrong.
        overrides: String,
        /// What was expected.
        message: String,
    },

    /// The file cannot be read.
    #[error("{file}: {error}")]
    Unreadable {
        /// The file as the caller named it.
        file: String,
        /// What the operating system said.
        error: io::Error,
    },

    /// No built-in description has this name.
    #[error("no {kind} of the name {name:?}: expected a path ending in .toml or one of {}", .known.join(", "))]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// The name looked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
}

/// A value that is well written but impossible, and where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The bytes of the text that are to blame.
    pub span: Range<usize>,
    /// What was expected, as a lower-case fragment.
    pub message: String,
}

impl Misfit {
    /// The error that this is in `text`, which the caller calls `file`.
    pub fn refused(self, text: &str, file: &str) -> Error {
        Error::Refused { file: file.to_owned(), line: line_of(text, self.span.start), message: self.message }
    }

    /// The error that these are together, in the order given.
    pub fn all_refused(all: Vec<Misfit>, text: &str, file: &str) -> Error {
        let mut refused: Vec<Error> = all.into_iter().map(|misfit| misfit.refused(text, file)).collect();
        if refused.len() == 1 { refused.remove(0) } else { Error::Several(refused) }
    }
}

/// The most mistakes told at once; the rest are told when these are mended.
const MISTAKES_MAX: usize = 20;

fn lines(errors: &[Error]) -> String {
    let told = errors.iter().take(MISTAKES_MAX).map(Error::to_string);
    let more = errors.len().checked_sub(MISTAKES_MAX).filter(|&more| more > 0);
    let more = more.map(|more| format!("and {more} more mistakes after these"));
    told.chain(more).collect::<Vec<_>>().join("\n")
}

/// A complaint about a number that a type of the program cannot hold, with the numbers that are possible.
fn in_plain_words(message: &str) -> String {
    let possible = |bits: u32| format!("expected a whole number from 0 to {}", u64::MAX >> (64 - bits));
    match message.rsplit_once("expected u").and_then(|(before, bits)| Some((before, bits.parse().ok()?))) {
        Some((before, bits @ (8 | 16 | 32 | 64))) => format!("{before}{}", possible(bits)),
        _ => message.to_owned(),
    }
}

/// What was said of a value, with the key before it, which is on the same line.
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

/// The text of `file`, or a little more than [`SIZE_LIMIT`] of it if it is longer, which is then to be refused.
pub fn read_text(file: &str) -> Result<String, Error> {
    let unreadable = |error| Error::Unreadable { file: file.to_owned(), error };
    let mut text = String::new();
    let mut bounded = File::open(file).map_err(unreadable)?.take(SIZE_LIMIT as u64 + 1);
    bounded.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}
