//! File of the cluster key: its path, its contents, and its permissions.
//!
//! The key is 32 bytes as 64 hexadecimal digits. Optional words follow: `previous` and the key that this one replaces,
//! and `clear` if connections are not to be encrypted. The same file is copied to all computers of the cluster, so they
//! agree on its contents. Only its owner may read it. The key file is the first of these that is named or exists: the
//! file that the caller names, the file that STARFISH_KEY_FILE names, and `starfish/key` in the user's configuration
//! directory.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use machine::KeyMismatch;
use real::{Key, Keys};

use crate::agents::base_directory;
use crate::error::{Error, ErrorKind, Result};

/// Environment variable that names the file.
pub const VARIABLE: &str = "STARFISH_KEY_FILE";

/// Default path of the key file, as messages show it.
const USUAL: &str = "~/.config/starfish/key";

/// Returns the keys of this user's programs. `named` is the key file that the caller names, if any.
///
/// Fails if the file is missing, unreadable, malformed or readable by others.
pub fn find(named: Option<&Path>) -> Result<Keys> {
    read(&path(named)?)
}

/// Creates the default key file if no key file is named and the default one is missing. Returns the path of the created
/// file.
pub fn make_usual(named: Option<&Path>) -> Result<Option<PathBuf>> {
    if named.is_some() || of_environment().is_some() {
        return Ok(None);
    }
    let path = path(None)?;
    Ok(make(&path, true)?.then_some(path))
}

/// Returns the path of the key file, which may be missing.
///
/// Fails if no file is named and the user has no home directory.
pub fn path(named: Option<&Path>) -> Result<PathBuf> {
    let usual =
        || base_directory("XDG_CONFIG_HOME", ".config").map(|directory| directory.join("starfish/key"));
    named.map(Path::to_owned).or_else(of_environment).or_else(usual).ok_or_else(|| {
        Error::new(ErrorKind::Invalid, "the key file", "the user has no home directory")
            .with_remedy(format!("Name the file with --key FILE or {VARIABLE}"))
    })
}

fn of_environment() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the keys in this file. Fails if others may read it.
pub fn read(path: &Path) -> Result<Keys> {
    let what = || format!("the key file {}", path.display());
    let wrong = |why: &dyn std::fmt::Display| Error::new(ErrorKind::Invalid, what(), why);
    let file = File::open(path).map_err(|error| match error.kind() {
        IoErrorKind::NotFound => wrong(&"no such file").with_remedy(format!(
            "Copy it from another computer of the cluster, where it is usually {USUAL} (scp -p), or name \
             another file with --key FILE or {VARIABLE}. `starfish agents up` and `starfish key new` create \
             the first one"
        )),
        _ => wrong(&error),
    })?;
    let metadata = file.metadata().map_err(|error| wrong(&error))?;
    if !metadata.is_file() {
        return Err(wrong(&"it is not a regular file"));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let why = format!("other users may access the file: its mode is {mode:04o}");
        return Err(wrong(&why).with_remedy(format!("chmod 600 {}", path.display())));
    }
    let mut text = String::new();
    // Read more bytes than a valid key file has, so that a longer file is rejected.
    file.take(1024).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    parse(&text).ok_or_else(|| {
        let why = format!("the key must be {} hexadecimal digits", 2 * Key::BYTES);
        wrong(&why).with_remedy("Copy it again from a computer where it is correct")
    })
}

fn parse(text: &str) -> Option<Keys> {
    let mut words = text.split_ascii_whitespace();
    let mut keys = Keys::new(parse_key(words.next()?)?);
    while let Some(word) = words.next() {
        match word {
            "previous" if keys.previous.is_none() => keys.previous = Some(parse_key(words.next()?)?),
            "clear" if keys.encrypts => keys.encrypts = false,
            _ => return None,
        }
    }
    Some(keys)
}

fn parse_key(text: &str) -> Option<Key> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    let bytes = bytes.try_into().ok().filter(|_| digits.len() == 2 * Key::BYTES)?;
    Some(Key::new(bytes))
}

/// Draws a new key and writes it to a file that only the owner may read. If the file exists, leaves it unchanged and
/// returns false. Connections with this key are encrypted if `encrypts` is set.
pub fn make(path: &Path, encrypts: bool) -> Result<bool> {
    if path.exists() {
        return Ok(false);
    }
    let keys = Keys { encrypts, ..Keys::draw().map_err(|error| failed(path, &error))? };
    // Publish by a hard link, so that concurrent callers find no file or a complete one.
    match write(path, &keys, |new, path| fs::hard_link(new, path)) {
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => Ok(false),
        other => other.map(|()| true).map_err(|error| failed(path, &error)),
    }
}

/// Replaces the key in this file by a new one, and keeps the old one as the previous key, which nodes accept, too.
///
/// Fails if there is a previous key already, since some nodes may still have only that key.
pub fn rotate(path: &Path) -> Result<Keys> {
    let before = read(path)?;
    if before.previous.is_some() {
        return Err(failed(path, &"the previous rotation is not finished").with_remedy(
            "When all computers have this file and all agents have been restarted: `starfish key rotate \
             --finish`",
        ));
    }
    let new = Keys::draw().map_err(|error| failed(path, &error))?;
    let keys = Keys { previous: Some(before.current), encrypts: before.encrypts, ..new };
    replace(path, keys)
}

