//! A picture of an access pattern: which compute node has which record of a small file.
//!
//! Everything in it is asked of the crate `layout`, which moves the files, too; nothing here knows what a pattern does.

use command_line::counted;
use layout::{Extent, LayoutError, Pattern, Problem, Shape, View};

/// Who has which record of a file, and in how many stretches of it.
pub(crate) struct Picture {
    name: String,
    shape: Shape,
    nodes: u32,
    /// For each record, in the order of the file, the nodes that have it.
    owners: Vec<Vec<u32>>,
    /// For each node that has records, the sizes of its chunks, in records.
    chunks: Vec<Vec<u64>>,
}

impl Picture {
    /// The picture of `pattern` over `nodes` nodes and a file of as many records as `problem` says, in rows of `shape`.
    ///
    /// # Errors
    /// What does not fit together, as an experiment would tell.
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

    /// How many chunks a node has, and of how many records.
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

    /// The picture as lines of text, with the number of its node in the place of each record.
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

    /// What stands beside the records, line by line: the name first.
    fn words(&self) -> Vec<String> {
        let mut words = vec![self.name.clone()];
        words.extend(sentence(&self.name).split(", ").map(str::to_owned));
        words.push(String::new());
        words.extend(self.chunks_in_words().splitn(2, " has ").map(str::to_owned));
        words
    }

    /// The picture as a drawing: the records row by row, and below them in the order of the file. It has no background,
    /// and its words are of a grey that can be read on white and on black.
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

/// The side of a record in a drawing, and the width of all records in a line; in pixels.
const CELL: f64 = 22.0;
const STRIP_WIDTH: f64 = 384.0;

/// Room for a character of words of 12 pixels: on average they take 6 in the fonts of systems.
const CHARACTER: f64 = 6.5;

/// The room that the longest of some lines takes.
fn words_width(words: &[String]) -> f64 {
    words.iter().map(|word| word.chars().count()).max().unwrap_or(0) as f64 * CHARACTER
}

/// Words on any background: 4.5 to 1 on white, 4.6 on black.
const GREY: &str = "#767676";

/// The colours of nodes, light enough for black numbers; they begin again after the last.
const COLOURS: [&str; 8] =
    ["#8ecae6", "#ffb703", "#95d5b2", "#f4a6b7", "#cdb4db", "#e9c46a", "#a8dadc", "#d4a373"];

/// A rectangle in the colours of its owners, side by side.
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

/// A number of things, or the least and the largest of several.
fn amount(numbers: impl Iterator<Item = u64> + Clone, of: &str) -> String {
    let (least, most) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
    let most_of = counted(most, of);
    if least == most { most_of } else { format!("{least} to {most_of}") }
}

/// What the letters of a pattern's name say.
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
    fn every_record_shows_the_node_that_has_it() {
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
    fn a_drawing_has_each_record_twice_and_the_number_of_its_node_once() {
        let shape = Shape { rows: 2, columns: 3 };
        let problem = Problem { shape: Some(shape), ..Problem::new(6, 1, 2) };
        let picture = Picture::of("rb".parse().expect("a pattern"), &problem, shape).expect("it fits");
        let svg = picture.svg();
        assert_eq!(svg.iter().filter(|line| line.contains("fill=\"none\"")).count(), 12);
        assert_eq!(svg.iter().filter(|line| line.ends_with(">0</text>")).count(), 3);
    }

    #[test]
    fn a_drawing_is_as_wide_as_what_is_in_it() {
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
            let begin = words.filter_map(|line| number(line, " x=\"")).next().expect("they are there");
            assert!(begin + 60.0 < width, "{begin} in {width}");
        }
    }

    #[test]
    fn chunks_of_unequal_sizes_are_told_as_from_to() {
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
