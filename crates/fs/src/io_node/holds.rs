//! Which clients have which files of the namespace open.
//!
//! Holds are in memory only, and end with the client's connection. A client says anew what it holds when it has lost
//! that, whether the keeper was started anew or not, before it asks for anything else.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::{Duration, NodeId};
use namespace::FileNumber;

use super::shares::Shares;

/// How long after its start the keeper waits for those who held files in an earlier run.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// Files that are held: by each client in any case, and by all clients beyond that. One takes some forty bytes.
const FILES: (u64, u64) = (1 << 12, 1 << 20);

/// How often each client holds each file.
pub(super) struct Holds {
    of_clients: RefCell<BTreeMap<NodeId, BTreeMap<FileNumber, u64>>>,
    shares: Shares,
}

impl Default for Holds {
    fn default() -> Self {
        Holds { of_clients: RefCell::default(), shares: Shares::new(FILES.0, FILES.1) }
    }
}

impl Holds {
    /// A client holds a file once more. Returns false if it has too many.
    pub(super) fn hold(&self, client: NodeId, number: FileNumber) -> bool {
        self.change(client, number, |times| times + 1)
    }

    /// A client holds a file `times` times, whatever was known before. Returns false if it has too many.
    pub(super) fn hold_again(&self, client: NodeId, number: FileNumber, times: u64) -> bool {
        self.change(client, number, |_| times)
    }

    fn change(&self, client: NodeId, number: FileNumber, change: impl Fn(u64) -> u64) -> bool {
        let mut clients = self.of_clients.borrow_mut();
        let files = clients.entry(client).or_default();
        let has_room = files.contains_key(&number) || self.shares.try_add(client, 1);
        if has_room {
            let times = files.entry(number).or_default();
            *times = change(*times);
        }
        has_room
    }

    /// A client holds a file once less.
    pub(super) fn let_go(&self, client: NodeId, number: FileNumber) {
        let mut clients = self.of_clients.borrow_mut();
        let Some(files) = clients.get_mut(&client) else { return };
        if let Some(times) = files.get_mut(&number) {
            *times = times.saturating_sub(1);
            if *times == 0 {
                files.remove(&number);
                self.shares.remove(client, 1);
            }
        }
    }

    /// The connection of a client has ended.
    pub(super) fn gone(&self, client: NodeId) {
        self.of_clients.borrow_mut().remove(&client);
        self.shares.remove_all(client);
    }

    /// Whether this client holds a file.
    pub(super) fn has(&self, client: NodeId, number: FileNumber) -> bool {
        self.of_clients.borrow().get(&client).is_some_and(|files| files.contains_key(&number))
    }

    /// Whether a client holds a file.
    pub(super) fn is_held(&self, number: FileNumber) -> bool {
        self.of_clients.borrow().values().any(|files| files.contains_key(&number))
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
        assert!(holds.hold(ONE, FILE) && holds.hold(ONE, FILE) && holds.is_held(FILE));
        holds.gone(ONE);
        assert!(!holds.is_held(FILE));
        // It may be said twice.
        assert!(holds.hold_again(ONE, FILE, 2) && holds.hold_again(ONE, FILE, 2));
        holds.let_go(ONE, FILE);
        assert!(holds.is_held(FILE));
        holds.let_go(ONE, FILE);
        assert!(!holds.is_held(FILE));
    }

    #[test]
    fn a_client_with_too_many_files_is_in_nobodys_way() {
        let holds = Holds::default();
        let held = (0..).take_while(|&number| holds.hold_again(ONE, FileNumber(number), 1)).count() as u64;
        assert!((FILES.1 / 2..=FILES.0 + FILES.1 / 2).contains(&held) && holds.hold(ONE, FILE));
        assert!(!holds.hold(ONE, FileNumber(1 << 40)) && holds.hold(NodeId(2), FileNumber(1 << 40)));
        holds.gone(ONE);
        assert!(holds.hold(ONE, FileNumber(1 << 40)) && !holds.has(ONE, FILE));
    }
}
