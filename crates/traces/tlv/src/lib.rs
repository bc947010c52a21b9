//! Records activities of a program's threads into a trace for the Thread Log Viewer.
//!
//! ```
//! # fn main() -> tlv::Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let file = Some(directory.path().join("sort.tlv"));
//! # let settings = tlv::Settings { file, ..tlv::Settings::default() };
//! static SORT: tlv::State = tlv::State::new("sort");
//!
//! // Or start("sort"): into sort.tlv, or the file that TLV_FILE names.
//! let recording = tlv::Recording::start_with("sort", &settings)?;
//! std::thread::scope(|threads| {
//!     threads.spawn(|| {
//!         let _scope = SORT.enter();
//!         // ...
//!     });
//! });
//! recording.finish()
//! # }
//! ```
//!
//! A record costs about 10 ns: the library stores the ticks of the processor's counter and the number of the processor
//! in a ring of the thread, without a lock. A thread of the library writes the contents of the rings ten times a
//! second, and when a ring is half full. Records that find the ring full are dropped and counted, and the trace
//! contains the count. A killed process loses the last tenth of a second.
//!
//! C and C++ programs use the crate `libtlv` (`tlv.h`), Python programs `starfish.tlv`.
//!
//! Map of the code, in reading order:
//!
//! - `declaration.rs`: [`State`], [`Counter`], [`Argument`], as Rust programs declare and use them; start here
//! - `record.rs`: records by the numbers of states and counters, as other languages make them
//! - `ring.rs`: ring of entries for the writer, built on `primitives.rs`; `entry.rs`: format of an entry
//! - `row.rs`: each thread's ring; `ticks.rs`: time; `switch.rs`: recording on or off
//! - `writer.rs`: the writer thread; `declared.rs`: declarations
//! - `recording.rs`: start, end and forks; `process.rs`: description of the process; `settings.rs`: the user's
//!   settings; `error.rs`: errors

mod declaration;
mod declared;
mod entry;
mod error;
mod primitives;
mod process;
mod record;
mod recording;
mod ring;
mod row;
mod settings;
mod switch;
mod ticks;
mod writer;

pub use declaration::{Argument, Counter, Scope, State, enter};
pub use declared::{DECLARATIONS_MAX, declare_counter, declare_events, declare_name, declare_state};
pub use entry::TEXT_BYTES;
pub use error::{Error, Refused, Result};
pub use record::{
    add_thread, argue, argue_text, begin, count, end, event, flow_in, flow_out, is_added, is_recording,
    name_thread, new_flow,
};
pub use recording::{Recording, finish, start};
pub use settings::Settings;
pub use trace::{Amount, Colour, CounterId, CounterInfo, NameId, StateId, StateInfo};

/// Page of the manual about recording: its examples are compiled.
#[cfg(doctest)]
mod manual {
    #[doc = include_str!("../../../../docs/manual/recording-programs.md")]
    mod recording_programs {}
}
