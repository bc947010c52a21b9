//! The access patterns of the STARFISH reports, by their names.
//!
//! ```text
//!   r c b          read a matrix, rows cyclic, columns in blocks
//!   w n            write a vector, all of it from node 0
//!   r a            read: all nodes get all of the file
//!
//!   n  not distributed        b  block        c  cyclic        one letter for each dimension
//! ```
//!
//! The reports use nineteen patterns, [`Pattern::NAMES`]. They omit `rnn`, `rnc` and `rbn`, which equal `rn`, `rc` and
//! `rb` if the nodes divide the rows evenly. We accept the three names, since the division can be uneven. With 40 rows
//! in blocks over 16 nodes, 13 nodes have 3 rows each and the next has 1, while `rb` gives all nodes the same amount.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::distribution::{Dimension, Distribution};
use crate::error::LayoutError;
use crate::shape::{Grid, Shape};
use crate::view::View;

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// An access pattern: the direction, and the distribution of the file over the compute nodes.
///
/// Written and stored as its name, such as `rcb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    operation: Operation,
    spread: Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Spread {
    All,
    Vector(DistributionLetter),
    Matrix(DistributionLetter, DistributionLetter),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DistributionLetter {
    None,
    Block,
    Cyclic,
}

/// Parameters that turn a pattern into a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Size of the file in bytes; a whole number of records.
    pub file_bytes: u64,
    /// Size of a record in bytes.
    pub record_bytes: u64,
    /// Number of compute nodes.
    pub nodes: u32,
    /// Sides of the matrix in records; ignored for vectors. Default: the most square matrix.
    pub shape: Option<Shape>,
    /// Sides of the grid of nodes; ignored for vectors. Default: the most square grid if both dimensions are
    /// distributed; otherwise all nodes along the distributed dimension.
    pub grid: Option<Grid>,
}

impl Problem {
    /// Returns a problem with the default shape and grid.
    pub const fn new(file_bytes: u64, record_bytes: u64, nodes: u32) -> Self {
        Problem { file_bytes, record_bytes, nodes, shape: None, grid: None }
    }

    /// Returns the number of records in the file.
    fn records(&self) -> Result<u64, LayoutError> {
        let Problem { file_bytes, record_bytes, .. } = *self;
        match file_bytes.checked_rem(record_bytes) {
            None => Err(LayoutError::NoRecordBytes),
            Some(0) => Ok(file_bytes / record_bytes),
            Some(_) => Err(LayoutError::PartialRecord { file_bytes, record_bytes }),
        }
    }

    /// Returns the given shape, or the default. Fails if a given shape does not match the file.
    fn shape(&self) -> Result<Shape, LayoutError> {
        let records = self.records()?;
        let shape = self.shape.unwrap_or_else(|| Shape::most_square(records));
        let Shape { rows, columns } = shape;
        if rows.checked_mul(columns) == Some(records) {
            Ok(shape)
        } else {
            Err(LayoutError::ShapeMismatch { rows, columns, records })
        }
    }

    /// Returns the given grid, or the default for a matrix with these letters.
    fn grid(&self, rows: DistributionLetter, columns: DistributionLetter) -> Grid {
        self.grid.unwrap_or_else(|| match (rows, columns) {
            (DistributionLetter::None, _) => Grid { rows: 1, columns: columns.parts(self.nodes) },
            (_, DistributionLetter::None) => Grid { rows: self.nodes, columns: 1 },
            _ => Grid::most_square(self.nodes),
        })
    }
}

impl Pattern {
    /// Names of the nineteen patterns of the reports, in their order.
    pub const NAMES: [&str; 19] = [
        "ra", "rn", "rb", "rc", "rnb", "rbb", "rcb", "rbc", "rcc", "rcn", //
        "wn", "wb", "wc", "wnb", "wbb", "wcb", "wbc", "wcc", "wcn",
    ];

    /// Returns the nineteen patterns of the reports, in the order of [`Pattern::NAMES`].
    pub fn all() -> impl Iterator<Item = Pattern> {
        Pattern::NAMES.iter().map(|name| name.parse().expect("every name parses as a pattern"))
    }

    /// Returns the direction of the data.
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// True if the pattern treats the file as a matrix. Only then do shape and grid matter.
    pub const fn is_of_matrix(&self) -> bool {
        matches!(self.spread, Spread::Matrix(..))
    }

    /// Returns the pattern of the same direction in which each node has one contiguous part of the file.
    ///
    /// In two-phase I/O, the compute nodes access the disks in this pattern.
    pub const fn conforming(&self) -> Pattern {
        Pattern { operation: self.operation, spread: Spread::Vector(DistributionLetter::Block) }
    }

    /// Returns the view of each compute node on the file of a problem.
    pub fn view(&self, problem: &Problem) -> Result<View, LayoutError> {
        let Problem { record_bytes, nodes, .. } = *problem;
        match self.spread {
            Spread::All => View::replicated(record_bytes, &[Dimension::whole(problem.records()?)], nodes),
            Spread::Vector(letter) => {
                let dimension = letter.dimension(problem.records()?, letter.parts(nodes));
                View::new(record_bytes, &[dimension], nodes)
            }
            Spread::Matrix(rows, columns) => {
                let (shape, grid) = (problem.shape()?, problem.grid(rows, columns));
                let rows = rows.dimension(shape.rows, grid.rows);
                let columns = columns.dimension(shape.columns, grid.columns);
                View::new(record_bytes, &[rows, columns], nodes)
            }
        }
    }
}

