//! File names of objects: maps any object name to a name that stays within the directory, and back.
//!
//! Characters with a special meaning (`/`, `%`, control characters, a leading `.`) are written as `%` and two
//! hexadecimal digits. If the result is too long for a file name, it is shortened to its beginning and a hash of the
//! whole; then only the object's header has the whole name.

use std::ffi::OsStr;
use std::fmt::Write;

/// Stage of an object. Objects created by this version stay pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Stage of an object since its creation.
    Pending,
    /// Stage of an object since its file was complete.
    Published,
}

impl Stage {
    /// Both stages, in their order.
    pub const ALL: [Stage; 2] = [Stage::Pending, Stage::Published];
}

/// State of an object according to the name of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectFileKind {
    Published,
    Pending,
    /// Pending, and never flushed: an incomplete file has never been an object.
    New,
}

impl ObjectFileKind {
    pub(crate) const ALL: [ObjectFileKind; 3] =
        [ObjectFileKind::Published, ObjectFileKind::Pending, ObjectFileKind::New];

    /// Returns the kinds of files that an object of this stage may have.
    pub(crate) fn of(stage: Stage) -> &'static [ObjectFileKind] {
        match stage {
            Stage::Published => &[ObjectFileKind::Published],
            Stage::Pending => &[ObjectFileKind::Pending, ObjectFileKind::New],
        }
    }

    /// Returns the kind of the file of this name.
    pub(crate) fn by_name(file_name: &str) -> Option<ObjectFileKind> {
        ObjectFileKind::ALL.into_iter().find(|kind| file_name.ends_with(kind.suffix()))
    }

    /// Returns the suffix of the file names. Other files in the directory are not ours.
    const fn suffix(self) -> &'static str {
        match self {
            ObjectFileKind::Published => ".stripe",
            ObjectFileKind::Pending => ".begun",
            ObjectFileKind::New => ".new",
        }
    }
}

/// Length of the longest suffix. The same for all kinds, so that only the object's name decides if its file name is
/// shortened.
const SUFFIX_BYTES_MAX: usize = ObjectFileKind::Published.suffix().len();

/// Limit of file names in bytes: no common file system allows longer ones.
const FILE_NAME_BYTES_MAX: usize = 255;

/// Prefix of a shortened name. In a name that was not shortened, digits follow a `%`.
const SHORTENED: &str = "%~";

/// Prefix of the names of files that are not objects. No object's file name begins with it.
const OWN: &str = ".starfish.";

/// Number of bytes that a shortened name keeps of the full name.
const KEPT_BYTES: usize = 150;

const _: () = assert!(SHORTENED.len() + KEPT_BYTES + 1 + 64 + SUFFIX_BYTES_MAX <= FILE_NAME_BYTES_MAX);
const _: () = assert!(ObjectFileKind::Pending.suffix().len() <= SUFFIX_BYTES_MAX);
const _: () = assert!(ObjectFileKind::New.suffix().len() <= SUFFIX_BYTES_MAX);

/// Object named by a file name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Name(String),
    /// Some object; its header contains its name.
    Shortened,
}

/// Returns the name of the file of this kind for the object `name`.
pub(crate) fn encode(name: &str, kind: ObjectFileKind) -> String {
    let mut encoded = escape(name);
    if encoded.len() + SUFFIX_BYTES_MAX > FILE_NAME_BYTES_MAX {
        let kept = (0..=KEPT_BYTES).rev().find(|&end| encoded.is_char_boundary(end)).unwrap_or(0);
        let hash = blake3::hash(name.as_bytes()).to_hex();
        encoded = format!("{SHORTENED}{}~{hash}", &encoded[..kept]);
    }
    encoded + kind.suffix()
}

/// Returns true if a file of this name has a stripe of a numbered file, whose name on disks begins with `/`.
pub(crate) fn is_numbered(file_name: &OsStr) -> bool {
    let decoded = file_name.to_str().and_then(decode);
    matches!(decoded, Some(Decoded::Name(name)) if name.starts_with('/'))
}

