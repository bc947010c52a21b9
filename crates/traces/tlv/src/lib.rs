//! Records what the threads of a program do, into a trace: the Thread Log Viewer's half that is in the program.
//!
//! ```
//! # fn main() -> tlv::Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let file = Some(directory.path().join("sort.tlv"));
//! # let settings = tlv::Settings { file, ..tlv::Settings::default() };
//! static SORT: tlv::State = tlv::State::new("sort");
//!
//! // Or start("sort"): into sort.tlv, or what the environment says.
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
//! A record costs some 10 ns: ticks of the processor's counter and the number of the processor go into a ring that
//! belongs to the thread, without a lock. A thread of the library writes what is there ten times a second, and when a
//! ring is half full. What has no room is counted, and the count is written. A process that is killed loses the last
//! tenth of a second.
//!
//! C and C++ programs use the crate `libtlv` (`tlv.h`), Python programs `starfish.tlv`.
//!
//! Map of the code, in reading order:
//!
//! - `declaration.rs`: [`State`], [`Counter`], [`Argument`], as programs in Rust declare and use them; start here
//! - `record.rs`: the same by numbers, as other languages do
//! - `ring.rs`: where entries wait for the writer, of what `primitives.rs` has; `entry.rs`: what an entry looks like
//!   there
//! - `row.rs`: each thread's ring; `ticks.rs`: time; `switch.rs`: whether anything is recorded
//! - `writer.rs`: the thread that writes; `declared.rs`: what is declared
//! - `recording.rs`: beginning, end and forks; `process.rs`: what is said of the process; `settings.rs`: what the user
//!   says; `error.rs`: what can go wrong

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

/// The manual's page about recording, whose example is compiled.
#[cfg(doctest)]
mod manual {
    #[doc = include_str!("../../../../docs/manual/recording-programs.md")]
    mod recording_programs {}
}
