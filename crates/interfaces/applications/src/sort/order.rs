//! The order of lines.

use std::cmp::Ordering;

/// Order of lines. Lines are compared without their newlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// True to compare the numbers at the start of lines.
    pub(super) numeric: bool,
    /// True to sort in descending order.
    pub(super) reverse: bool,
    /// True to keep only the first of equal lines.
    pub(super) unique: bool,
    /// True to keep equal lines in the order of the input.
    pub(super) stable: bool,
}

impl Order {
    /// True if two lines have equal keys.
    pub(super) fn equal(self, one: &[u8], other: &[u8]) -> bool {
        if self.numeric { Number::of(one) == Number::of(other) } else { one == other }
    }

    /// Compares two lines; equal ones stay in the order of the input.
    pub(super) fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        let keys = if self.numeric { Number::of(one).cmp(&Number::of(other)) } else { one.cmp(other) };
        let order = match keys {
            // Last-resort comparison, as in POSIX sort.
            Ordering::Equal if self.numeric && !self.unique && !self.stable => one.cmp(other),
            keys => keys,
        };
        if self.reverse { order.reverse() } else { order }
    }

    /// Returns a number that orders lines like [`compare`](Self::compare), or is equal. It decides most comparisons.
    pub(super) fn prefix(self, line: &[u8]) -> u64 {
        let prefix = if self.numeric { Number::of(line).prefix() } else { text_prefix(line) };
        if self.reverse { !prefix } else { prefix }
    }
}

/// Returns the first eight bytes as a big-endian number.
fn text_prefix(line: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = line.len().min(8);
    bytes[..count].copy_from_slice(&line[..count]);
    u64::from_be_bytes(bytes)
}

/// The number at the start of a line, of any length: a sign, and digits without insignificant zeros.
///
/// A line without a number counts as 0, and minus 0 is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Number<'a> {
    fn of(line: &'a [u8]) -> Self {
        let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        let (is_negative, rest) = match line[start..].strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, &line[start..]),
        };
        let (whole, rest) = digits(rest);
        let (fraction, _) = rest.strip_prefix(b".").map_or((&[][..], rest), digits);
        let first = whole.iter().position(|&digit| digit != b'0').unwrap_or(whole.len());
        let last = fraction.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        let (whole, fraction) = (&whole[first..], &fraction[..last]);
        let is_zero = whole.is_empty() && fraction.is_empty();
        Number { is_negative: is_negative && !is_zero, whole, fraction }
    }

    /// Returns a value that never decreases with the number.
    fn prefix(&self) -> u64 {
        const MIDDLE: u64 = 1 << 63;
        let digit = |value: u64, digit: &u8| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        let magnitude = self.whole.iter().fold(0, digit).min(MIDDLE - 1);
        if self.is_negative { MIDDLE - magnitude } else { MIDDLE + magnitude }
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitude = || {
            let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(other.whole));
            whole.then_with(|| self.fraction.cmp(other.fraction))
        };
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
        }
    }
}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMERIC: Order = Order { numeric: true, reverse: false, unique: false, stable: true };

    #[test]
    fn numbers_are_compared_as_numbers() {
        let sorted = ["-10", "-9.75", "-9.7", "-.5", "", "0.25", " .5", "\t1", "007.0001", "7.1", "10"];
        for (index, one) in sorted.iter().enumerate() {
            for (place, other) in sorted.iter().enumerate() {
                let order = NUMERIC.compare(one.as_bytes(), other.as_bytes());
                assert_eq!(order, index.cmp(&place), "{one:?} {other:?}");
            }
        }
        for (one, same) in
            [("", "abc"), ("-0", "0"), ("-", "+5"), ("1e3", "1"), ("1.50", "01.5x"), ("--3", "0")]
        {
            assert!(NUMERIC.equal(one.as_bytes(), same.as_bytes()), "{one:?} {same:?}");
        }
        let (long, longer) = ("9".repeat(40), format!("1{}", "0".repeat(40)));
        assert_eq!(NUMERIC.compare(long.as_bytes(), longer.as_bytes()), Ordering::Less);
    }

    #[test]
    fn equal_keys_are_ordered_by_bytes_unless_stable_or_unique() {
        let all = Order { numeric: true, ..Order::default() };
        assert_eq!(all.compare(b"1 b", b"1 a"), Ordering::Greater);
        assert_eq!(Order { reverse: true, ..all }.compare(b"1 b", b"1 a"), Ordering::Less);
        assert_eq!(Order { stable: true, ..all }.compare(b"1 b", b"1 a"), Ordering::Equal);
        assert_eq!(Order { unique: true, ..all }.compare(b"1 b", b"1 a"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn prefix_order_never_contradicts_full_order(
            one in "[-. 0-9a\u{0}]{0,24}", other in "[-. 0-9a\u{0}]{0,24}",
            numeric: bool, reverse: bool, unique: bool, stable: bool,
        ) {
            let order = Order { numeric, reverse, unique, stable };
            let (one, other) = (one.as_bytes(), other.as_bytes());
            match order.prefix(one).cmp(&order.prefix(other)) {
                Ordering::Equal => {}
                decided => prop_assert_eq!(order.compare(one, other), decided),
            }
            prop_assert_eq!(order.compare(one, other), order.compare(other, one).reverse());
        }
    }
}