impl DistributionLetter {
    const fn letter(self) -> char {
        match self {
            DistributionLetter::None => 'n',
            DistributionLetter::Block => 'b',
            DistributionLetter::Cyclic => 'c',
        }
    }

    fn from_letter(letter: char) -> Option<Self> {
        [DistributionLetter::None, DistributionLetter::Block, DistributionLetter::Cyclic]
            .into_iter()
            .find(|known| known.letter() == letter)
    }

    /// Returns the number of parts of a dimension along which all nodes lie.
    fn parts(self, nodes: u32) -> u32 {
        if self == DistributionLetter::None { 1 } else { nodes }
    }

    fn dimension(self, length: u64, parts: u32) -> Dimension {
        let distribution = match self {
            DistributionLetter::None => Distribution::None,
            DistributionLetter::Block => Distribution::Block,
            DistributionLetter::Cyclic => Distribution::Cyclic(1),
        };
        Dimension { length, distribution, parts }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Read => 'r',
            Operation::Write => 'w',
        };
        let name = match self.spread {
            Spread::All => format!("{operation}a"),
            Spread::Vector(letter) => format!("{operation}{}", letter.letter()),
            Spread::Matrix(rows, columns) => format!("{operation}{}{}", rows.letter(), columns.letter()),
        };
        f.pad(&name)
    }
}

impl FromStr for Pattern {
    type Err = LayoutError;

    fn from_str(name: &str) -> Result<Self, LayoutError> {
        let unknown = |reason: String| LayoutError::UnknownPattern { name: name.to_owned(), reason };
        let mut letters = name.chars();
        let operation = match letters.next() {
            Some('r') => Operation::Read,
            Some('w') => Operation::Write,
            _ => {
                return Err(unknown(format!("it begins with r (read) or w (write), as in {}", some_names())));
            }
        };
        let rest = letters.as_str();
        if rest == "a" {
            return match operation {
                Operation::Read => Ok(Pattern { operation, spread: Spread::All }),
                Operation::Write => Err(unknown(
                    "if all nodes wrote all of the file, whose data would the file hold? \
                     Use ra only to read; wn writes from one node, wb and wc from all"
                        .to_owned(),
                )),
            };
        }
        let known = rest.chars().map(DistributionLetter::from_letter).collect::<Option<Vec<_>>>();
        let spread = match known.as_deref() {
            Some(&[letter]) => Spread::Vector(letter),
            Some(&[rows, columns]) => Spread::Matrix(rows, columns),
            _ => {
                return Err(unknown(format!(
                    "after r or w write one letter for a vector, or two for the rows and columns of a matrix, \
                     each n (not distributed), b (block) or c (cyclic), as in {}",
                    some_names()
                )));
            }
        };
        Ok(Pattern { operation, spread })
    }
}

fn some_names() -> String {
    Pattern::NAMES.join(" ")
}

impl TryFrom<String> for Pattern {
    type Error = LayoutError;
    fn try_from(name: String) -> Result<Self, LayoutError> {
        name.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(name: &str) -> String {
        name.parse::<Pattern>().unwrap_err().to_string()
    }

    #[test]
    fn every_pattern_name_is_parsed_and_printed_identically() {
        let names: Vec<_> = Pattern::all().map(|pattern| pattern.to_string()).collect();
        assert_eq!(names, Pattern::NAMES);
        for omitted in ["rnn", "rnc", "rbn", "wnn", "wnc", "wbn"] {
            assert_eq!(omitted.parse::<Pattern>().unwrap().to_string(), omitted);
        }
        assert_eq!(format!("{:>4}", "rb".parse::<Pattern>().unwrap()), "  rb");
    }

    #[test]
    fn an_invalid_pattern_name_is_rejected_with_the_valid_forms() {
        assert!(reason("wa").contains("whose data"));
        assert!(reason("xb").contains("r (read) or w (write)"));
        assert!(reason("").contains("begins with"));
        for name in ["r", "rx", "rbbb", "rba", "raa", "rB", "w\u{e9}"] {
            assert!(reason(name).contains("one letter for a vector"), "{name}");
        }
    }

    #[test]
    fn a_mismatch_of_pattern_and_problem_is_reported_with_its_numbers() {
        let view = |name: &str, problem: Problem| {
            let pattern: Pattern = name.parse().unwrap();
            pattern.view(&problem).unwrap_err().to_string()
        };
        let problem = Problem::new(10 << 20, 8192, 16);
        let error = view("rb", Problem { file_bytes: 10_000, ..problem });
        assert!(error.contains("10000 bytes") && error.contains("make it 8192 bytes"), "{error}");
        let error = view("rbb", Problem { shape: Some(Shape { rows: 40, columns: 30 }), ..problem });
        assert!(error.contains("40 rows x 30 columns") && error.contains("1280 records"), "{error}");
        let error = view("rbb", Problem { grid: Some(Grid { rows: 4, columns: 3 }), ..problem });
        assert!(error.contains("12 places does not fit 16 compute nodes"), "{error}");
        let error = view("rnb", Problem { grid: Some(Grid { rows: 4, columns: 4 }), ..problem });
        assert!(
            error.contains("dimension 0 (from 0) is not distributed, but the grid divides it into 4 parts"),
            "{error}"
        );
        for name in ["ra", "rb", "rbb"] {
            assert!(view(name, Problem { record_bytes: 0, ..problem }).contains("0 bytes"));
            assert!(view(name, Problem { nodes: 0, ..problem }).contains("0 compute nodes"));
            assert!(view(name, Problem { file_bytes: 0, ..problem }).contains("length 0"));
        }
    }
}
