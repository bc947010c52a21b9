//! `starfish trace diff`: states that take more or less time in one trace than in another.

use std::path::PathBuf;

use clap::Args;
use command_line::TextTable;
use command_line::failure::Result;
use serde::Serialize;
use trace::{StateChange, StateTotals};

use super::{input, shown};
use crate::output::row_format::RowFormat;

/// Print which states took more or less time in a second trace, the largest change first.
///
/// States with the same name and category are the same state; the times of all threads are added.
#[derive(Args)]
pub(super) struct Arguments {
    /// The earlier trace; - for standard input.
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The later trace.
    #[arg(value_name = "B")]
    after: PathBuf,

    /// Output format. As CSV and JSON, times are in nanoseconds.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,
}

/// Row of the output. The names of the fields are the names of the columns.
#[derive(Serialize)]
struct Row<'a> {
    state: &'a str,
    category: &'a str,
    count_before: u64,
    count_after: u64,
    total_before_ns: u64,
    total_after_ns: u64,
    growth_ns: i128,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let before = input::read_one(&arguments.before)?;
    let changes = before.changes_to(&input::read_one(&arguments.after)?);
    let rows: Vec<Row> = changes.iter().map(row).collect();
    arguments.format.print(&rows, lines)
}

fn row(change: &StateChange) -> Row<'_> {
    let count = |totals: &Option<StateTotals>| totals.as_ref().map_or(0, |totals| totals.count);
    let total = |totals: &Option<StateTotals>| totals.as_ref().map_or(0, |totals| totals.total_ns);
    Row {
        state: &change.state.name,
        category: &change.state.category,
        count_before: count(&change.before),
        count_after: count(&change.after),
        total_before_ns: total(&change.before),
        total_after_ns: total(&change.after),
        growth_ns: change.growth_ns(),
    }
}

fn lines(rows: &[Row<'_>]) -> Vec<String> {
    let mut table = TextTable::new(1);
    table.row(["state", "count", "then", "total", "then", "growth", "factor"]);
    for row in rows {
        let sign = if row.growth_ns < 0 { "-" } else { "+" };
        let growth = u64::try_from(row.growth_ns.unsigned_abs()).unwrap_or(u64::MAX);
        let factor = match (row.count_before, row.total_before_ns) {
            (0, _) => "new".to_owned(),
            // The state took no time before, so there is no ratio.
            (_, 0) => "-".to_owned(),
            (_, before) => format!("{:.2}", row.total_after_ns as f64 / before as f64),
        };
        table.row([
            shown::text(row.state),
            row.count_before.to_string(),
            row.count_after.to_string(),
            shown::time(row.total_before_ns),
            shown::time(row.total_after_ns),
            format!("{sign}{}", shown::time(growth)),
            factor,
        ]);
    }
    table.lines().collect()
}
