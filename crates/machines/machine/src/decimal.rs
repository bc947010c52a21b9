//! Parser of decimal numbers as people and programs write them: exact, without floating point.

/// Non-negative decimal number: `digits` times ten to the `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    exponent: i32,
}

/// Maximum number of kept digits: any 38 digits fit 128 bits.
const DIGITS_MAX: u32 = 38;

/// Exponent of the largest power of ten in 128 bits.
const POWER_MAX: u32 = 38;

impl Decimal {
    /// Reads a number such as `12`, `0.000012` or `1.5e-5`, without a sign. Decimals beyond the 38th digit only set a
    /// sticky bit if any of them is not zero, so that rounding is exact. Returns `None` for any other text, and for a
    /// whole part of more than 38 digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        if whole.is_empty() || fraction.is_empty() {
            return None;
        }
        let (mut digits, mut count, mut decimals) = (0_u128, 0, 0);
        for (index, byte) in whole.bytes().chain(fraction.bytes()).enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            let is_decimal = index >= whole.len();
            if count == DIGITS_MAX {
                if !is_decimal {
                    return None;
                }
                // Sticky bit: with further decimals, the number lies between two representable numbers.
                digits |= u128::from(digit > 0);
                continue;
            }
            digits = digits * 10 + u128::from(digit);
            count += u32::from(digits > 0);
            decimals += i32::from(is_decimal);
        }
        Some(Decimal { digits, exponent: i32::from(exponent.parse::<i16>().ok()?) - decimals })
    }

    /// Returns this number times `unit` as a fraction; `None` if it does not fit.
    fn times(self, unit: u64) -> Option<(u128, u128)> {
        let Decimal { mut digits, mut exponent } = self;
        let unit = u128::from(unit);
        if digits == 0 {
            return Some((0, 1));
        }
        // Drop low digits, but keep the whole digits of the quotient, and a sticky bit for the dropped digits.
        while exponent < 0 && (exponent.unsigned_abs() > POWER_MAX || digits.checked_mul(unit).is_none()) {
            let is_exact = digits.is_multiple_of(10);
            digits = (digits / 10) | u128::from(!is_exact);
            exponent += 1;
        }
        let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
        let units = digits.checked_mul(unit)?;
        if exponent < 0 { Some((units, power)) } else { Some((units.checked_mul(power)?, 1)) }
    }

    /// Returns this number times `unit`, rounded down; `None` if it exceeds 64 bits.
    pub fn floor(self, unit: u64) -> Option<u64> {
        let (numerator, denominator) = self.times(unit)?;
        u64::try_from(numerator / denominator).ok()
    }

    /// Returns this number times `unit`, rounded up; `None` if it exceeds 64 bits.
    pub fn ceil(self, unit: u64) -> Option<u64> {
        let (numerator, denominator) = self.times(unit)?;
        u64::try_from(numerator.div_ceil(denominator)).ok()
    }

    /// Returns this number times `unit`, rounded to the nearest, halves up; `None` if it exceeds 64 bits.
    pub fn round(self, unit: u64) -> Option<u64> {
        let (numerator, denominator) = self.times(unit)?;
        let (quotient, rest) = (numerator / denominator, numerator % denominator);
        u64::try_from(quotient + u128::from(rest >= denominator.div_ceil(2))).ok()
    }

    /// Returns this number times `unit` if the product is a whole number that fits 64 bits.
    pub fn whole(self, unit: u64) -> Option<u64> {
        self.floor(unit).filter(|&floor| self.ceil(unit) == Some(floor))
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    fn rounded(text: &str, unit: u64) -> [Option<u64>; 3] {
        let number = Decimal::parse(text).unwrap_or_else(|| panic!("{text}"));
        [number.floor(unit), number.round(unit), number.ceil(unit)]
    }

    #[test]
    fn every_digit_of_a_decimal_counts() {
        let sixty = format!("0.{}5", "0".repeat(60));
        for (text, unit, expected) in [
            ("0", 7, [0, 0, 0]),
            ("12", 1, [12, 12, 12]),
            ("1700000000000000.123", 1000, [1_700_000_000_000_000_123; 3]),
            ("9007199254740993", 1, [9_007_199_254_740_993; 3]),
            ("2.5", 1, [2, 3, 3]),
            ("2.4999999999999999999999999999999999999999999999999999", 1, [2, 2, 3]),
            ("2.5000000000000000000000000000000000000000000000000001", 1, [2, 3, 3]),
            ("1.00000000000000000000000000000000000000000000000", 10, [10, 10, 10]),
            ("1.5e3", 1, [1500; 3]),
            ("15E-1", 1, [1, 2, 2]),
            ("1e-300", u64::MAX, [0, 0, 1]),
            (&sixty, 1, [0, 0, 1]),
            ("0e99", 1, [0, 0, 0]),
            ("18446744073709551615", 1, [u64::MAX; 3]),
        ] {
            assert_eq!(rounded(text, unit), expected.map(Some), "{text}");
        }
        for text in ["18446744073709551616", "1e20", "1e300"] {
            assert_eq!(rounded(text, 1), [None; 3], "{text}");
        }
    }

    #[test]
    fn invalid_decimals_are_rejected() {
        let long = "1".repeat(39);
        for text in
            ["", ".", "1.", ".5", "-1", "+1", "1e", "e5", "1e99999", "0x10", "1 ", "1.2.3", "nan", &long]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
