//! Sizes in bytes, as people write them: `8192`, `64KiB`, `10M`.

use std::str::FromStr;

/// A number of bytes. All units are powers of two; `K` is short for `KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Units from the smallest on, each 1024 times the one before.
const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim_start());
        let power = UNITS.iter().position(|known| !unit.is_empty() && known.starts_with(unit));
        let power = if unit.is_empty() { Some(0) } else { power };
        let bytes = number
            .parse()
            .ok()
            .zip(power)
            .and_then(|(number, power): (u64, usize)| number.checked_mul(1 << (10 * power)));
        bytes.map(Size).ok_or_else(|| "expected a number of bytes such as 8192, 64KiB or 10MiB".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_or_none() {
        for (text, bytes) in [("8", 8), ("64KiB", 65_536), ("64 K", 65_536), ("2G", 2 << 30), ("1B", 1)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "-1", "1.5M", "1 parsec", "99999999999T"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
