//! Sizes in bytes, as people write them: `8`, `8192`, `64KiB`, `64 KiB`, `10M`.

use std::fmt;
use std::str::FromStr;

use machine::{SIZE_UNITS, parse_bytes};

/// A number of bytes, read by [`machine::parse_bytes`] and written in powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Units in ascending order, each 1024 times the previous one.
const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_bytes(text).map(Size).ok_or_else(|| {
            format!("expected a whole number of bytes such as 8192, 64KiB or 1.5MiB (in {SIZE_UNITS})")
        })
    }
}

impl Size {
    /// Formats the size in the largest unit that fits, with a decimal, for people.
    pub fn rounded(self) -> String {
        let power = (self.0.max(1).ilog2() / 10).min(UNITS.len() as u32 - 1);
        if power == 0 {
            return self.to_string();
        }
        format!("{:.1} {}", self.0 as f64 / f64::from(power * 10).exp2(), UNITS[power as usize])
    }
}

impl fmt::Display for Size {
    /// Formats the exact size, in the largest unit that allows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut number, mut power) = (self.0, 0);
        while number >= 1024 && number.is_multiple_of(1024) && power + 1 < UNITS.len() {
            number /= 1024;
            power += 1;
        }
        f.pad(&format!("{number} {}", UNITS[power]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("8", 8),
            ("8 B", 8),
            ("1B", 1),
            ("64KiB", 65_536),
            ("64 K", 65_536),
            ("10MiB", 10 << 20),
            ("2G", 2 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "KiB", "-1", "0.3K", "1 parsec", "1kb", "99999999999T", "99999999999TiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_rounded_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (20 << 20, "20.0 MiB"),
            (18_651_964 << 10, "17.8 GiB"),
            (3000 << 40, "3000.0 TiB"),
        ] {
            assert_eq!(Size(bytes).rounded(), text);
        }
    }

    #[test]
    fn sizes_are_written_exactly() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (65_536, "64 KiB"), (65_537, "65537 B"), (10 << 20, "10 MiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
