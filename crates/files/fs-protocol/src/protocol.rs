//! Messages between nodes, and their encoding.
//!
//! A header is `"SF"`, one byte of version, then a [`Frame`] in postcard's encoding (its format is stable and
//! published); data travel beside it as the message's payload. Nothing is trusted: decoding garbage,
//! truncated headers or unknown versions gives an error that says what was expected.
//!
//! ```text
//! 'S' 'F' version | Request tag body            a node asks; tag is its own
//! 'S' 'F' version | Reply   tag body            the other answers with the same tag
//! ```

mod block_write;
mod collective;
mod encoding;
mod frame;
mod ids;
mod label;
mod lock;
mod reply;
mod report;
mod request;

pub use block_write::{BlockWrite, Fetch, StripeHome, WrittenUntil};
pub use collective::{Collective, Direction, Listed, Selected, SelectedPart, Selecting, Selectors, TeamStep};
pub use frame::{Frame, VERSION};
pub use ids::{FileId, MeetingId, MemoryId};
pub use label::{Committed, LABEL_VERSION, Label};
pub use lock::{HeldLock, LockAnswer, LockChange, LockStep};
pub use reply::Reply;
pub use report::{Damage, ExaminedComputer, ExaminedDisk, ExaminedHeldUp, ListedStripe};
pub use request::{
    BROUGHT_BY_ALL_MAX, BROUGHT_BYTES_MAX, ENTRIES_MAX, FENCED_MAX, HELD_MAX, LISTED_STRIPES, PIECES_MAX,
    RECORDED_BYTES_MAX, REMOVED_MAX, SCRUB_BYTES_MAX,
};
pub use request::{Flushing, OpenCount, OpenFor, RecordingStep, Request, StripePlaces};
