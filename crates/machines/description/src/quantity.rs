//! Numbers with units in the usual notation: `"2.2 ms"`, `"128 KiB"`, `"10e6 B/s"`.
//!
//! The decimal number is parsed exactly, without floating point, so `"2.2 ms"` is exactly 2,200,000 ns. Fractions are
//! rounded so that the machine becomes slower: times up, rates down. `MiB` is 2^20 bytes and `MB` 10^6, in sizes and
//! rates alike.

use std::fmt;
use std::marker::PhantomData;

use machine::{Decimal, Duration};
use serde::de::{Deserialize, Deserializer, Visitor};

/// Quantity written as text in a description.
pub trait WrittenAsText: Sized {
    /// Description of a correct text in the message "expected ...".
    const EXPECTED: &'static str;

    /// Parses `text`. Returns `None` if it does not match [`EXPECTED`](Self::EXPECTED).
    fn parse(text: &str) -> Option<Self>;
}

/// Duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// Number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Bytes per second, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// Cycles per second, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frequency(pub u64);

/// Revolutions per minute, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rpm(pub u64);

/// Amount of CPU work in cycles, written as a plain integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
pub struct Cycles(pub u64);

/// Bits in a byte, to convert network rates in bits per second.
const BYTE_BITS: u64 = 8;

impl Rpm {
    /// Returns the time of one revolution, rounded up to a whole nanosecond.
    pub fn period(self) -> Duration {
        Duration::from_nanos(60_000_000_000_u64.div_ceil(self.0))
    }
}

impl Cycles {
    /// Returns the time of this work on a CPU with clock `frequency`, rounded up to a whole nanosecond.
    ///
    /// # Panics
    /// Panics if this time is more than 584 years.
    pub fn at(self, frequency: Frequency) -> Duration {
        Duration::of_transfer(self.0, frequency.0)
    }
}

impl WrittenAsText for Time {
    const EXPECTED: &'static str = "a time such as \"2.2 ms\" (in ns, us, ms or s)";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = with_unit(text)?;
        let nanoseconds = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return None,
        };
        number.ceil(nanoseconds).map(Duration::from_nanos).map(Time)
    }
}

impl WrittenAsText for Bytes {
    const EXPECTED: &'static str = "a whole number of bytes such as \"128 KiB\" (in B, KiB, MiB, GiB, TiB, PiB, or by \
                                    powers of ten KB, MB, GB, TB, PB)";

    fn parse(text: &str) -> Option<Self> {
        machine::parse_bytes(text).map(Bytes)
    }
}

impl WrittenAsText for Rate {
    const EXPECTED: &'static str = "a rate above zero such as \"20 MiB/s\", \"125 MB/s\" or \"100 Gb/s\" (in B/s, \
                                    KiB/s, MiB/s, GiB/s, by powers of ten KB/s, MB/s, GB/s, or in bits kb/s, Mb/s, \
                                    Gb/s, Tb/s or kbit/s, Mbit/s, Gbit/s, Tbit/s)";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = with_unit(text)?;
        let bytes = match unit {
            "B/s" => 1,
            "KiB/s" => 1 << 10,
            "MiB/s" => 1 << 20,
            "GiB/s" => 1 << 30,
            "KB/s" => 1_000,
            "MB/s" => 1_000_000,
            "GB/s" => 1_000_000_000,
            "kb/s" | "kbit/s" => 1_000 / BYTE_BITS,
            "Mb/s" | "Mbit/s" => 1_000_000 / BYTE_BITS,
            "Gb/s" | "Gbit/s" => 1_000_000_000 / BYTE_BITS,
            "Tb/s" | "Tbit/s" => 1_000_000_000_000 / BYTE_BITS,
            _ => return None,
        };
        number.floor(bytes).filter(|&rate| rate > 0).map(Rate)
    }
}

impl WrittenAsText for Frequency {
    const EXPECTED: &'static str = "a frequency above zero such as \"50 MHz\" (in Hz, kHz, MHz or GHz)";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = with_unit(text)?;
        let hertz = match unit {
            "Hz" => 1,
            "kHz" => 1_000,
            "MHz" => 1_000_000,
            "GHz" => 1_000_000_000,
            _ => return None,
        };
        number.floor(hertz).filter(|&hertz| hertz > 0).map(Frequency)
    }
}

impl WrittenAsText for Rpm {
    const EXPECTED: &'static str = "a whole rotation speed above zero such as \"4002 rpm\"";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = with_unit(text)?;
        let rpm = number.whole(1).filter(|&rpm| unit == "rpm" && rpm > 0)?;
        Some(Rpm(rpm))
    }
}

