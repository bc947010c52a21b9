//! Parser of sizes in options, settings, plans and descriptions.

use crate::decimal::Decimal;

/// Units of sizes, for messages such as "expected ... in ...".
pub const SIZE_UNITS: &str = "B, KiB, MiB, GiB, TiB, PiB, or by powers of ten KB, MB, GB, TB, PB";

/// Returns the size in `text` as a number of bytes, if it is a whole number that fits 64 bits: `8192`, `64k`, `64 KiB`,
/// `1.5MiB`, `10 MB`.
///
/// `KiB` to `PiB`, and single letters, are powers of 1024; `KB` to `PB` are powers of 1000, as in rates. Single letters
/// can be lowercase. Blanks may separate number and unit.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Decimal::parse(number)?.whole(bytes_in(unit.trim_start_matches(' '))?)
}

/// Returns the number of bytes in a unit.
fn bytes_in(unit: &str) -> Option<u64> {
    if matches!(unit, "" | "B") {
        return Some(1);
    }
    let letter = unit.chars().next()?;
    let power = 1 + "KMGTP".find(letter.to_ascii_uppercase())? as u32;
    match &unit[1..] {
        "" => Some(1024_u64.pow(power)),
        "i" | "iB" if letter.is_ascii_uppercase() => Some(1024_u64.pow(power)),
        "B" if letter.is_ascii_uppercase() || letter == 'k' => Some(1000_u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_are_parsed_with_common_units() {
        for (text, bytes) in [
            ("0", 0),
            ("8", 8),
            ("8 B", 8),
            ("64k", 65_536),
            ("64 K", 65_536),
            ("64KiB", 65_536),
            ("64KB", 64_000),
            ("64 kB", 64_000),
            ("1.5MiB", 3 << 19),
            ("10 MB", 10_000_000),
            ("2G", 2 << 30),
            ("2g", 2 << 30),
            ("16 TiB", 16 << 40),
            ("1PiB", 1 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn invalid_and_fractional_sizes_are_rejected() {
        for text in [
            "",
            " ",
            "K",
            "KiB",
            "-1",
            "+1",
            "0.3 KiB",
            "1.",
            ".5 MiB",
            "1.2.3 MiB",
            "1 parsec",
            "1kb",
            "1mB",
            "1kiB",
            "1e6",
            "0x10",
            "8\t",
            "99999999999T",
            "99999 PiB",
            "1 \u{212a}iB",
        ] {
            assert_eq!(parse_bytes(text), None, "{text:?}");
        }
        let endless = format!("1.{} MiB", "0".repeat(100));
        assert_eq!(parse_bytes(&endless), Some(1 << 20));
        assert_eq!(parse_bytes(&format!("{endless}1").replace(" MiB", "")), None);
    }
}
