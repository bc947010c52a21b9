//! Request logs: requests of nodes to files, with their times, for replay.
//!
//! A log is a text with one request per line: time in seconds, node, file, operation, offset, bytes, and the duration
//! in seconds if it is known.
//!
//! ```text
//!  # starfish requests 1
//!  0.000000 0 out.dat write 0 512
//!  0.000012 1 out.dat write 512 512 0.000004
//!  0.000900 0 - sync
//!  0.000905 1 - sync
//! ```
//!
//! - `request.rs`: one request; the text form of times and names.
//! - `calls.rs`: calls with selections, and collective calls (format 2).
//! - `log.rs`: a whole log in memory, node by node, and its totals; `collector.rs` builds it.
//! - `reader.rs`: reads any format, request by request: `text.rs`, `table.rs` (CSV), `dxt.rs` (output of
//!   `darshan-dxt-parser`), `fio.rs` and `blkparse.rs`.
//! - `line_reader.rs`, `file_names.rs`: lines of bounded length; names of files.
//! - `error.rs`: errors in a log, and their places.
//! - `generator.rs`: random logs; `merge.rs`: merges the logs of several jobs.
//!
//! Reading takes [`REQUEST_MEMORY`] bytes for each request that is kept. The number of kept requests is limited by
//! [`Limits`]. This crate uses no files and no clock: it reads a log from any reader.

mod blkparse;
mod calls;
mod collector;
mod dxt;
mod error;
mod file_names;
mod fio;
mod generator;
mod line_reader;
mod log;
mod merge;
mod reader;
mod request;
mod table;
mod text;

pub use calls::{CallMethod, CommonTurn, LoggedCall, LoggedCalls, LoggedOpening, OpeningToWrite};
pub use collector::LogCollector;
pub use error::{Error, Place};
pub use generator::{Generator, Kind};
pub use log::{LoggedFile, LoggedMove, LoggedNode, REQUEST_MEMORY, RequestLog, Totals};
pub use merge::MergeError;
pub use reader::{Format, Limits, Reading};
pub use request::{Action, OFFSET_MAX, REQUEST_BYTES_MAX, Request, Stretch};
pub use table::Columns;
pub use text::{CALLS_HEADER, CallToWrite, HEADER, LogWriter};
