//! Limits the time for which a node waits for others.
//!
//! An I/O node waits for its clients in two ways: for answers to its requests, and for its messages to leave.
//! Either may take long as long as there is progress. If a client answers nothing, or receives nothing, for
//! the whole time limit, the node ends the connection and everything that it did for the client.
//!
//! The node counts checks without progress, not time: a node that was itself stopped for a while disconnects
//! no client for that.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{Duration, Machine, Net, NodeId};

/// Number of checks for progress within the time limit of a wait.
const LOOKS: u32 = 4;

/// Event that a node waits for.
#[derive(Clone, Copy)]
pub enum Awaited {
    /// Answers to requests of this node.
    Answer,
    /// Departure of messages of this node.
    Departure,
}

/// A node's waits for others, with their time limit.
pub struct WaitTimeouts<M: Machine> {
    machine: M,
    limit: Duration,
    /// Peers for which the node waits, or waited at the last check.
    peers: RefCell<BTreeMap<NodeId, [Wait; 2]>>,
}

/// Waits of one kind for one node.
#[derive(Default)]
struct Wait {
    under_way: usize,
    /// True if there was progress since the last check.
    moved: bool,
    /// Number of consecutive checks without progress.
    idle_looks: u32,
}

impl Wait {
    /// Checks for progress. Returns true if there was none for too long.
    fn is_in_vain(&mut self) -> bool {
        let moved = std::mem::take(&mut self.moved);
        self.idle_looks = if moved || self.under_way == 0 { 0 } else { self.idle_looks + 1 };
        self.idle_looks >= LOOKS
    }
}

impl<M: Machine> WaitTimeouts<M> {
    /// Creates the waits of a node that waits for at most `limit`.
    pub fn new(machine: M, limit: Duration) -> Rc<Self> {
        Rc::new(WaitTimeouts { machine, limit, peers: RefCell::default() })
    }

    /// Begins a wait for `peer`.
    pub fn begin(self: &Rc<Self>, peer: NodeId, awaited: Awaited) {
        let mut peers = self.peers.borrow_mut();
        let is_new = !peers.contains_key(&peer);
        let wait = &mut peers.entry(peer).or_default()[awaited as usize];
        wait.under_way += 1;
        if wait.under_way == 1 {
            // The limit starts now: there was no wait of this kind for the peer before.
            wait.moved = true;
        }
        drop(peers);
        if is_new {
            let wait_timeouts = self.clone();
            self.machine.spawn("patience", async move {
                wait_timeouts.look_after(peer).await;
                Ok(())
            });
        }
    }

    /// Ends a wait for `peer`, successful or not.
    pub fn end(&self, peer: NodeId, awaited: Awaited) {
        if let Some(waits) = self.peers.borrow_mut().get_mut(&peer) {
            let wait = &mut waits[awaited as usize];
            wait.under_way -= 1;
            wait.moved = true;
        }
    }

    /// Checks a node periodically as long as there are waits for it, and disconnects it if there is no
    /// progress.
    async fn look_after(&self, peer: NodeId) {
        loop {
            let pause = Duration::from_nanos(self.limit.as_nanos() / u64::from(LOOKS));
            self.machine.sleep_until(self.machine.now() + pause).await;
            let mut peers = self.peers.borrow_mut();
            let Some(waits) = peers.get_mut(&peer) else { return };
            if waits.iter().all(|wait| wait.under_way == 0) {
                peers.remove(&peer);
                return;
            }
            let in_vain = waits.each_mut().map(Wait::is_in_vain);
            drop(peers);
            let does_not = match in_vain {
                [true, _] => "answered",
                [_, true] => "accepted any data",
                _ => continue,
            };
            machine::sometimes!("an I/O node gives up a silent client");
            let why = format!("it has not {does_not} for {} with requests in flight", self.limit);
            self.machine.net().give_up(peer, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_only_without_progress() {
        let mut wait = Wait { under_way: 2, ..Wait::default() };
        for look in 1..20 {
            wait.moved = look % LOOKS == 0;
            assert!(!wait.is_in_vain(), "look {look}");
        }
        assert_eq!((0..LOOKS).filter(|_| wait.is_in_vain()).count(), 4, "3 looks were in vain before");
        wait.under_way = 0;
        assert!(!wait.is_in_vain(), "nothing is awaited");
    }
}
