//! Request logs: what nodes asked of files and when, to be replayed.
//!
//! A log is text, one request a line: time in seconds, node, file, operation, offset, bytes, and how long it took, if
//! that is known.
//!
//! ```text
//!  # starfish requests 1
//!  0.000000 0 out.dat write 0 512
//!  0.000012 1 out.dat write 512 512 0.000004
//!  0.000900 0 - sync
//!  0.000905 1 - sync
//! ```
//!
//! - `request.rs`: one request; how times and names are written
//! - `calls.rs`: calls that select pieces, or are made together: format 2
//! - `log.rs`: a whole log in memory, node by node, and what it comes to; `collector.rs`: it is put together there
//! - `reader.rs`: one request after the other from any of the formats: `text.rs`, `table.rs` (CSV), `dxt.rs` (what
//!   `darshan-dxt-parser` prints), `fio.rs` and `blkparse.rs`
//! - `lines.rs`, `file_names.rs`: lines of bounded length, names of files
//! - `error.rs`: what is wrong with a log, and where
//! - `generator.rs`: logs that are drawn; `merge.rs`: the logs of several jobs as one
//!
//! Reading takes as much memory as the requests that are kept, [`REQUEST_MEMORY`] bytes each, and no more of them than
//! the [`Limits`] say. Here is no file and no clock: a log comes from any reader.

mod blkparse;
mod calls;
mod collector;
mod dxt;
mod error;
mod file_names;
mod fio;
mod generator;
mod lines;
mod log;
mod merge;
mod reader;
mod request;
mod table;
mod text;

pub use calls::{CallMethod, CommonTurn, LoggedCall, LoggedCalls, LoggedOpening, ToldOpening};
pub use collector::LogCollector;
pub use error::{Error, Place};
pub use generator::{Generator, Kind};
pub use log::{LoggedFile, LoggedMove, LoggedNode, REQUEST_MEMORY, RequestLog, Totals};
pub use merge::MergeError;
pub use reader::{Format, Limits, Reading};
pub use request::{Action, OFFSET_MAX, REQUEST_BYTES_MAX, Request, Stretch};
pub use table::Columns;
pub use text::{CALLS_HEADER, HEADER, LogWriter, ToldCall};
