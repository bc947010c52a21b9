//! Injection of faults at their times, and their end.

use std::cell::Cell;
use std::rc::Rc;

use machine::{Duration, Machine};
use sim::SimMachine;

use super::{QUIET, World};
use crate::names::PossibleNames;
use crate::schedule::{Fault, TimedFault};

/// Time after which the last fault has no effect on waiting operations: a lease and a timeout.
const HEALED: Duration = Duration::from_secs(20);

impl World {
    /// Schedules the faults that come at a time after the start, or during an operation that starts now.
    pub(super) fn start_faults(self: &Rc<Self>, during: Option<(usize, usize)>) {
        for (index, fault) in self.schedule.faults.iter().enumerate() {
            if fault.during == during {
                let TimedFault { at, fault, .. } = *fault;
                self.later(at, move |world| {
                    if world.broken.borrow().is_none() {
                        world.log(|| format!("{fault:?}"));
                        world.inject(index as u64, fault);
                    }
                });
            }
        }
    }

    /// Returns true if an operation of a client will start a fault.
    fn has_pending_faults(&self) -> bool {
        let next = self.next.borrow();
        let will_start = |(client, operation): (usize, usize)| next[client] <= operation;
        self.schedule.faults.iter().any(|fault| fault.during.is_some_and(will_start))
    }

    /// Injects a fault. A task of the checker ends it.
    fn inject(self: &Rc<Self>, index: u64, fault: Fault) {
        let seed = machine::mix(self.schedule.seed ^ index << 32) >> 30;
        let clients: Vec<SimMachine> =
            self.clients.borrow().iter().map(|(machine, _)| machine.clone()).collect();
        self.note_fault(self.checker.now());
        self.note_overlaps(fault);
        let io_node = |io_node: u64| (io_node % self.nodes.count()) as usize;
        let client = |client: u64| (client % clients.len() as u64) as usize;
        let add = |cell: &Cell<u32>, count: u64| cell.set(cell.get() + count as u32);
        match fault {
            Fault::PowerCut(victim) => {
                self.nodes.crash(io_node(victim), seed);
                self.note_loss();
                self.cuts.set(self.cuts.get() + 1);
                self.names.borrow_mut().iter_mut().for_each(PossibleNames::power_cut);
            }
            Fault::Kill(victim) => {
                self.nodes.kill(io_node(victim));
                self.note_loss();
            }
            Fault::KillClient(victim, pause) => self.kill_client(client(victim), pause),
            Fault::Reset(victim, other) => clients[client(victim)].reset(self.nodes.names()[io_node(other)]),
            Fault::BlockToIoNode(from, to, time) => {
                self.block(&clients[client(from)], self.nodes.node(io_node(to)), time);
            }
            Fault::BlockToClient(from, to, time) => {
                self.block(self.nodes.node(io_node(from)), &clients[client(to)], time);
            }
            Fault::BlockBetween(from, to, time) => {
                let (from, to) = (io_node(from), io_node(to));
                if from != to {
                    self.block(self.nodes.node(from), self.nodes.node(to), time);
                }
            }
            Fault::Isolate(victim, time) => {
                for io_node in 0..self.nodes.count() as usize {
                    let (client, io_node) = (&clients[client(victim)], self.nodes.node(io_node));
                    self.block(client, io_node, time);
                    self.block(io_node, client, time);
                }
            }
            Fault::HoldDisk(victim, time) => {
                let victim = io_node(victim);
                self.nodes.faults(victim).hold();
                self.later(time, move |world| world.nodes.faults(victim).release());
            }
            Fault::FailWrites(victim, count) => {
                self.note_pending_loss();
                add(&self.nodes.faults(io_node(victim)).failing_writes, count);
            }
            Fault::FailFlushes(victim, count) => {
                self.note_pending_loss();
                add(&self.nodes.faults(io_node(victim)).failing_flushes, count);
            }
            Fault::FailMedium(victim, count) => {
                self.note_pending_loss();
                add(&self.nodes.faults(io_node(victim)).failing_syncs, count);
            }
            Fault::FailTransactions(victim, count) => {
                add(&self.nodes.faults(io_node(victim)).failing_transactions, count);
            }
            Fault::FailRemovals(victim, count) => {
                add(&self.nodes.faults(io_node(victim)).failing_removals, count);
            }
            Fault::FillDisk(victim, room, time) => {
                let victim = io_node(victim);
                // A write may have been accepted before, and may not fit now.
                self.note_pending_loss();
                self.nodes.faults(victim).room.set(Some(room));
                self.later(time, move |world| world.nodes.faults(victim).room.set(None));
            }
            Fault::FlipRead(victim) => {
                self.note_pending_loss();
                add(&self.nodes.faults(io_node(victim)).flipped_reads, 1);
            }
            Fault::FlipWrite(victim) => {
                self.note_pending_loss();
                add(&self.nodes.faults(io_node(victim)).flipped_writes, 1);
            }
            Fault::Damage(victim, seed) => {
                self.note_pending_loss();
                let (world, victim, working) = (self.clone(), io_node(victim), self.working.begin());
                self.checker.spawn("damage", async move {
                    // An object may be removed at the same time.
                    let _ = world.nodes.damage(victim, seed).await;
                    drop(working);
                    Ok(())
                });
            }
            Fault::LoseWrite(victim) => {
                self.note_pending_loss();
                add(&self.nodes.medium(io_node(victim)).lost_writes, 1);
            }
            Fault::MisdirectWrite(victim) => {
                self.note_pending_loss();
                add(&self.nodes.medium(io_node(victim)).misdirected_writes, 1);
            }
            Fault::JumpClock(victim, time) => {
                // Later locks and leases are affected, too.
                let jumped = &self.nodes.faults(io_node(victim)).jumped;
                jumped.set(jumped.get() + Duration::from_millis(time));
            }
        }
    }

