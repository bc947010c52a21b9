//! Traces in the formats of others: written for their tools, and read from them.
//!
//! - `perfetto/`: Perfetto's protocol buffers, both ways; `schema.rs` has the messages
//! - `chrome.rs`: the JSON of Chrome's trace viewer, which many tools write; `json_events.rs`: its events, one by one
//! - `collector.rs`: what an importer finds, before it is written as a trace
//! - `table.rs`: spans, counts and flows as tables, in CSV or Parquet
//! - `open.rs`: a trace of any format that can be read, by its first bytes
//!
//! An imported trace becomes a trace of our format first ([`Collector::write`]), so that there is one reader.

mod chrome;
mod collector;
mod json_events;
mod open;
mod perfetto;
mod table;

pub use collector::{Collector, Imported};
pub use open::{FormatError, TraceFormat, collect, detect, read_any};
pub use perfetto::write_perfetto;
pub use table::{TraceTable, write_csv, write_parquet};
