//! Messages between nodes, and their encoding.
//!
//! A header is `"SF"`, one byte of version, then a [`Frame`] in postcard's encoding (its format is stable and
//! published). Data are sent separately, as the message's payload. The decoder accepts no invalid header: garbage,
//! truncated headers and unknown versions are errors that state the expected input.
//!
//! ```text
//! 'S' 'F' version | Request tag body            a client sends a request with a tag of its choice
//! 'S' 'F' version | Reply   tag body            the server answers with the same tag
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
pub use ids::{CollectiveId, FileId, MemoryId};
pub use label::{Committed, LABEL_VERSION, Label};
pub use lock::{HeldLock, LockAnswer, LockChange, LockStep};
pub use reply::Reply;
pub use report::{Damage, ExaminedComputer, ExaminedDisk, ExaminedHeldUp, ListedStripe};
pub use request::{
    CONTRIBUTION_BYTES_MAX, CONTRIBUTIONS_BYTES_MAX, ENTRIES_MAX, FENCED_MAX, HELD_MAX, LISTED_STRIPES,
    PIECES_MAX, RECORDED_BYTES_MAX, REMOVED_MAX, SCRUB_BYTES_MAX,
};
pub use request::{Flushing, OpenCount, OpenFor, RecordingStep, Request, StripePlaces};
