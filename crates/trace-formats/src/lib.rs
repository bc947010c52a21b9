//! Traces in the formats of others: written for their tools, and read from them.
//!
//! - `perfetto/`: Perfetto's protocol buffers, both ways; `schema.rs` has the messages
//! - `chrome.rs`: the JSON of Chrome's trace viewer, which many tools write
//! - `collect.rs`: what an importer finds, before it is written as a trace
//! - `table.rs`: spans as a table, in CSV or Parquet
//! - `open.rs`: a trace of any format that can be read, by its first bytes
//!
//! Whatever is imported becomes a trace of our format first ([`import`]), so that there is one reader.

mod chrome;
mod collect;
mod open;
mod perfetto;
mod table;

pub use collect::Imported;
pub use open::{FormatError, TraceFormat, detect, import, read_any};
pub use perfetto::write_perfetto;
pub use table::{write_csv, write_parquet};
