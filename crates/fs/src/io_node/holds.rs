//! Which clients have which files of the namespace open, and for what.
//!
//! Holds are in memory only, and end with the client's connection. A client says anew what it holds when it has lost
//! that, whether the keeper was started anew or not, before it asks for anything else.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::{Duration, NodeId};
use namespace::FileNumber;

use crate::protocol::OpenFor;

/// How long after its start the keeper waits for those who held files in an earlier run.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The most files that a client holds.
const FILES_MAX: usize = 1 << 20;

/// How often each client holds each file.
#[derive(Default)]
pub(super) struct Holds(RefCell<BTreeMap<NodeId, BTreeMap<FileNumber, Hold>>>);

/// A client's hold on a file.
struct Hold {
    times: u64,
    /// Writing, if that was asked for with any of them.
    used: OpenFor,
}

impl Holds {
    /// A client holds a file once more; false, if it has too many.
    pub(super) fn hold(&self, client: NodeId, number: FileNumber, used: OpenFor) -> bool {
        self.change(client, number, used, |times| times + 1)
    }

    /// A client holds these files so often; false, if these are too many.
    pub(super) fn hold_again(&self, client: NodeId, files: &[(FileNumber, u64, OpenFor)]) -> bool {
        files.iter().all(|&(number, times, used)| self.change(client, number, used, |_| times))
    }

    fn change(&self, client: NodeId, number: FileNumber, used: OpenFor, change: impl Fn(u64) -> u64) -> bool {
        let mut clients = self.0.borrow_mut();
        let files = clients.entry(client).or_default();
        let has_room = files.contains_key(&number) || files.len() < FILES_MAX;
        if has_room {
            let hold = files.entry(number).or_insert(Hold { times: 0, used });
            *hold = Hold { times: change(hold.times), used: hold.used.max(used) };
        }
        has_room
    }

    /// A client holds a file once less.
    pub(super) fn let_go(&self, client: NodeId, number: FileNumber) {
        let mut clients = self.0.borrow_mut();
        let Some(files) = clients.get_mut(&client) else { return };
        if let Some(hold) = files.get_mut(&number) {
            hold.times = hold.times.saturating_sub(1);
            if hold.times == 0 {
                files.remove(&number);
            }
        }
    }

    /// The connection of a client has ended.
    pub(super) fn gone(&self, client: NodeId) {
        self.0.borrow_mut().remove(&client);
    }

    /// Whether a client holds a file.
    pub(super) fn is_held(&self, number: FileNumber) -> bool {
        self.0.borrow().values().any(|files| files.contains_key(&number))
    }

    /// Whether a client other than this one has a file open for writing.
    pub(super) fn has_other_writers(&self, client: NodeId, number: FileNumber) -> bool {
        let writes =
            |files: &BTreeMap<_, Hold>| files.get(&number).is_some_and(|hold| hold.used == OpenFor::Writing);
        self.0.borrow().iter().any(|(other, files)| *other != client && writes(files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const FILE: FileNumber = FileNumber(7);

    #[test]
    fn who_comes_back_says_what_it_holds() {
        let holds = Holds::default();
        assert!(
            holds.hold(ONE, FILE, OpenFor::Reading)
                && holds.hold(ONE, FILE, OpenFor::Reading)
                && holds.is_held(FILE)
        );
        holds.gone(ONE);
        assert!(!holds.is_held(FILE));
        // It may be said twice.
        assert!(
            holds.hold_again(ONE, &[(FILE, 2, OpenFor::Reading)])
                && holds.hold_again(ONE, &[(FILE, 2, OpenFor::Reading)])
        );
        holds.let_go(ONE, FILE);
        assert!(holds.is_held(FILE));
        holds.let_go(ONE, FILE);
        assert!(!holds.is_held(FILE));
    }

    #[test]
    fn a_client_writes_until_it_has_closed_the_file() {
        let holds = Holds::default();
        let other_writes = |client| holds.has_other_writers(NodeId(client), FILE);
        assert!(holds.hold(ONE, FILE, OpenFor::Writing) && holds.hold(ONE, FILE, OpenFor::Reading));
        assert!(holds.hold(NodeId(2), FILE, OpenFor::Reading));
        assert_eq!([1, 2].map(other_writes), [false, true]);
        holds.let_go(ONE, FILE);
        assert!(other_writes(2));
        holds.let_go(ONE, FILE);
        assert!(!other_writes(2));
        assert!(holds.hold_again(ONE, &[(FILE, 1, OpenFor::Writing)]) && other_writes(2));
        holds.gone(ONE);
        assert!(!other_writes(2));
    }

    #[test]
    fn a_client_with_too_many_files_is_in_nobodys_way() {
        let holds = Holds::default();
        let files: Vec<_> =
            (0..FILES_MAX as u64).map(|number| (FileNumber(number), 1, OpenFor::Reading)).collect();
        assert!(holds.hold_again(ONE, &files) && holds.hold(ONE, FILE, OpenFor::Reading));
        assert!(
            !holds.hold(ONE, FileNumber(1 << 40), OpenFor::Reading)
                && holds.hold(NodeId(2), FileNumber(1 << 40), OpenFor::Reading)
        );
    }
}
