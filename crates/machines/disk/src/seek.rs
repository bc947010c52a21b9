//! Seek time: the two-part curve of Ruemmler & Wilkes (1994).
//!
//! The seek time is `base + per_root * sqrt(distance)` for short distances, over which the arm mostly accelerates, and
//! `base + per_cylinder * distance` for longer distances, over which its speed is constant. The published curve is a
//! fit to measured seeks and includes the settling of the head.

use machine::Duration;

#[derive(Clone, Debug)]
pub(crate) struct SeekCurve {
    short_base: u64,
    short_per_root: u64,
    short_cylinders: u64,
    long_base: u64,
    long_per_cylinder: u64,
}

impl SeekCurve {
    pub(crate) fn new(seek: &description::Seek) -> Self {
        SeekCurve {
            short_base: seek.short_base.value.0.as_nanos(),
            short_per_root: seek.short_per_root.value.0.as_nanos(),
            short_cylinders: seek.short_cylinders.value.into(),
            long_base: seek.long_base.value.0.as_nanos(),
            long_per_cylinder: seek.long_per_cylinder.value.0.as_nanos(),
        }
    }

    /// Returns the time to move the arm over `distance` cylinders, rounded up to a whole nanosecond; 0 for distance 0.
    pub(crate) fn time(&self, distance: u64) -> Duration {
        let nanoseconds = match distance {
            0 => 0,
            _ if distance <= self.short_cylinders => {
                self.short_base + multiple_of_root(self.short_per_root, distance)
            }
            _ => self.long_base + self.long_per_cylinder * distance,
        };
        Duration::from_nanos(nanoseconds)
    }
}

/// Returns `factor * sqrt(number)`, rounded up, computed without rounding errors.
fn multiple_of_root(factor: u64, number: u64) -> u64 {
    let square = u128::from(factor) * u128::from(factor) * u128::from(number);
    let root = square.isqrt();
    let root = if root * root < square { root + 1 } else { root };
    u64::try_from(root).expect("a description limits its times")
}

#[cfg(test)]
mod tests {
    use super::*;
    use description::{Description, DiskDescription};

    #[test]
    fn the_curve_passes_the_published_points() {
        let DiskDescription::Mechanical(disk) = DiskDescription::load("hp97560").unwrap() else {
            unreachable!("the HP 97560 is mechanical");
        };
        let curve = SeekCurve::new(&disk.seek);
        let time = |distance| curve.time(distance).as_nanos();
        assert_eq!(time(0), 0);
        assert_eq!(time(1), 3_640_000);
        assert_eq!(time(4), 4_040_000);
        assert_eq!(time(383), 11_068_155); // 3.24 ms + 0.4 ms * 19.57038...
        assert_eq!(time(384), 11_072_000);
        assert_eq!(time(1961), 23_688_000);
    }

    #[test]
    fn the_root_is_rounded_up() {
        assert_eq!(multiple_of_root(3, 4), 6);
        assert_eq!(multiple_of_root(1, 2), 2);
        assert_eq!(multiple_of_root(400_000, 2), 565_686);
    }
}
