//! The user's settings of a recording, from environment variables.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::error::{Result, invalid};
use crate::row::{BYTES_MAX, SLOT_BYTES};

/// Minimum size in bytes of a buffer: large enough for a record of maximum size and others.
const BUFFER_BYTES_MIN: usize = 1 << 14;

/// Settings of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True if recording is on.
    pub is_on: bool,
    /// Path of the file; `None` for `NAME.tlv`, where `NAME` is the name of the recording.
    pub file: Option<PathBuf>,
    /// Buffer size of each thread in bytes, 16 bytes per record; a power of two from 16 KiB to 1 GiB.
    pub buffer_bytes: usize,
    /// True if each begin and end of a state also records the number of context switches. This costs one system call
    /// for each begin and end.
    pub switches: bool,
}

impl Default for Settings {
    /// Returns settings with recording on, in the file named after the recording, with a buffer of 1 MiB for each
    /// thread. A buffer holds 65,536 records; the writer empties it ten times a second, or when it is half full.
    fn default() -> Self {
        Settings { is_on: true, file: None, buffer_bytes: 1 << 20, switches: false }
    }
}

impl Settings {
    /// Returns the defaults, overridden by environment variables: `TLV`, `TLV_FILE`, `TLV_BUFFER` and `TLV_SWITCHES`.
    pub fn of_environment() -> Result<Self> {
        Self::of(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let mut settings = Settings::default();
        if let Some(value) = text("TLV") {
            settings.is_on = is_on("TLV", &value)?;
        }
        if let Some(value) = text("TLV_SWITCHES") {
            settings.switches = is_on("TLV_SWITCHES", &value)?;
        }
        if let Some(value) = text("TLV_BUFFER") {
            settings.buffer_bytes = bytes(&value)?;
        }
        settings.file = variable("TLV_FILE").map(|file| in_full(&file)).transpose()?;
        settings.check()?;
        Ok(settings)
    }

    /// Fails if the buffer size is invalid.
    pub(crate) fn check(&self) -> Result<()> {
        let bytes = self.buffer_bytes;
        if !bytes.is_power_of_two() || !(BUFFER_BYTES_MIN..=BYTES_MAX).contains(&bytes) {
            let why = "expected a power of two of bytes, from 16K to 1G";
            return Err(invalid(format!("a buffer of {bytes} bytes"), why));
        }
        Ok(())
    }

    /// Returns the number of slots in each thread's ring.
    pub(crate) fn slots(&self) -> usize {
        self.buffer_bytes / SLOT_BYTES
    }
}

fn is_on(name: &str, value: &str) -> Result<bool> {
    match &*value.to_lowercase() {
        "on" | "1" | "yes" | "true" => Ok(true),
        "off" | "0" | "no" | "false" => Ok(false),
        _ => Err(invalid(format!("{name}={value}"), "expected on or off")),
    }
}

fn bytes(value: &str) -> Result<usize> {
    let (digits, shift) = match value.to_uppercase().strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (
            digits.to_owned(),
            if value.ends_with(['k', 'K']) {
                10
            } else if value.ends_with(['m', 'M']) {
                20
            } else {
                30
            },
        ),
        None => (value.to_owned(), 0),
    };
    let number: Option<usize> = digits.parse().ok();
    number.and_then(|number| number.checked_mul(1 << shift)).ok_or_else(|| {
        invalid(format!("TLV_BUFFER={value}"), "expected a number of bytes, such as 65536, 64K or 1M")
    })
}

/// Returns the name of a file after replacing `%p` by this process id, `%h` by this computer's name and `%%` by a
/// percent sign.
fn in_full(name: &OsStr) -> Result<PathBuf> {
    let mut full = Vec::new();
    let mut bytes = name.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match (byte, byte == b'%') {
            (_, false) => full.push(byte),
            _ => match bytes.next() {
                Some(b'p') => full.extend(std::process::id().to_string().bytes()),
                Some(b'h') => full.extend(crate::process::host().bytes()),
                Some(b'%') => full.push(b'%'),
                _ => {
                    let why = "expected p (this process), h (this computer) or % after %";
                    return Err(invalid(format!("TLV_FILE={}", name.to_string_lossy()), why));
                }
            },
        }
    }
    Ok(OsString::from_vec(full).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> Result<Settings> {
        Settings::of(|name| given.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn missing_variables_have_defaults_and_others_are_parsed() {
        assert_eq!(of(&[]).expect("nothing is wrong"), Settings::default());
        let variables = [("TLV", "Off"), ("TLV_FILE", "a%%b"), ("TLV_BUFFER", "64K"), ("TLV_SWITCHES", "on")];
        let settings =
            Settings { is_on: false, file: Some("a%b".into()), buffer_bytes: 65536, switches: true };
        assert_eq!(of(&variables).expect("nothing is wrong"), settings);
        let file = of(&[("TLV_FILE", "x.%p.tlv")]).expect("nothing is wrong").file;
        assert_eq!(file, Some(format!("x.{}.tlv", std::process::id()).into()));
    }

    #[test]
    fn invalid_variables_are_reported_with_their_value() {
        for (name, value) in [
            ("TLV", "maybe"),
            ("TLV_SWITCHES", "2"),
            ("TLV_FILE", "x%q"),
            ("TLV_FILE", "x%"),
            ("TLV_BUFFER", "1T"),
            ("TLV_BUFFER", "99999999999999999999G"),
            ("TLV_BUFFER", "-1"),
        ] {
            let error = of(&[(name, value)]).expect_err(value).to_string();
            assert!(error.contains(&format!("{name}={value}")), "{error}");
        }
        for bytes in ["100000", "1K", "2G", "0"] {
            assert!(of(&[("TLV_BUFFER", bytes)]).is_err(), "{bytes}");
        }
    }
}
