//! Perfetto's own format (<https://ui.perfetto.dev>): a sequence of packets in protocol buffers.
//!
//! - `schema.rs`: the messages
//! - `export.rs`: a timeline for Perfetto's tools
//! - `import.rs`: track events that others have recorded

mod export;
mod import;
mod schema;

pub use export::write_perfetto;
pub(crate) use import::collect;
