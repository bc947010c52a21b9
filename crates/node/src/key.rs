//! The file of the cluster key: where it is, what is in it, and who may read it.
//!
//! The key is 32 bytes as 64 hexadecimal digits, in a file that only its user may read. The file is the first of these:
//! the one that the caller names, the one that STARFISH_KEY_FILE names, and `starfish/key` in the user's configuration
//! directory, if it is there. A file that is named has to be there; `none` in its place means that there is to be no
//! key.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use machine::KeyMismatch;
use real::Key;

use crate::agents::base_directory;
use crate::error::{Error, ErrorKind, Result};

/// The environment variable that names the file.
pub const VARIABLE: &str = "STARFISH_KEY_FILE";

/// The value that stands in place of a key file's path for no key.
pub const NONE: &str = "none";

/// The key of this user's programs, if there is one. `named` is the key file that was named for this call.
pub fn find(named: Option<&Path>) -> Result<Option<Key>> {
    match place(named) {
        Place::Nowhere => Ok(None),
        Place::Named(path) => read(&path).map(Some),
        Place::Usual(path) if path.exists() => read(&path).map(Some),
        Place::Usual(_) => Ok(None),
    }
}

/// The file in which the key is, or would be. None if there is to be no key, or if the user has no directory for it.
pub fn path(named: Option<&Path>) -> Option<PathBuf> {
    match place(named) {
        Place::Nowhere => None,
        Place::Named(path) | Place::Usual(path) => Some(path),
    }
}

/// Where the key is looked for.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// There is to be no key.
    Nowhere,
    /// In the file that was named, by the call or the environment.
    Named(PathBuf),
    /// In the usual file, if there is one.
    Usual(PathBuf),
}

fn place(named: Option<&Path>) -> Place {
    let of_environment = || env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    match named.map(Path::to_owned).or_else(of_environment) {
        Some(path) if path.as_os_str() == NONE => Place::Nowhere,
        Some(path) => Place::Named(path),
        None => usual().map_or(Place::Nowhere, Place::Usual),
    }
}

fn usual() -> Option<PathBuf> {
    base_directory("XDG_CONFIG_HOME", ".config").map(|directory| directory.join("starfish/key"))
}

/// The key in this file. Fails if others may read it.
pub fn read(path: &Path) -> Result<Key> {
    let what = || format!("the key file {}", path.display());
    let wrong = |why: &dyn std::fmt::Display| Error::new(ErrorKind::Invalid, what(), why);
    let file = File::open(path).map_err(|error| match error.kind() {
        IoErrorKind::NotFound => wrong(&"there is no such file").with_remedy(format!(
            "`starfish agents up` makes ~/.config/starfish/key. `{NONE}` in its place means that there is to be no key"
        )),
        _ => wrong(&error),
    })?;
    let mode = file.metadata().map_err(|error| wrong(&error))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        let why = format!("others than its user may use it: its mode is {mode:04o}");
        return Err(wrong(&why).with_remedy(format!("chmod 600 {}", path.display())));
    }
    let mut text = String::new();
    // More than it can have is not read.
    file.take(1024).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    parse(text.trim()).ok_or_else(|| {
        let why = format!("it is not {} hexadecimal digits", 2 * Key::BYTES);
        wrong(&why).with_remedy("Copy it again from where it is right")
    })
}

fn parse(text: &str) -> Option<Key> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    let bytes = bytes.try_into().ok().filter(|_| digits.len() == 2 * Key::BYTES)?;
    Some(Key::new(bytes))
}

/// Draws a new key and writes it to a file that only its user may read; says whether there was none. A file that is
/// there is left as it is.
pub fn make(path: &Path) -> Result<bool> {
    if path.exists() {
        return Ok(false);
    }
    let failed = |why: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Io, format!("making the key file {}", path.display()), why)
    };
    let mut bytes = [0; Key::BYTES];
    getrandom::fill(&mut bytes).map_err(|error| failed(&error))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| failed(&error))?;
    }
    // Concurrent readers find no key or a complete one.
    let whole = path.with_extension(format!("new-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&whole);
    let written = file.and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()
    });
    let made = written.and_then(|()| fs::hard_link(&whole, path));
    // A file left over would be an unused key.
    let _ = fs::remove_file(&whole);
    match made {
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => Ok(false),
        other => other.map(|()| true).map_err(|error| failed(&error)),
    }
}

/// What can be done about nodes that do not have the same key. `path` is this side's file, where there is one or would
/// be; `there` is what the other side is.
pub fn remedy(mismatch: KeyMismatch, path: Option<&Path>, there: &str) -> String {
    let usual = "~/.config/starfish/key";
    let here = path.map_or_else(|| usual.to_owned(), |path| path.display().to_string());
    let another = format!("name another file with --key FILE or {VARIABLE}");
    match mismatch {
        KeyMismatch::OnlyHere => format!(
            "Copy {here} to {there}, as {usual} with mode 0600 (scp -p), or start it with --key FILE; or, to do without \
             a key, say --key {NONE} here"
        ),
        KeyMismatch::OnlyThere => format!(
            "Copy the key file of {there}, {usual} if it was given no other, to {here} here with mode 0600 (scp -p), or \
             {another}"
        ),
        KeyMismatch::Differ => format!(
            "One of the two is not of this cluster: copy the right key file over the other (here it is {here}), with \
             mode 0600 (scp -p), or {another}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_that_is_made_is_read_and_stays() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("config/starfish/key");
        assert_eq!(make(&path), Ok(true));
        let key = read(&path).expect("a key");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(make(&path), Ok(false));
        assert!(read(&path) == Ok(key.clone()) && find(Some(&path)) == Ok(Some(key.clone())));
        let others = directory.path().join("other");
        assert_eq!(make(&others), Ok(true));
        assert!(read(&others) != Ok(key), "another key");
        assert_eq!(
            fs::read_dir(path.parent().expect("one")).expect("there").count(),
            1,
            "nothing is left over"
        );
        assert_eq!((find(Some(Path::new(NONE))), super::path(Some(Path::new(NONE)))), (Ok(None), None));
    }

    #[test]
    fn what_is_no_key_is_told_with_its_remedy() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("key");
        let missing = find(Some(&path)).expect_err("it is named");
        assert!(missing.why().contains("no such file") && missing.what().contains(&*path.to_string_lossy()));
        let write = |text: &str, mode: u32| {
            let _ = fs::remove_file(&path);
            fs::write(&path, text).expect("room");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            read(&path)
        };
        let digits = "0123456789abcdef".repeat(4);
        let bytes: Vec<u8> = (0..4).flat_map(|_| [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]).collect();
        assert_eq!(write(&format!("{digits}\n"), 0o600), Ok(Key::new(bytes.try_into().expect("32 bytes"))));
        for mode in [0o640, 0o604, 0o620] {
            let error = write(&digits, mode).expect_err("others may read or write it");
            assert_eq!(error.remedy(), Some(&*format!("chmod 600 {}", path.display())), "{error}");
        }
        for text in
            ["", "abc", &digits[1..], &format!("{digits}0"), &digits.replace('0', "+"), &"é".repeat(64)]
        {
            let error = write(text, 0o600).expect_err("no key");
            assert!(error.why().contains("64 hexadecimal digits"), "{text:?}: {error}");
        }
    }
}
