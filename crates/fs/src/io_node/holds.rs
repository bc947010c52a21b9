//! Which clients have which files of the namespace open.
//!
//! ```text
//!  client                                 keeper
//!  Tree, hold               ------->      holds the file
//!     the connection ends                 may hold it still, for GRACE
//!  HoldAgain                ------->      holds what it says, and nothing else
//!  LetGo                    ------->      holds it once less
//! ```
//!
//! - Holds are in memory only. A client says anew what it holds after it has lost its connection, whether the keeper
//!   was started anew or not, before it asks for anything else.
//! - A client whose connection has ended may be there still, and have its files open.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use machine::{Duration, Instant, NodeId};
use namespace::FileNumber;

/// How long clients are waited for that are to say what they hold: from the end of their connections, and from the
/// start of the keeper. They try it every ten seconds.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The most files that a client holds.
const FILES_MAX: usize = 1 << 20;

/// What all clients hold.
#[derive(Default)]
pub(super) struct Holds(RefCell<BTreeMap<NodeId, ClientHolds>>);

/// What a client holds.
#[derive(Default)]
struct ClientHolds {
    /// How often it holds each file.
    files: BTreeMap<FileNumber, u64>,
    /// What it held over connections that have ended, of which it has said nothing since.
    before: BTreeSet<FileNumber>,
    /// Until when it is waited for because of that.
    until: Instant,
}

impl ClientHolds {
    /// Makes place for a file; whether there is one.
    fn has_room_for(&mut self, number: FileNumber) -> bool {
        self.before.remove(&number);
        self.files.contains_key(&number) || self.files.len() + self.before.len() < FILES_MAX
    }

    fn may_hold(&self, number: FileNumber, now: Instant) -> bool {
        self.files.contains_key(&number) || (now < self.until && self.before.contains(&number))
    }
}

impl Holds {
    /// A client holds a file once more; false, if it has too many.
    pub(super) fn hold(&self, client: NodeId, number: FileNumber) -> bool {
        let mut clients = self.0.borrow_mut();
        let holds = clients.entry(client).or_default();
        let has_room = holds.has_room_for(number);
        if has_room {
            *holds.files.entry(number).or_default() += 1;
        }
        has_room
    }

    /// A client holds these files so often; and no others that it held before its connection ended, if there are no
    /// `more`. False, if these are too many.
    pub(super) fn hold_again(&self, client: NodeId, files: &[(FileNumber, u64)], more: bool) -> bool {
        let mut clients = self.0.borrow_mut();
        let holds = clients.entry(client).or_default();
        let all = files.iter().all(|&(number, times)| {
            let has_room = holds.has_room_for(number);
            if has_room {
                holds.files.insert(number, times);
            }
            has_room
        });
        if all && !more {
            holds.before.clear();
        }
        all
    }

    /// A client holds a file once less.
    pub(super) fn let_go(&self, client: NodeId, number: FileNumber) {
        let mut clients = self.0.borrow_mut();
        let Some(holds) = clients.get_mut(&client) else { return };
        if let Some(times) = holds.files.get_mut(&number) {
            *times = times.saturating_sub(1);
            if *times == 0 {
                holds.files.remove(&number);
            }
        }
    }

    /// The connection of a client has ended.
    pub(super) fn gone(&self, client: NodeId, now: Instant) {
        let mut clients = self.0.borrow_mut();
        if let Some(holds) = clients.get_mut(&client) {
            holds.before.extend(std::mem::take(&mut holds.files).into_keys());
            holds.until = now + GRACE;
        }
        clients.retain(|_, holds| !holds.files.is_empty() || (now < holds.until && !holds.before.is_empty()));
    }

    /// Whether a client that is there holds a file.
    pub(super) fn is_held(&self, number: FileNumber) -> bool {
        self.0.borrow().values().any(|holds| holds.files.contains_key(&number))
    }

    /// Whether any client may hold a file, be it one that is to come back.
    pub(super) fn may_be_held(&self, number: FileNumber, now: Instant) -> bool {
        self.0.borrow().values().any(|holds| holds.may_hold(number, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const FILE: FileNumber = FileNumber(7);

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    #[test]
    fn who_is_gone_may_come_back_for_a_while() {
        let holds = Holds::default();
        assert!(holds.hold(ONE, FILE) && holds.may_be_held(FILE, at(1)));
        holds.gone(ONE, at(2));
        assert!(!holds.is_held(FILE) && holds.may_be_held(FILE, at(61)) && !holds.may_be_held(FILE, at(62)));
        holds.gone(NodeId(2), at(62));
        assert!(holds.0.borrow().is_empty(), "nothing is remembered for ever");
    }

    #[test]
    fn who_comes_back_says_what_it_holds() {
        let holds = Holds::default();
        let other = FileNumber(8);
        for number in [FILE, FILE, other] {
            assert!(holds.hold(ONE, number));
        }
        holds.gone(ONE, at(2));
        for _ in 0..2 {
            // It may be said twice.
            assert!(holds.hold_again(ONE, &[(FILE, 2)], true));
            assert!(holds.may_be_held(other, at(3)), "it has not said all");
        }
        holds.let_go(ONE, FILE);
        assert!(holds.is_held(FILE));
        holds.let_go(ONE, FILE);
        assert!(!holds.may_be_held(FILE, at(3)));
        assert!(holds.hold_again(ONE, &[], false) && !holds.may_be_held(other, at(3)));
    }

    #[test]
    fn a_client_with_too_many_files_is_in_nobodys_way() {
        let holds = Holds::default();
        let files: Vec<_> = (0..FILES_MAX as u64).map(|number| (FileNumber(number), 1)).collect();
        assert!(holds.hold_again(ONE, &files, false));
        holds.gone(ONE, at(2));
        assert!(!holds.hold(ONE, FileNumber(1 << 40)));
        assert!(holds.hold(ONE, FILE) && holds.hold_again(ONE, &files, false));
        assert!(!holds.hold_again(ONE, &[(FileNumber(1 << 40), 1)], false));
        assert!(holds.hold(NodeId(2), FileNumber(1 << 40)));
    }
}
