//! Data that clients stage for coming operations of their groups, in one message or several.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::NodeId;

use super::client_quotas::{Share, Shares};
use crate::error::Failure;
use crate::protocol::MemoryId;

/// Memory in bytes for staged data: of each client in any case, and of all clients beyond that.
const MEMORY: (u64, u64) = (256 << 10, 128 << 20);

/// Staged data, by client and group.
pub(super) struct Staged<T> {
    by_group: RefCell<BTreeMap<(NodeId, u64), StagedByClient<T>>>,
    memory: Shares,
}

/// Weight of staged data.
#[derive(Clone, Copy)]
pub(super) struct StagedSize {
    /// Number of entries or nodes, which is limited for each client.
    pub(super) count: u64,
    /// Bytes of memory.
    pub(super) bytes: u64,
}

/// A client's staged data for an operation of a group.
struct StagedByClient<T> {
    /// The memory, which identifies the operation.
    memory: MemoryId,
    parts: Vec<T>,
    /// Number of entries or nodes.
    count: u64,
    shares: Vec<Share>,
}

impl<T> Default for Staged<T> {
    fn default() -> Self {
        Staged { by_group: RefCell::default(), memory: Shares::new(MEMORY.0, MEMORY.1) }
    }
}

impl<T> Staged<T> {
    /// Adds to a client's staged data for an operation. They replace data staged for an earlier operation of
    /// the group. Fails with `refused` if the client's count for all of its groups would exceed `most`, or if
    /// there is no memory.
    pub(super) fn add(
        &self,
        client: NodeId,
        memory: MemoryId,
        mut parts: Vec<T>,
        weight: StagedSize,
        most: u64,
        refused: impl FnOnce(u64) -> Failure,
    ) -> Result<(), Box<Failure>> {
        let group = group_of(memory)?;
        let mut all = self.by_group.borrow_mut();
        if all.get(&(client, group)).is_some_and(|staged| staged.memory != memory) {
            all.remove(&(client, group));
        }
        let of_client = all.range((client, 0)..=(client, u64::MAX));
        let count = of_client.map(|(_, staged)| staged.count).sum::<u64>() + weight.count;
        let share = Some(weight.bytes).filter(|_| count <= most);
        let share = share.and_then(|bytes| self.memory.try_take(client, bytes));
        let Some(share) = share else { return Err(refused(count).into()) };
        let new = || StagedByClient { memory, parts: Vec::new(), count: 0, shares: Vec::new() };
        let staged = all.entry((client, group)).or_insert_with(new);
        staged.parts.append(&mut parts);
        staged.count += weight.count;
        staged.shares.push(share);
        Ok(())
    }

    /// Takes a client's staged data for an operation; empty if it has staged nothing.
    pub(super) fn take(&self, client: NodeId, memory: MemoryId) -> Result<Vec<T>, Box<Failure>> {
        let staged = self.by_group.borrow_mut().remove(&(client, group_of(memory)?));
        Ok(staged.filter(|staged| staged.memory == memory).map(|staged| staged.parts).unwrap_or_default())
    }

    /// Drops the data of a disconnected client.
    pub(super) fn forget(&self, client: NodeId) {
        self.by_group.borrow_mut().retain(|(other, _), _| *other != client);
    }
}

fn group_of(memory: MemoryId) -> Result<u64, Box<Failure>> {
    match memory {
        MemoryId::Collective(barrier) => Ok(barrier.group),
        MemoryId::Request(_) => Err(Failure::invalid("a directory of memory that is not of a group").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CollectiveId;

    const CLIENT: NodeId = NodeId(1);

    fn memory(group: u64, operation: u32) -> MemoryId {
        MemoryId::Collective(CollectiveId { group, operation })
    }

    fn add(staged: &Staged<u64>, memory: MemoryId, weight: u64) -> Result<(), Box<Failure>> {
        let weight = StagedSize { count: weight, bytes: 100 };
        staged.add(CLIENT, memory, vec![weight.count], weight, 10, |all| Failure::invalid(format!("{all}")))
    }

    #[test]
    fn staged_requests_are_taken_once_and_count_until_then() {
        let staged = Staged::default();
        for weight in [3, 4] {
            add(&staged, memory(1, 1), weight).expect("not too much");
        }
        let refused = add(&staged, memory(2, 1), 4).expect_err("too much");
        assert_eq!(refused.text, "11");
        assert_eq!(staged.take(CLIENT, memory(1, 1)), Ok(vec![3, 4]));
        assert_eq!(staged.take(CLIENT, memory(1, 1)), Ok(vec![]));
        add(&staged, memory(2, 1), 10).expect("there is room again");
    }

    #[test]
    fn a_later_operation_of_a_group_replaces_an_earlier_one() {
        let staged = Staged::default();
        add(&staged, memory(1, 1), 9).expect("not too much");
        add(&staged, memory(1, 2), 8).expect("the earlier operation is forgotten");
        assert_eq!(staged.take(CLIENT, memory(1, 1)), Ok(vec![]));
        add(&staged, memory(1, 3), 8).expect("and whatever was asked for does not matter");
        assert!(staged.take(CLIENT, MemoryId::Request(1)).is_err());
        staged.forget(CLIENT);
        assert_eq!(staged.take(CLIENT, memory(1, 3)), Ok(vec![]));
    }
}
