//! Perfetto's native format (<https://ui.perfetto.dev>): a sequence of packets in protocol buffers.
//!
//! - `schema.rs`: the messages
//! - `export.rs`: a timeline for Perfetto's tools
//! - `import.rs`: track events recorded by other programs

mod export;
mod import;
mod schema;

pub use export::write_perfetto;
pub(crate) use import::collect;
