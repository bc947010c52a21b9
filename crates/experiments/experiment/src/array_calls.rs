//! Expresses a pattern of an array as the calls of an MPI program. All nodes open the file together, each makes one
//! collective call for its part of the array, and all sync written data together.

use std::io;

use jobs::ArrayPattern;
use layout::{Operation, Problem, Selection};
use machine::Duration;
use request_log::{Action, CallToWrite, LogWriter, OpeningToWrite, Reading, Request, RequestLog};

use crate::{AccessPattern, Error};

/// Names of the file and of its collective open.
const FILE: &str = "array";
const OPENING: &str = "o";

/// Returns the calls of a problem's nodes on a file with this block size in bytes and number of stripes.
pub(crate) fn log(
    pattern: AccessPattern,
    problem: &Problem,
    (block_bytes, stripes): (u64, u32),
) -> Result<RequestLog, Error> {
    let Some(ArrayPattern::One(pattern)) = pattern.arrays() else {
        return Err(Error::invalid(format!(
            "{pattern} is not a pattern of a single array, as `calls` needs"
        )));
    };
    let view = pattern.view(problem)?;
    let nodes = problem.nodes;
    let mut text = Vec::new();
    let write = |text: &mut Vec<u8>| -> io::Result<()> {
        let mut writer = LogWriter::begin_calls(text)?;
        for rank in 0..nodes {
            let opening = OpeningToWrite { name: OPENING, rank, size: nodes, block_bytes, stripes };
            writer.write_opening((Duration::ZERO, rank), FILE, opening)?;
        }
        let request = Request { time: Duration::ZERO, took: Duration::ZERO, action: Action::Sync };
        let syncs = pattern.operation() == Operation::Write;
        for rank in 0..nodes {
            let selection = Selection::of_view(&view, rank);
            let moves = Some((pattern.operation(), &selection));
            let call = |number, moves| CallToWrite {
                file: FILE,
                moves,
                together: Some((OPENING, number)),
                method: None,
            };
            writer.write_call(rank, &request, &call(0, moves))?;
            if syncs {
                writer.write_call(rank, &request, &call(1, None))?;
            }
        }
        writer.finish()
    };
    let unreadable = |why: &dyn std::fmt::Display| Error::invalid(format!("the calls of {pattern}: {why}"));
    write(&mut text).map_err(|error| unreadable(&error))?;
    RequestLog::read(&*text, &Reading::default()).map_err(|error| unreadable(&error))
}
