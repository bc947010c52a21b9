//! Conversion of traces to and from formats of other tools.
//!
//! - `perfetto/`: import and export of Perfetto's protocol buffers; `schema.rs` has the messages
//! - `chrome.rs`: the JSON of Chrome's trace viewer, which many tools write; `json_events.rs`: splits it into events
//! - `collector.rs`: events of an import, before they are written as a trace
//! - `table.rs`: spans, counts and flows as tables, in CSV or Parquet
//! - `open.rs`: opens a trace of any supported format, by its first bytes
//!
//! The importers convert traces to our format ([`Collector::write`]), so that only one reader is needed.

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