/// Returns true if a file of this name holds a published object. Objects of numbered files are never published.
pub(super) fn is_published(file_name: &OsStr) -> bool {
    let text = file_name.to_str().filter(|text| text.ends_with(ObjectFileKind::Published.suffix()));
    match text.and_then(decode) {
        Some(Decoded::Name(name)) => !name.starts_with('/'),
        Some(Decoded::Shortened) => true,
        None => false,
    }
}

/// Returns true if a file of this name belongs to a disk: to an object, or to the disk's administration.
pub(super) fn is_of_a_disk(file_name: &OsStr) -> bool {
    file_name.to_str().is_some_and(|name| name.starts_with(OWN) || decode(name).is_some())
}

/// Returns the object in a file of this name, if the file can be one of ours.
pub(crate) fn decode(file_name: &str) -> Option<Decoded> {
    let kind = ObjectFileKind::by_name(file_name)?;
    let encoded = file_name.strip_suffix(kind.suffix())?;
    if encoded.starts_with(SHORTENED) {
        return Some(Decoded::Shortened);
    }
    let name = unescape(encoded)?;
    // Accept only names that `encode` produces: two files must never name the same object.
    (encode(&name, kind) == file_name).then_some(Decoded::Name(name))
}

fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for (at, character) in name.char_indices() {
        let is_misread = matches!(character, '/' | '\\' | '%') || character.is_ascii_control();
        if is_misread || (at == 0 && character == '.') {
            write!(escaped, "%{:02X}", u32::from(character)).expect("a string takes all");
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn unescape(escaped: &str) -> Option<String> {
    let mut parts = escaped.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let byte = u8::from_str_radix(part.get(..2)?, 16).ok()?;
        name.push(char::from(byte));
        name.push_str(&part[2..]);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_readable_as_file_names() {
        assert_eq!(encode("matrix.dat", ObjectFileKind::Published), "matrix.dat.stripe");
        assert_eq!(encode("größe", ObjectFileKind::Published), "größe.stripe");
        assert_eq!(encode("deep/er", ObjectFileKind::Published), "deep%2Fer.stripe");
        assert_eq!(encode("..", ObjectFileKind::Published), "%2E..stripe");
        assert_eq!(encode("", ObjectFileKind::Published), ".stripe");
        assert_eq!(encode("matrix.dat", ObjectFileKind::Pending), "matrix.dat.begun");
        assert_eq!(encode("/0123456789abcdef", ObjectFileKind::New), "%2F0123456789abcdef.new");
    }

    #[test]
    fn published_objects_are_recognised_by_their_file_names() {
        let long = encode(&"x".repeat(300), ObjectFileKind::Published);
        for published in ["a.stripe", "a%2Fb.stripe", &*long] {
            assert!(is_published(published.as_ref()), "{published}");
        }
        for other in ["a.begun", "a.new", "%2F0123456789abcdef.stripe", "%61.stripe", "a.stripe.bak"] {
            assert!(!is_published(other.as_ref()), "{other}");
        }
    }

    #[test]
    fn foreign_files_are_not_objects() {
        for foreign in
            ["README", "x.stripe.bak", "a%2.stripe", "a%zz.stripe", "%61.stripe", "..stripe", "a%2f.stripe"]
        {
            assert_eq!(decode(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn too_long_names_are_shortened_to_different_names() {
        let (long, other) = ("/ü".repeat(66), "/ü".repeat(65) + "/u");
        assert!(
            encode(&long, ObjectFileKind::Published).len() <= 255
                && encode(&long, ObjectFileKind::Published) != encode(&other, ObjectFileKind::Published)
        );
        assert_eq!(decode(&encode(&long, ObjectFileKind::Published)), Some(Decoded::Shortened));
    }
}