/// Removes the previous key from this file.
///
/// Fails if there is no previous key.
pub fn finish_rotation(path: &Path) -> Result<Keys> {
    let before = read(path)?;
    if before.previous.is_none() {
        return Err(failed(path, &"the file has no previous key"));
    }
    replace(path, Keys { previous: None, ..before })
}

fn replace(path: &Path, keys: Keys) -> Result<Keys> {
    write(path, &keys, |new, path| fs::rename(new, path)).map_err(|error| failed(path, &error))?;
    Ok(keys)
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write the key file {}", path.display()), why)
}

/// Writes the keys to a new file, to which `publish` then gives the final name.
fn write(
    path: &Path,
    keys: &Keys,
    publish: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = writeln!(file, "{}", text(keys)).and_then(|()| file.sync_all());
    let published = written.and_then(|()| publish(&new, path));
    // Remove the temporary file in any case, so that no copy of the key remains.
    let _ = fs::remove_file(&new);
    published
}

/// Returns the contents of a key file, on one line.
pub fn text(keys: &Keys) -> String {
    let digits = |key: &Key| key.bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut text = digits(&keys.current);
    if let Some(previous) = &keys.previous {
        text += &format!(" previous {}", digits(previous));
    }
    if !keys.encrypts {
        text += " clear";
    }
    text
}

/// Returns the remedy for nodes that do not trust each other. `path` is this side's key file; `there` is the other
/// side.
pub fn remedy(mismatch: KeyMismatch, path: Option<&Path>, there: &str) -> String {
    let here = path.map_or_else(|| USUAL.to_owned(), |path| path.display().to_string());
    let other = match mismatch {
        KeyMismatch::Differ => "One of the two key files belongs to another cluster",
        KeyMismatch::ClearHere => "The key file here contains `clear`, and the one there does not",
        KeyMismatch::ClearThere => "The key file there contains `clear`, and the one here does not",
    };
    format!(
        "{other}. Replace the wrong key file by a copy of the right one, with mode 0600 (scp -p), or name \
         another file with --key FILE or {VARIABLE}. The file is {here} here, and by default {USUAL} at \
         {there}"
    )
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_new_key_is_readable_and_never_overwritten() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("config/starfish/key");
        assert_eq!(make(&path, true), Ok(true));
        let keys = read(&path).expect("a key");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(make(&path, false), Ok(false));
        assert!(read(&path) == Ok(keys.clone()) && find(Some(&path)) == Ok(keys.clone()));
        assert!(keys.encrypts && keys.previous.is_none());
        let other = directory.path().join("other");
        assert_eq!(make(&other, false), Ok(true));
        let other = read(&other).expect("a key");
        assert!(other.current != keys.current && !other.encrypts);
        assert_eq!(
            fs::read_dir(path.parent().expect("one")).expect("there").count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn a_rotated_key_stays_as_the_previous_one_until_the_finish() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("key");
        assert!(rotate(&path).expect_err("there is none").why().contains("no such file"));
        assert_eq!(make(&path, false), Ok(true));
        let before = read(&path).expect("a key");
        let keys = rotate(&path).expect("room");
        assert_eq!((read(&path), &keys.previous), (Ok(keys.clone()), &Some(before.current.clone())));
        assert!(keys.current != before.current && !keys.encrypts);
        assert!(
            rotate(&path).expect_err("not finished").remedy().is_some_and(|text| text.contains("--finish"))
        );
        let after = finish_rotation(&path).expect("room");
        assert_eq!((read(&path), after.previous), (Ok(Keys { previous: None, ..keys }), None));
        finish_rotation(&path).expect_err("it is finished");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
    }

    #[test]
    fn invalid_key_files_are_rejected_with_their_cause() {
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
        let key = Key::new(bytes.try_into().expect("32 bytes"));
        assert_eq!(write(&format!("{digits}\n"), 0o600), Ok(Keys::new(key.clone())));
        let all = Keys { previous: Some(key.clone()), encrypts: false, ..Keys::new(key) };
        assert_eq!(write(&format!("{digits}\nprevious {digits}\nclear\n"), 0o600), Ok(all.clone()));
        assert_eq!(write(&text(&all), 0o600), Ok(all));
        for mode in [0o640, 0o604, 0o620] {
            let error = write(&digits, mode).expect_err("others may read or write it");
            assert_eq!(error.remedy(), Some(&*format!("chmod 600 {}", path.display())), "{error}");
        }
        for text in [
            "",
            "abc",
            &digits[1..],
            &format!("{digits}0"),
            &digits.replace('0', "+"),
            &"é".repeat(64),
            &format!("{digits} previous"),
            &format!("{digits} clear clear"),
            &format!("{digits} open"),
        ] {
            let error = write(text, 0o600).expect_err("no key");
            assert!(error.why().contains("64 hexadecimal digits"), "{text:?}: {error}");
        }
        let error = read(directory.path()).expect_err("a directory");
        assert!(error.why().contains("not a regular file"), "{error}");
    }
}