    pub(super) fn kill_client(self: &Rc<Self>, client: usize, pause: u64) {
        let (machine, count) = {
            let (machine, count) = &mut self.clients.borrow_mut()[client];
            // No attempt to connect starts another process.
            *count += 1;
            (machine.clone(), *count)
        };
        machine.end();
        self.names.borrow_mut()[client].end_process();
        self.locks.borrow_mut().retain(|held| held.client != client);
        self.later(pause, move |world| world.start_process(client, count));
    }

    fn block(self: &Rc<Self>, from: &SimMachine, to: &SimMachine, time: u64) {
        from.block(to.node());
        let (from, to) = (from.clone(), to.node());
        self.later(time, move |_| from.unblock(to));
    }

    /// Ends a fault after `time` microseconds.
    fn later(self: &Rc<Self>, time: u64, end: impl FnOnce(Rc<World>) + 'static) {
        let time = Duration::from_micros(time);
        self.wait_for_faults_until(self.checker.now() + time);
        self.after(time, end);
    }

    /// Blocks until all faults have ended, and all consequences that only a restart ends.
    pub(super) async fn faults_ended(&self) {
        loop {
            let end = self.healed.get() + HEALED;
            if end > self.checker.now() {
                self.checker.sleep_until(end).await;
            } else if self.has_pending_faults() && self.broken.borrow().is_none() {
                self.pause(QUIET).await;
            } else {
                break;
            }
        }
        self.end_pending_faults();
        let needs_restart = self.has_disk_faults() || self.has_flipped_reads();
        if needs_restart && !self.has_restarted.replace(true) {
            (0..self.nodes.count() as usize).for_each(|io_node| self.nodes.kill(io_node));
            self.note_fault(self.checker.now());
            self.note_loss();
            self.pause(QUIET).await;
        }
    }

    /// Ends the faults that operations have not met.
    fn end_pending_faults(&self) {
        for io_node in 0..self.nodes.count() as usize {
            let (faults, medium) = (self.nodes.faults(io_node), self.nodes.medium(io_node));
            let pending = [
                &faults.failing_writes,
                &faults.failing_flushes,
                &faults.failing_syncs,
                &faults.failing_transactions,
                &faults.failing_removals,
                &faults.flipped_reads,
                &faults.flipped_writes,
                &medium.lost_writes,
                &medium.misdirected_writes,
            ];
            pending.into_iter().for_each(|pending| pending.set(0));
        }
    }

    /// Ends all faults and all processes. In half of the runs the power of all I/O nodes fails.
    pub(super) async fn heal(&self) {
        self.end_pending_faults();
        self.clients.borrow().iter().for_each(|(machine, _)| machine.end());
        self.names.borrow_mut().iter_mut().for_each(PossibleNames::end_process);
        if self.schedule.seed.is_multiple_of(2) || self.has_flipped_reads() {
            self.note_fault(self.checker.now());
            self.note_loss();
            for io_node in 0..self.nodes.count() {
                self.nodes.crash(io_node as usize, machine::mix(self.schedule.seed ^ io_node) >> 30);
            }
            self.names.borrow_mut().iter_mut().for_each(PossibleNames::power_cut);
        }
        self.pause(QUIET).await;
    }
}
