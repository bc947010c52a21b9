//! Faults that last during operations, for the coverage of a run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{Duration, Instant, Machine, NodeId};

use super::World;
use crate::coverage::{Hit, RunCoverage};
use crate::kind_names::Role;
use crate::schedule::{ClientOperation, Fault};

/// Operations in flight and faults so far.
#[derive(Default)]
pub(super) struct Overlaps {
    coverage: RefCell<RunCoverage>,
    metadata_server: Cell<Option<NodeId>>,
    /// Clients and names of the operations in flight, by their numbers.
    operations: RefCell<BTreeMap<u64, (usize, &'static str)>>,
    /// Number of operations so far.
    count: Cell<u64>,
    /// Faults, and the times at which they end as far as known.
    faults: RefCell<Vec<(Fault, Instant)>>,
}

/// Operation in flight, until it is dropped.
pub(super) struct OperationRunning {
    world: Rc<World>,
    number: u64,
}

impl Drop for OperationRunning {
    fn drop(&mut self) {
        self.world.overlaps.operations.borrow_mut().remove(&self.number);
    }
}

impl Overlaps {
    pub(super) fn coverage(&self) -> RunCoverage {
        self.coverage.borrow().clone()
    }

    pub(super) fn set_metadata_server(&self, node: NodeId) {
        self.metadata_server.set(Some(node));
    }

    fn note(&self, fault: &Fault, role: Role, operation: &'static str) {
        self.coverage.borrow_mut().hits.insert(Hit::Overlap { fault: fault.name(), role, operation });
    }
}

impl World {
    /// Records a fault that begins now, with the operations in flight.
    pub(super) fn note_overlaps(&self, fault: Fault) {
        *self.overlaps.coverage.borrow_mut().faults.entry(fault.name()).or_default() += 1;
        let end = self.checker.now() + Duration::from_micros(duration_of(&fault));
        self.overlaps.faults.borrow_mut().push((fault, end));
        for &(client, operation) in self.overlaps.operations.borrow().values() {
            self.overlaps.note(&fault, self.role(&fault, client), operation);
        }
    }

    /// Records an operation of a client that begins now, with the faults that last.
    pub(super) fn note_operation(
        self: &Rc<Self>,
        client: usize,
        operation: ClientOperation,
    ) -> Option<OperationRunning> {
        let name = operation.name()?;
        for (fault, end) in &*self.overlaps.faults.borrow() {
            if *end > self.checker.now() || self.is_pending(fault) {
                self.overlaps.note(fault, self.role(fault, client), name);
            }
        }
        let number = self.overlaps.count.get();
        self.overlaps.count.set(number + 1);
        self.overlaps.operations.borrow_mut().insert(number, (client, name));
        Some(OperationRunning { world: self.clone(), number })
    }

    /// Returns true if a fault with a number of occurrences has not reached this number.
    fn is_pending(&self, fault: &Fault) -> bool {
        let of = |io_node: u64| self.nodes.faults((io_node % self.nodes.count()) as usize);
        match *fault {
            Fault::FailWrites(io_node, _) => of(io_node).failing_writes.get() > 0,
            Fault::FailFlushes(io_node, _) => of(io_node).failing_flushes.get() > 0,
            Fault::FailMedium(io_node, _) => of(io_node).failing_syncs.get() > 0,
            Fault::FailTransactions(io_node, _) => of(io_node).failing_transactions.get() > 0,
            Fault::FailRemovals(io_node, _) => of(io_node).failing_removals.get() > 0,
            Fault::FlipRead(io_node) => of(io_node).flipped_reads.get() > 0,
            Fault::FlipWrite(io_node) => of(io_node).flipped_writes.get() > 0,
            _ => false,
        }
    }

    /// Returns the role of the node that a fault hits, for an operation of a client.
    fn role(&self, fault: &Fault, client: usize) -> Role {
        match *fault {
            Fault::KillClient(other, _)
            | Fault::Reset(other, _)
            | Fault::BlockToIoNode(other, ..)
            | Fault::BlockToClient(_, other, _)
            | Fault::Isolate(other, _) => {
                let is_own = other % self.schedule.clients.len() as u64 == client as u64;
                if is_own { Role::OwnClient } else { Role::OtherClient }
            }
            Fault::BlockBetween(..) => Role::IoNode,
            Fault::PowerCut(io_node)
            | Fault::Kill(io_node)
            | Fault::HoldDisk(io_node, _)
            | Fault::FailWrites(io_node, _)
            | Fault::FailFlushes(io_node, _)
            | Fault::FailMedium(io_node, _)
            | Fault::FailTransactions(io_node, _)
            | Fault::FailRemovals(io_node, _)
            | Fault::FillDisk(io_node, ..)
            | Fault::FlipRead(io_node)
            | Fault::FlipWrite(io_node)
            | Fault::Damage(io_node, _)
            | Fault::LoseWrite(io_node)
            | Fault::MisdirectWrite(io_node)
            | Fault::JumpClock(io_node, _) => {
                let node = self.nodes.node((io_node % self.nodes.count()) as usize).node();
                if self.overlaps.metadata_server.get() == Some(node) {
                    Role::MetadataServer
                } else {
                    Role::IoNode
                }
            }
        }
    }
}

/// Returns the duration of a temporary fault in microseconds, 0 for other faults.
fn duration_of(fault: &Fault) -> u64 {
    match *fault {
        Fault::KillClient(_, time)
        | Fault::BlockToIoNode(_, _, time)
        | Fault::BlockToClient(_, _, time)
        | Fault::BlockBetween(_, _, time)
        | Fault::Isolate(_, time)
        | Fault::HoldDisk(_, time)
        | Fault::FillDisk(_, _, time) => time,
        _ => 0,
    }
}