/// Splits `text` into a number and a unit, separated by at most one blank. No unit begins with an `e`.
fn with_unit(text: &str) -> Option<(Decimal, &str)> {
    let unit = text.find(|letter: char| letter.is_ascii_alphabetic() && letter != 'e')?;
    let (number, unit) = text.split_at(unit);
    Some((Decimal::parse(number.strip_suffix(' ').unwrap_or(number))?, unit))
}

struct QuantityVisitor<Q>(PhantomData<Q>);

impl<Q: WrittenAsText> Visitor<'_> for QuantityVisitor<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Q::EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Q, E> {
        Q::parse(text).ok_or_else(|| E::custom(format!("expected {}, found {text:?}", Q::EXPECTED)))
    }
}

/// Reads a quantity from a string of any serialisation format; implements its `Deserialize`.
pub(crate) fn deserialize<'de, D, Q>(deserializer: D) -> Result<Q, D::Error>
where
    D: Deserializer<'de>,
    Q: WrittenAsText,
{
    deserializer.deserialize_str(QuantityVisitor(PhantomData))
}

macro_rules! deserialize_as_quantity {
    ($($quantity:ty),*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer)
            }
        }
    )*};
}

deserialize_as_quantity!(Time, Bytes, Rate, Frequency, Rpm);

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(text: &str) -> Option<u64> {
        Time::parse(text).map(|time| time.0.as_nanos())
    }

    #[test]
    fn decimal_times_are_exact() {
        assert_eq!(nanoseconds("2.2 ms"), Some(2_200_000));
        assert_eq!(nanoseconds("20 ns"), Some(20));
        assert_eq!(nanoseconds("1.5 us"), Some(1_500));
        assert_eq!(nanoseconds("3 s"), Some(3_000_000_000));
        assert_eq!(nanoseconds("2.2ms"), nanoseconds("2.2 ms"));
        assert_eq!(nanoseconds("3e-3s"), nanoseconds("3 ms"));
        assert_eq!(nanoseconds("3e-3 s"), Some(3_000_000));
        assert_eq!(nanoseconds("0 ms"), Some(0));
    }

    #[test]
    fn fractions_are_rounded_to_the_slower_side() {
        assert_eq!(nanoseconds("0.1 ns"), Some(1));
        assert_eq!(nanoseconds("1e-200 s"), Some(1));
        assert_eq!(Rate::parse("2.3 MiB/s"), Some(Rate(2_411_724)));
        assert_eq!(Rpm(4002).period(), Duration::from_nanos(14_992_504));
        assert_eq!(Cycles(7).at(Frequency(3_000_000_000)), Duration::from_nanos(3));
    }

    #[test]
    fn mib_are_powers_of_two_and_mb_of_ten() {
        assert_eq!(Rate::parse("20 MiB/s"), Some(Rate(20 << 20)));
        assert_eq!(Rate::parse("20 MB/s"), Some(Rate(20_000_000)));
        assert_eq!(Rate::parse("10e6 B/s"), Some(Rate(10_000_000)));
        for text in ["100 Gb/s", "100Gbit/s", "0.1 Tb/s", "100000 Mb/s", "1e8 kbit/s", "12.5 GB/s"] {
            assert_eq!(Rate::parse(text), Some(Rate(12_500_000_000)), "{text}");
        }
        assert_eq!(Bytes::parse("128 KiB"), Some(Bytes(131_072)));
        assert_eq!(Bytes::parse("128 KB"), Some(Bytes(128_000)));
        assert_eq!(Frequency::parse("50 MHz"), Some(Frequency(50_000_000)));
    }

    #[test]
    fn invalid_quantities_are_rejected() {
        for text in [
            "",
            " ",
            "ms",
            "2.2",
            "2.2e",
            "-1 ms",
            "+1 ms",
            "1. ms",
            ".5 ms",
            "1  ms",
            "1 ms ",
            "2.2 parsecs",
            "1e99 s",
            "999999999999999999999 ns",
            "1e s",
            "NaN s",
            "inf s",
            "0x10 ns",
            "1e19 s",
        ] {
            assert_eq!(nanoseconds(text), None, "{text:?}");
        }
        assert_eq!(Bytes::parse("0.5 B"), None);
        assert_eq!(Rate::parse("0 MB/s"), None);
        assert_eq!(Rpm::parse("0 rpm"), None);
        assert_eq!(Rpm::parse("72 Hz"), None);
    }
}
