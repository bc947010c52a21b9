//! The sides of a matrix and of a grid of nodes, and their defaults.
//!
//! The default is the most square shape that is not wider than tall: the number of columns is the largest divisor that
//! does not exceed the square root.
//!
//! ```text
//!   10 MiB of 8192-byte records       1280 =   40 x   32
//!   10 MiB of    8-byte records    1310720 = 1280 x 1024
//!   16 nodes                            16 =    4 x    4
//! ```
//!
//! The STARFISH reports use these shapes. We derived 40 x 32 from a chunk of eight blocks that they mention, 1280 x
//! 1024 from their measurements, and the rule from both shapes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;

/// The sides of a matrix, in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Number of rows.
    pub rows: u64,
    /// Records in a row.
    pub columns: u64,
}

/// The sides of a grid of compute nodes, which are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grid {
    /// Number of rows.
    pub rows: u32,
    /// Nodes in a row.
    pub columns: u32,
}

impl Shape {
    /// Returns the most square matrix of this many records that is not wider than tall.
    ///
    /// Exact up to 2^40 records. Larger matrices get at most 2^20 columns, so that the search stays short. A prime
    /// number of records results in a single column; specify another shape to avoid that.
    pub fn most_square(records: u64) -> Self {
        let columns = largest_divisor_below_root(records);
        Shape { rows: records / columns, columns }
    }
}

impl Grid {
    /// Returns the most square grid of this many nodes that is not wider than tall.
    pub fn most_square(nodes: u32) -> Self {
        let columns = largest_divisor_below_root(u64::from(nodes)) as u32;
        Grid { rows: nodes / columns, columns }
    }
}

fn largest_divisor_below_root(number: u64) -> u64 {
    const DIVISOR_MAX: u64 = 1 << 20;
    let largest = number.isqrt().min(DIVISOR_MAX);
    (1..=largest).rev().find(|divisor| number.is_multiple_of(*divisor)).unwrap_or(1)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl FromStr for Shape {
    type Err = LayoutError;
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        sides(text).map(|(rows, columns)| Shape { rows, columns })
    }
}

impl FromStr for Grid {
    type Err = LayoutError;
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        sides(text).map(|(rows, columns)| Grid { rows, columns })
    }
}

/// Parses the two numbers of a text such as `40x32` or `40 x 32`.
fn sides<N: FromStr>(text: &str) -> Result<(N, N), LayoutError> {
    let side = |text: &str| text.trim().parse().ok();
    let sides = text.split_once('x').and_then(|(rows, columns)| Some((side(rows)?, side(columns)?)));
    sides.ok_or_else(|| LayoutError::NotSides { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_shapes_equal_those_of_the_reports() {
        assert_eq!(Shape::most_square(1280), Shape { rows: 40, columns: 32 });
        assert_eq!(Shape::most_square(1_310_720), Shape { rows: 1280, columns: 1024 });
        assert_eq!(Grid::most_square(16), Grid { rows: 4, columns: 4 });
    }

    #[test]
    fn the_default_is_never_wider_than_tall() {
        assert_eq!(Grid::most_square(1), Grid { rows: 1, columns: 1 });
        assert_eq!(Grid::most_square(8), Grid { rows: 4, columns: 2 });
        assert_eq!(Grid::most_square(7), Grid { rows: 7, columns: 1 });
        assert_eq!(Shape::most_square(1 << 62), Shape { rows: 1 << 42, columns: 1 << 20 });
    }

    #[test]
    fn sides_are_parsed_and_printed_identically() {
        assert_eq!("40x32".parse(), Ok(Shape { rows: 40, columns: 32 }));
        assert_eq!(" 4 x 2".parse(), Ok(Grid { rows: 4, columns: 2 }));
        assert_eq!(Shape { rows: 40, columns: 32 }.to_string(), "40x32");
        for text in ["", "40", "x", "40x", "-1x2", "4x4x4"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
