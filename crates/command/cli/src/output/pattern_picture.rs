//! Picture of an access pattern: it shows which compute node owns each record of a small file.
//!
//! All owners are computed by the crate `layout`, which also transfers files; this file does not interpret patterns.

use command_line::counted;
use layout::{Extent, LayoutError, Pattern, Problem, Shape, View};

/// Owners of the records of a file, and the chunks of each node.
pub(crate) struct Picture {
    name: String,
    shape: Shape,
    nodes: u32,
    /// Owners of each record, in file order.
    owners: Vec<Vec<u32>>,
    /// Sizes of the chunks of each node, in records. Nodes without records are omitted.
    chunks: Vec<Vec<u64>>,
}

impl Picture {
    /// Returns the picture of `pattern` for the nodes and the file of `problem`. The file is drawn as a matrix of
    /// `shape`.
    ///
    /// # Errors
    /// If the problem does not fit the pattern, as in an experiment.
    pub(crate) fn of(pattern: Pattern, problem: &Problem, shape: Shape) -> Result<Picture, LayoutError> {
        let view = pattern.view(problem)?;
        let record = |offset| view.pieces(Extent::new(offset * problem.record_bytes, problem.record_bytes));
        let owners =
            (0..shape.rows * shape.columns).map(|index| record(index).map(|piece| piece.node).collect());
        let chunks = (0..problem.nodes).map(|node| chunks(&view, node)).filter(|chunks| !chunks.is_empty());
        let owners = owners.collect();
        Ok(Picture {
            name: pattern.to_string(),
            shape,
            nodes: problem.nodes,
            owners,
            chunks: chunks.collect(),
        })
    }

    fn rows(&self) -> impl Iterator<Item = &[Vec<u32>]> {
        self.owners.chunks(self.shape.columns as usize)
    }

    /// Describes the number of chunks of a node, and their sizes in records.
    fn chunks_in_words(&self) -> String {
        let counts = self.chunks.iter().map(|chunks| chunks.len() as u64);
        let sizes = self.chunks.iter().flatten().copied();
        let who = match self.chunks.len() {
            1 => "one node has",
            count if count == self.nodes as usize => "each node has",
            _ => "each node that has records has",
        };
        format!("{who} {} of {}", amount(counts, "chunk"), amount(sizes, "record"))
    }

    /// Returns the picture as text. Each record is shown as the number of its owner.
    pub(crate) fn lines(&self) -> Vec<String> {
        let width = (self.nodes - 1).to_string().len();
        let cell = |owners: &Vec<u32>| match owners[..] {
            [node] => format!("{node:>width$}"),
            _ => format!("{:>width$}", "*"),
        };
        let mut lines = vec![format!("{}: {}; {}", self.name, sentence(&self.name), self.chunks_in_words())];
        lines.push(String::new());
        lines.extend(
            self.rows().map(|row| format!("  {}", row.iter().map(cell).collect::<Vec<_>>().join(" "))),
        );
        lines
    }

    /// Returns the lines of text to the right of the records. The first line is the name.
    fn words(&self) -> Vec<String> {
        let mut words = vec![self.name.clone()];
        words.extend(sentence(&self.name).split(", ").map(str::to_owned));
        words.push(String::new());
        words.extend(self.chunks_in_words().splitn(2, " has ").map(str::to_owned));
        words
    }

    /// Returns the picture as an SVG drawing: the records row by row, and below them the records in file order. The
    /// background is transparent, and the grey of the text is readable on white and on black.
    pub(crate) fn svg(&self) -> Vec<String> {
        let Shape { rows, columns } = self.shape;
        let strip = STRIP_WIDTH / self.owners.len().max(1) as f64;
        let below = rows as f64 * CELL + 34.0;
        let beside = columns as f64 * CELL + 14.0;
        let words = self.words();
        let width = (beside + words_width(&words)).max(STRIP_WIDTH + 2.0);
        let height = below + 18.0;
        let mut lines = vec![
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
                 height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\">"
            ),
            format!("<title>{}: {}</title>", self.name, sentence(&self.name)),
        ];
        for (row, owners) in self.rows().enumerate() {
            for (column, owners) in owners.iter().enumerate() {
                let (x, y) = (1.0 + column as f64 * CELL, 1.0 + row as f64 * CELL);
                lines.extend(square(x, y, CELL, CELL, owners));
                if let [node] = owners[..] {
                    let (x, y) = (x + CELL / 2.0, y + CELL / 2.0 + 4.0);
                    let ink = "fill=\"#1b1b1b\" text-anchor=\"middle\"";
                    lines.push(format!("<text x=\"{x}\" y=\"{y}\" {ink}>{node}</text>"));
                }
            }
        }
        let large = "font-weight=\"600\" font-size=\"15\"";
        for (index, word) in words.iter().enumerate() {
            let y = 16.0 + 17.0 * index as f64;
            let word = if index == 0 { format!("<tspan {large}>{word}</tspan>") } else { word.clone() };
            lines.push(format!("<text x=\"{beside}\" y=\"{y}\" fill=\"{GREY}\">{word}</text>"));
        }
        let y = below - 6.0;
        lines.push(format!(
            "<text x=\"1\" y=\"{y}\" fill=\"{GREY}\">the same in the order of the file</text>"
        ));
        for (index, owners) in self.owners.iter().enumerate() {
            lines.extend(square(1.0 + index as f64 * strip, below, strip, 16.0, owners));
        }
        lines.push("</svg>".to_owned());
        lines
    }
}

/// Side length of a record, and width of all records in file order; both in pixels.
const CELL: f64 = 22.0;
const STRIP_WIDTH: f64 = 384.0;

/// Width in pixels to reserve for a character of 12-pixel text. Characters of system fonts have a mean width of 6
/// pixels.
const CHARACTER: f64 = 6.5;

