//! Names of files: ordinary, striped, or standard input and output.

use std::convert::Infallible;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::str::FromStr;

use command_line::STRIPED;

use crate::failure::{Failure, Result};

/// The name of standard input or output.
const STANDARD: &str = "-";

/// The name of a file of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `-`: standard input or output.
    Standard,
    /// `pfs:NAME`: the striped file NAME.
    Striped(String),
    /// Any other name: a file of this host. `./pfs:...` denotes a file of this host whose name begins with `pfs:`.
    Local(PathBuf),
}

impl FileName {
    /// True for a striped file.
    pub fn is_striped(&self) -> bool {
        matches!(self, FileName::Striped(_))
    }

    /// Fails if this input is the same file as `output`: the program would read its own output, or a truncated file.
    pub(crate) fn check_is_not(&self, output: &FileName) -> Result<()> {
        let same = match (self, output) {
            (FileName::Striped(input), FileName::Striped(output)) => input == output,
            _ => {
                let (input, output) = (self.ordinary_file(io::stdin()), output.ordinary_file(io::stdout()));
                input.is_some() && input == output
            }
        };
        if same {
            Err(Failure::new(self, "the file is both input and output\n  Choose another output."))
        } else {
            Ok(())
        }
    }

    /// Returns the device and inode number if the name denotes an ordinary file; `standard` is the stream of `-`.
    /// Ignores errors: opening the file reports them.
    fn ordinary_file(&self, standard: impl AsFd) -> Option<(u64, u64)> {
        let found = match self {
            FileName::Standard => own(standard).and_then(|stream| stream.metadata()),
            FileName::Local(path) => path.metadata(),
            FileName::Striped(_) => return None,
        };
        found.ok().filter(Metadata::is_file).map(|found| (found.dev(), found.ino()))
    }

    /// Returns this name with `ending` appended; `None` for standard input and output.
    pub fn with_ending(&self, ending: &str) -> Option<FileName> {
        match self {
            FileName::Standard => None,
            FileName::Striped(name) => Some(FileName::Striped(format!("{name}{ending}"))),
            FileName::Local(path) => {
                let mut path = path.clone().into_os_string();
                path.push(ending);
                Some(FileName::Local(path.into()))
            }
        }
    }

    /// Returns this name without `ending`, if it has this ending and text before it.
    pub fn without_ending(&self, ending: &str) -> Option<FileName> {
        let text = self.to_string();
        let shorter = text.strip_suffix(ending)?;
        let last = shorter.rsplit(['/', ':']).next().unwrap_or_default();
        (!last.is_empty()).then(|| shorter.parse().unwrap_or_else(|never: Infallible| match never {}))
    }
}

/// Returns another handle on standard input or output, without lock or buffer.
pub(crate) fn own(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

impl FromStr for FileName {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(match text.strip_prefix(STRIPED) {
            Some(name) => FileName::Striped(name.to_owned()),
            None if text == STANDARD => FileName::Standard,
            None => FileName::Local(text.into()),
        })
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Standard => f.write_str(STANDARD),
            FileName::Striped(name) => write!(f, "{STRIPED}{name}"),
            FileName::Local(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FileName {
        text.parse().expect("any text is a name")
    }

    #[test]
    fn the_prefix_of_a_name_determines_its_kind() {
        assert_eq!(name("-"), FileName::Standard);
        assert_eq!(name("pfs:a b/c"), FileName::Striped("a b/c".into()));
        assert_eq!(name("./pfs:x"), FileName::Local("./pfs:x".into()));
        assert_eq!(name("./-"), FileName::Local("./-".into()));
        for text in ["-", "pfs:x", "a/b"] {
            assert_eq!(name(text).to_string(), text);
        }
    }

    #[test]
    fn endings_are_added_and_removed() {
        assert_eq!(name("pfs:x").with_ending(".bz2"), Some(name("pfs:x.bz2")));
        assert_eq!(name("a/x.bz2").without_ending(".bz2"), Some(name("a/x")));
        assert_eq!(name("-").with_ending(".bz2"), None);
        for text in ["x", "pfs:.bz2", "a/.bz2", ".bz2", "-"] {
            assert_eq!(name(text).without_ending(".bz2"), None, "{text}");
        }
    }
}
