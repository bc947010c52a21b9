//! `starfish patterns`: lists and draws the access patterns.

use clap::{Args, ValueEnum};
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use layout::{Grid, Pattern, Problem, Shape};
use transfer::local;

use crate::options::numbers::positive;
use crate::output::pattern_picture::{Picture, sentence};

/// List the access patterns, or draw some of them.
///
/// A picture shows a small file as a matrix of records, row by row in file order. Each record shows the number of the
/// compute node that owns it, or * if all nodes own it. A chunk is a contiguous range of the file that one node owns.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The patterns to draw: names such as rb or wcc, or `all` for the nineteen patterns of the reports.
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,

    /// Number of compute nodes.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive::<u32>, requires = "patterns")]
    nodes: u32,

    /// Rows and columns of the drawn file, in records.
    #[arg(long, value_name = "RxC", default_value = "8x8", requires = "patterns")]
    shape: Shape,

    /// Rows and columns of the grid of compute nodes [default: as square as possible].
    #[arg(long, value_name = "RxC", requires = "patterns")]
    grid: Option<Grid>,

    /// Output format; svg is for one drawing only.
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "patterns")]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  starfish patterns
  starfish patterns rb rbb rcc
  starfish patterns rbb --nodes 16 --shape 16x16
  starfish patterns rcb --format svg > rcb.svg";

/// Maximum number of drawn records. More would not fit on a screen or a page.
const RECORDS_MAX: u64 = 4096;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text.
    Text,
    /// A drawing, for a page.
    Svg,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { patterns, nodes, shape, grid, format } = arguments;
    let Shape { rows, columns } = shape;
    if patterns.is_empty() {
        return local::print(list());
    }
    let records = rows.checked_mul(columns).filter(|records| (1..=RECORDS_MAX).contains(records));
    let records = records.ok_or_else(|| {
        Failure::usage(format!("--shape {shape}"), format!("expected 1 to {RECORDS_MAX} records"))
    })?;
    let problem = Problem { shape: Some(shape), grid, ..Problem::new(records, 1, nodes) };
    let draw = |pattern: Pattern| {
        Picture::of(pattern, &problem, shape).map_err(|error| Failure::usage(pattern.to_string(), error))
    };
    let patterns = chosen(&patterns)?;
    if grid.is_some() && !patterns.iter().any(Pattern::is_of_matrix) {
        let failure = Failure::usage("--grid", "it has no effect: no selected pattern is a matrix");
        return Err(failure.remedy("Choose one such as rbb or rcb, or leave --grid out."));
    }
    let pictures = patterns.into_iter().map(draw).collect::<Result<Vec<_>>>()?;
    match (format, &pictures[..]) {
        (Format::Svg, [picture]) => local::print(picture.svg()),
        (Format::Svg, _) => {
            Err(Failure::usage("--format svg", "an SVG file shows one pattern: name only one"))
        }
        (Format::Text, _) => {
            let pictures: Vec<_> = pictures.iter().map(Picture::lines).collect();
            local::print(pictures.join(&String::new()))
        }
    }
}

fn chosen(names: &[String]) -> Result<Vec<Pattern>> {
    if names.iter().any(|name| name == "all") {
        return Ok(Pattern::all().collect());
    }
    let parse = |name: &String| name.parse().map_err(|error| Failure::usage("PATTERN", error));
    names.iter().map(parse).collect()
}

fn list() -> Vec<String> {
    let mut table = TextTable::new(2);
    for name in Pattern::NAMES {
        table.row([name, &sentence(name)]);
    }
    table.lines().collect()
}
