//! Which way the data of a call go, and why that one.

use std::fmt;

use layout::Operation;
use request_log::CallMethod;

use crate::hints::Hints;

/// Which way the data of a call go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Those of all members at once, by a collective method.
    Together(CallMethod),
    /// For itself, under the lock of the file.
    Atomic,
    /// For itself, one piece or nothing.
    PageCache,
    /// For itself, several pieces: in one request to each agent.
    Selections,
}

/// The way of a call, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    pub(crate) way: Way,
    pub(crate) why: Why,
}

/// Why a call goes its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// `starfish_method=auto`, and nothing else that counts.
    Auto,
    /// A hint names the method.
    Method,
    /// This hint of ROMIO's is `disable`.
    Disabled(&'static str),
    /// Calls see each other whole or not at all.
    AtomicMode,
    /// There is nobody to do it with.
    OneProcess,
    /// It is no collective call.
    OwnCall,
}

/// What is known of a call when its way is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) operation: Operation,
    pub(crate) together: bool,
    pub(crate) is_atomic: bool,
    /// How many have the file open.
    pub(crate) members: u32,
    /// How many this one moves.
    pub(crate) pieces: u64,
}

impl Situation {
    /// The way of the call. What members do together depends on nothing but what is the same for all of them.
    pub(crate) fn choose(self, hints: &Hints) -> Choice {
        let alone = |why| Choice { way: self.way_alone(), why };
        match self {
            Situation { together: false, .. } => alone(Why::OwnCall),
            Situation { is_atomic: true, .. } => alone(Why::AtomicMode),
            Situation { members: 1, .. } => alone(Why::OneProcess),
            _ => match hints.method(self.operation) {
                (CallMethod::Independent, why) => alone(why),
                (method, why) => Choice { way: Way::Together(method), why },
            },
        }
    }

    fn way_alone(self) -> Way {
        match (self.is_atomic, self.pieces) {
            (true, _) => Way::Atomic,
            (false, 0 | 1) => Way::PageCache,
            (false, _) => Way::Selections,
        }
    }
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Together(method) => method.name(),
            Way::Atomic => "atomic",
            Way::PageCache => "through the page cache",
            Way::Selections => "by selections",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Auto => f.write_str("auto"),
            Why::Method => f.write_str("starfish_method"),
            Why::Disabled(hint) => write!(f, "{hint}=disable"),
            Why::AtomicMode => f.write_str("atomic mode"),
            Why::OneProcess => f.write_str("one process has the file open"),
            Why::OwnCall => f.write_str("no collective call"),
        }
    }
}