/// Returns the width in pixels of the longest line.
fn words_width(words: &[String]) -> f64 {
    words.iter().map(|word| word.chars().count()).max().unwrap_or(0) as f64 * CHARACTER
}

/// Colour of text on any background: contrast 4.5 to 1 on white, 4.6 to 1 on black.
const GREY: &str = "#767676";

/// Colours of nodes, light enough for black numbers. Further nodes use the same colours again.
const COLOURS: [&str; 8] =
    ["#8ecae6", "#ffb703", "#95d5b2", "#f4a6b7", "#cdb4db", "#e9c46a", "#a8dadc", "#d4a373"];

/// Draws a rectangle divided into equal parts in the colours of its owners.
fn square(x: f64, y: f64, width: f64, height: f64, owners: &[u32]) -> Vec<String> {
    let each = width / owners.len().max(1) as f64;
    let part = |(index, &node): (usize, &u32)| {
        let (x, fill) = (x + index as f64 * each, COLOURS[node as usize % COLOURS.len()]);
        format!("<rect x=\"{x}\" y=\"{y}\" width=\"{each}\" height=\"{height}\" fill=\"{fill}\"/>")
    };
    let outline = format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#1b1b1b\" \
         stroke-width=\"0.4\"/>"
    );
    owners.iter().enumerate().map(part).chain([outline]).collect()
}

fn chunks(view: &View, node: u32) -> Vec<u64> {
    view.chunks(node).map(|chunk| chunk.bytes / view.record_bytes()).collect()
}

/// Formats a number of things; several different numbers become a range.
fn amount(numbers: impl Iterator<Item = u64> + Clone, of: &str) -> String {
    let (least, most) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
    let most_of = counted(most, of);
    if least == most { most_of } else { format!("{least} to {most_of}") }
}

/// Explains the letters of a pattern's name.
pub(crate) fn sentence(name: &str) -> String {
    let (operation, spread) = name.split_at(1);
    let operation = if operation == "r" { "read" } else { "write" };
    let one = |letter| match letter {
        'n' => "not distributed",
        'b' => "in blocks",
        _ => "cyclic",
    };
    let letters: Vec<char> = spread.chars().collect();
    match letters[..] {
        ['a'] => format!("{operation} all of the file, on every node"),
        ['n'] => format!("{operation} all of the file, on one node"),
        [letter] => format!("{operation} a vector, {}", one(letter)),
        [rows, columns] => format!("{operation} a matrix, rows {}, columns {}", one(rows), one(columns)),
        _ => operation.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(name: &str, shape: Shape, nodes: u32) -> Vec<String> {
        let problem = Problem { shape: Some(shape), ..Problem::new(shape.rows * shape.columns, 1, nodes) };
        let picture = Picture::of(name.parse().expect("a pattern"), &problem, shape).expect("it fits");
        picture.lines()
    }

    #[test]
    fn every_record_shows_its_node() {
        let small = Shape { rows: 2, columns: 4 };
        let lines = picture("rcb", small, 4);
        assert_eq!(
            lines,
            [
                "rcb: read a matrix, rows cyclic, columns in blocks; each node has 1 chunk of 2 records",
                "",
                "  0 0 1 1",
                "  2 2 3 3"
            ]
        );
        assert_eq!(picture("wn", small, 4)[2..], ["  0 0 0 0", "  0 0 0 0"]);
        assert_eq!(picture("ra", small, 12)[2..], ["   *  *  *  *", "   *  *  *  *"]);
    }

    #[test]
    fn a_drawing_has_each_record_twice_and_its_node_number_once() {
        let shape = Shape { rows: 2, columns: 3 };
        let problem = Problem { shape: Some(shape), ..Problem::new(6, 1, 2) };
        let picture = Picture::of("rb".parse().expect("a pattern"), &problem, shape).expect("it fits");
        let svg = picture.svg();
        assert_eq!(svg.iter().filter(|line| line.contains("fill=\"none\"")).count(), 12);
        assert_eq!(svg.iter().filter(|line| line.ends_with(">0</text>")).count(), 3);
    }

    #[test]
    fn a_drawing_is_wide_enough_for_its_contents() {
        for columns in [4, 16, 64] {
            let shape = Shape { rows: 1, columns };
            let problem = Problem { shape: Some(shape), ..Problem::new(columns, 1, 16) };
            let picture = Picture::of("rb".parse().expect("a pattern"), &problem, shape).expect("it fits");
            let svg = picture.svg();
            let number = |line: &str, key: &str| -> Option<f64> {
                line.split_once(key)?.1.split_once('"')?.0.parse().ok()
            };
            let width = number(&svg[0], " width=\"").expect("it has one");
            for line in svg.iter().filter(|line| line.starts_with("<rect")) {
                let end = number(line, " x=\"").zip(number(line, " width=\"")).map(|(x, width)| x + width);
                assert!(end.is_some_and(|end| end <= width), "{line} in {width}");
            }
            let words = svg.iter().filter(|line| line.contains(">read a vector</text>"));
            let begin = words.filter_map(|line| number(line, " x=\"")).next().expect("there are such lines");
            assert!(begin + 60.0 < width, "{begin} in {width}");
        }
    }

    #[test]
    fn unequal_chunk_sizes_are_shown_as_a_range() {
        let lines = picture("rb", Shape { rows: 1, columns: 5 }, 2);
        assert_eq!(lines[0], "rb: read a vector, in blocks; each node has 1 chunk of 2 to 3 records");
        let lines = picture("rb", Shape { rows: 1, columns: 5 }, 4);
        assert!(
            lines[0].ends_with("each node that has records has 1 chunk of 1 to 2 records"),
            "{}",
            lines[0]
        );
    }
}
