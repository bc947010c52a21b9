//! The files of the namespace that each client has open, with their use.
//!
//! Holds are in memory only, and end with the client's connection. A client whose connection has ended, with
//! or without a restart of the metadata server, reports its holds again before any other request.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::{Duration, NodeId};
use namespace::FileNumber;

use super::client_quotas::Shares;
use crate::protocol::{OpenCount, OpenFor};

/// Time after its start for which the metadata server waits for the holders of files in an earlier
/// incarnation.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// Limit of held files: of each client in any case, and of all clients beyond that. Each takes some fifty
/// bytes.
const FILES: (u64, u64) = (1 << 12, 1 << 20);

/// Number of times that each client holds each file.
pub(super) struct OpenRefs {
    of_clients: RefCell<BTreeMap<NodeId, BTreeMap<FileNumber, OpenCount>>>,
    shares: Shares,
}

impl Default for OpenRefs {
    fn default() -> Self {
        OpenRefs { of_clients: RefCell::default(), shares: Shares::new(FILES.0, FILES.1) }
    }
}

impl OpenRefs {
    /// Adds one hold of a client on a file. Returns false if the client has too many.
    pub(super) fn hold(&self, client: NodeId, number: FileNumber, used: OpenFor) -> bool {
        self.change(client, number, |count| count.add(used))
    }

    /// Sets the number of a client's holds on a file, whatever it was before. Returns false if the client has
    /// too many.
    pub(super) fn reclaim(&self, client: NodeId, number: FileNumber, times: OpenCount) -> bool {
        self.change(client, number, |count| *count = times)
    }

    fn change(&self, client: NodeId, number: FileNumber, change: impl Fn(&mut OpenCount)) -> bool {
        let mut clients = self.of_clients.borrow_mut();
        let files = clients.entry(client).or_default();
        let has_room = files.contains_key(&number) || self.shares.try_add(client, 1);
        if has_room {
            change(files.entry(number).or_default());
        }
        has_room
    }

    /// Removes one hold of a client on a file.
    pub(super) fn release(&self, client: NodeId, number: FileNumber, used: OpenFor) {
        let mut clients = self.of_clients.borrow_mut();
        let Some(files) = clients.get_mut(&client) else { return };
        if let Some(count) = files.get_mut(&number) {
            count.remove(used);
            if count.is_nothing() {
                files.remove(&number);
                self.shares.remove(client, 1);
            }
        }
    }

    /// Removes all holds of a disconnected client.
    pub(super) fn client_disconnected(&self, client: NodeId) {
        self.of_clients.borrow_mut().remove(&client);
        self.shares.remove_all(client);
    }

    /// True if this client holds a file.
    pub(super) fn has(&self, client: NodeId, number: FileNumber) -> bool {
        self.of_clients.borrow().get(&client).is_some_and(|files| files.contains_key(&number))
    }

    /// True if any client holds a file.
    pub(super) fn is_held(&self, number: FileNumber) -> bool {
        self.of_clients.borrow().values().any(|files| files.contains_key(&number))
    }

    /// True if a client other than this one has a file open for writing.
    pub(super) fn has_other_writers(&self, client: NodeId, number: FileNumber) -> bool {
        let writes =
            |files: &BTreeMap<_, OpenCount>| files.get(&number).is_some_and(|count| count.writing > 0);
        self.of_clients.borrow().iter().any(|(other, files)| *other != client && writes(files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const FILE: FileNumber = FileNumber(7);
    const TWICE: OpenCount = OpenCount { reading: 2, writing: 0 };
    const FOR_WRITING: OpenCount = OpenCount { reading: 0, writing: 1 };

    #[test]
    fn a_reconnected_client_reports_its_open_files() {
        let holds = OpenRefs::default();
        let hold = || holds.hold(ONE, FILE, OpenFor::Reading);
        assert!(hold() && hold() && holds.is_held(FILE));
        holds.client_disconnected(ONE);
        assert!(!holds.is_held(FILE));
        // A client may report its holds twice.
        assert!(holds.reclaim(ONE, FILE, TWICE) && holds.reclaim(ONE, FILE, TWICE));
        holds.release(ONE, FILE, OpenFor::Reading);
        assert!(holds.is_held(FILE));
        holds.release(ONE, FILE, OpenFor::Reading);
        assert!(!holds.is_held(FILE));
    }

    #[test]
    fn a_client_counts_as_a_writer_until_its_last_close_for_writing() {
        let holds = OpenRefs::default();
        let other_writes = |client| holds.has_other_writers(NodeId(client), FILE);
        assert!(holds.hold(ONE, FILE, OpenFor::Writing) && holds.hold(ONE, FILE, OpenFor::Reading));
        assert!(holds.hold(NodeId(2), FILE, OpenFor::Reading));
        assert_eq!([1, 2].map(other_writes), [false, true]);
        holds.release(ONE, FILE, OpenFor::Writing);
        assert!(!other_writes(2) && holds.has(ONE, FILE), "it still reads");
        assert!(holds.reclaim(ONE, FILE, FOR_WRITING) && other_writes(2));
        holds.release(ONE, FILE, OpenFor::Reading);
        assert!(other_writes(2), "it has no reference for reading");
        holds.client_disconnected(ONE);
        assert!(!other_writes(2));
    }

    #[test]
    fn a_client_with_too_many_open_files_does_not_limit_others() {
        let holds = OpenRefs::default();
        let hold = |client, number| holds.hold(client, number, OpenFor::Reading);
        let held = (0..).take_while(|&number| holds.reclaim(ONE, FileNumber(number), TWICE)).count() as u64;
        assert!((FILES.1 / 2..=FILES.0 + FILES.1 / 2).contains(&held) && hold(ONE, FILE));
        assert!(!hold(ONE, FileNumber(1 << 40)) && hold(NodeId(2), FileNumber(1 << 40)));
        holds.client_disconnected(ONE);
        assert!(hold(ONE, FileNumber(1 << 40)) && !holds.has(ONE, FILE));
    }
}
