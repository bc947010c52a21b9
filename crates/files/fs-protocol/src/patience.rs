//! How long a node waits for others to do their part.
//!
//! An I/O node waits for its clients in two ways: for answers to its requests, and for its messages to leave. Either
//! may take long as long as there is progress. A client that answers nothing, or takes nothing, for the whole of the
//! node's patience is given up: its connection is ended, and with it everything that was done for the client.
//!
//! Checks without progress are counted, not time: so a node that was itself stopped for a while gives no client up.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{Duration, Machine, Net, NodeId};

/// Number of checks for progress within the time limit of a wait.
const LOOKS: u32 = 4;

/// The event that a node waits for.
#[derive(Clone, Copy)]
pub enum Awaited {
    /// Answers to what it has asked.
    Answer,
    /// The departure of what it sends.
    Departure,
}

/// A node's patience with others.
pub struct Patience<M: Machine> {
    machine: M,
    limit: Duration,
    /// The peers from which something is awaited, or was at the last look.
    peers: RefCell<BTreeMap<NodeId, [Wait; 2]>>,
}

/// One way of waiting for one node.
#[derive(Default)]
struct Wait {
    under_way: usize,
    /// Whether anything has happened since the last look.
    moved: bool,
    /// How many looks in a row found that nothing had happened.
    idle_looks: u32,
}

impl Wait {
    /// Looks whether anything has happened; says whether nothing has for too long.
    fn is_in_vain(&mut self) -> bool {
        let moved = std::mem::take(&mut self.moved);
        self.idle_looks = if moved || self.under_way == 0 { 0 } else { self.idle_looks + 1 };
        self.idle_looks >= LOOKS
    }
}

impl<M: Machine> Patience<M> {
    /// Patience of a node that waits for at most `limit`.
    pub fn new(machine: M, limit: Duration) -> Rc<Self> {
        Rc::new(Patience { machine, limit, peers: RefCell::default() })
    }

    /// Notes that something more is awaited from `peer`.
    pub fn begin(self: &Rc<Self>, peer: NodeId, awaited: Awaited) {
        let mut peers = self.peers.borrow_mut();
        let is_new = !peers.contains_key(&peer);
        let wait = &mut peers.entry(peer).or_default()[awaited as usize];
        wait.under_way += 1;
        if wait.under_way == 1 {
            // So far no peer is waited for.
            wait.moved = true;
        }
        drop(peers);
        if is_new {
            let patience = self.clone();
            self.machine.spawn("patience", async move {
                patience.look_after(peer).await;
                Ok(())
            });
        }
    }

    /// Notes that something awaited from `peer` has come about, or will not.
    pub fn end(&self, peer: NodeId, awaited: Awaited) {
        if let Some(waits) = self.peers.borrow_mut().get_mut(&peer) {
            let wait = &mut waits[awaited as usize];
            wait.under_way -= 1;
            wait.moved = true;
        }
    }

    /// Looks after a node as long as something is awaited from it.
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
                [_, true] => "taken anything",
                _ => continue,
            };
            let why = format!("it has not {does_not} for {}, though asked", self.limit);
            self.machine.net().give_up(peer, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_is_waited_for_and_who_does_not_is_not() {
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
