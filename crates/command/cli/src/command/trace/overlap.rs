//! `starfish trace overlap`: time in which different threads were in given states at the same time.

use std::path::PathBuf;

use account::explain;
use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use serde::Serialize;
use trace::{CHOSEN_MAX, SpanChoice, Timeline};

use super::input::{self, RangeArgs};
use super::shown;
use crate::output::row_format::RowFormat;

/// Print the time in which different threads were in given states at the same time.
///
/// With two states, this is the time in which one thread was in the first state and another thread in the second. A
/// state inside another state of the same thread does not overlap it. If a state is given twice, it overlaps itself
/// while two threads are in it. Additional rows show each state alone, with the time in which any thread was in it.
/// Shares are relative to the time from the first to the last event of the trace, or of the selected part.
#[derive(Args)]
pub(super) struct Arguments {
    /// The trace; - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Two to eight states.
    #[arg(value_name = "STATE", required = true, num_args = 2..=CHOSEN_MAX)]
    names: Vec<String>,

    /// Interpret the names as names of threads; a thread counts in any of its states.
    #[arg(long)]
    threads: bool,

    #[command(flatten)]
    range: RangeArgs,

    /// Output format. As CSV and JSON, times are in nanoseconds.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,
}

/// Row of the output. The names of the fields are the names of the columns.
#[derive(Serialize)]
struct Row<'a> {
    what: &'a str,
    time_ns: u64,
    share: f64,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let timeline = input::read_one(&arguments.file)?;
    let range = arguments.range.of(&timeline)?;
    let choices = arguments.names.iter().map(|name| choice(&timeline, name, arguments.threads));
    let choices = choices.collect::<Result<Vec<SpanChoice>>>()?;
    let (first, last) = timeline.extent_ns().unwrap_or((0, 0));
    let (first, last) =
        range.as_ref().map_or((first, last), |range| (first.max(range.start), last.min(range.end)));
    let row = |what, choices: &[SpanChoice]| {
        let time_ns = timeline.overlap(choices, range.clone());
        Row { what, time_ns, share: time_ns as f64 / last.saturating_sub(first).max(1) as f64 }
    };
    let mut rows = vec![row("overlap", &choices)];
    let alone = arguments.names.iter().zip(&choices);
    rows.extend(alone.map(|(name, choice)| row(name, std::slice::from_ref(choice))));
    arguments.format.print(&rows, |rows| {
        let mut table = TextTable::new(1);
        for row in rows {
            table.row([shown::text(row.what), shown::time(row.time_ns), explain::percent(row.share)]);
        }
        table.lines().collect()
    })
}

/// Returns the spans of the states, or of the threads, with this name.
fn choice(timeline: &Timeline, name: &str, of_threads: bool) -> Result<SpanChoice> {
    let names: Vec<&str> = match of_threads {
        true => timeline.threads.iter().map(|thread| thread.name.as_str()).collect(),
        false => timeline.states.iter().map(|state| state.name.as_str()).collect(),
    };
    let found = (0..).zip(&names).filter(|(_, known)| **known == name).map(|(index, _)| index).collect();
    if names.contains(&name) {
        return Ok(match of_threads {
            true => SpanChoice { threads: Some(found), ..SpanChoice::default() },
            false => SpanChoice { states: Some(found), ..SpanChoice::default() },
        });
    }
    let kind = if of_threads { "thread" } else { "state" };
    let failure = Failure::usage(shown::text(name), format!("the trace has no {kind} of this name"));
    Err(failure.remedy(format!("It has {}.", known(&names))))
}

/// Maximum number of names that are listed.
const LISTED: usize = 12;

fn known(names: &[&str]) -> String {
    let listed = names.iter().take(LISTED).map(|name| shown::text(name)).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        count if count > LISTED => format!("{listed} and {} more", count - LISTED),
        _ => listed,
    }
}
