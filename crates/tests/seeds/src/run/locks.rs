//! Locks of a process.

use fs::{LockMode, LockRange};

use super::Held;
use super::process::{Done, Process};
use crate::contents::NEVER;
use crate::schedule::{Fault, FileTarget};

impl Process {
    pub(super) async fn lock(&self, file: u64, offset: u64, bytes: u64, is_exclusive: bool) -> Done {
        let file = self.opened(FileTarget::Shared(file)).await?;
        let _turn = self.locking.take().await;
        let handle = self.handle(file)?;
        let number = handle.number();
        let range = LockRange { first: offset, last: offset + bytes - 1 };
        let mode = if is_exclusive { LockMode::Exclusive } else { LockMode::Shared };
        // The new lock may be weaker, so that others may read at once.
        if self.tree.has_locks(number, 1) {
            self.send_file(file).await?;
        }
        // The metadata server replaces them before its answer arrives.
        self.world.remove_locks(self.process, file, range);
        let locked = self.tree.lock(number, 1, range, mode).await;
        if self.check("a lock", locked)?.is_some() {
            return Ok(());
        }
        let since = self.now();
        let conflicts = |held: &&Held| {
            held.file == file
                && held.process != self.process
                && (is_exclusive || held.mode == LockMode::Exclusive)
                && held.range.first <= range.last
                && range.first <= held.range.last
        };
        let others: Vec<Held> = self.world.locks.borrow().iter().filter(conflicts).cloned().collect();
        let (tree, client, process) = (self.tree.clone(), self.client, self.process);
        let held = Held { client, process, file, range, mode, since, tree };
        self.world.locks.borrow_mut().push(held);
        for other in others {
            let still_has = other.tree.has_locks(number, 1) && other.tree.check_locks(number).await.is_ok();
            let still_held = |process| {
                let locks = self.world.locks.borrow();
                locks.iter().any(|held| held.process == process && held.file == file)
            };
            let relies = self.tree.check_locks(number).await.is_ok();
            // A metadata server whose clock jumps takes leases for expired.
            let has_jumped = self.world.has_fault(|fault| matches!(fault, Fault::JumpClock(..)));
            if !has_jumped && still_has && relies && still_held(other.process) && still_held(process) {
                let why = format!("process {} has {:?} of file {file} too", other.process, other.range);
                self.world.break_law("locks", format!("process {process} has {range:?}, and {why}"));
            }
            // That lock has ended: its owner can change nothing under it.
            let ended = other.range.first..other.range.last + 1;
            // The owner may have released it during the queries, and then written without it.
            let is_listed = |held: &Held| held.process == other.process && held.since == other.since;
            let until = if self.world.locks.borrow().iter().any(is_listed) { NEVER } else { since };
            self.world.file(file, |file| file.fence(other.process, &ended, other.since..until, since));
        }
        // The owner of a lock sees all data written under earlier ones.
        let asked = self.now();
        self.check_file(file, "a query of the size", handle.attributes().await)?;
        self.note_asked(file, asked);
        Ok(())
    }

    /// Releases all locks on a file, after sending the data written under them.
    pub(super) async fn unlock_file(&self, file: usize) -> Done {
        let _turn = self.locking.take().await;
        let Ok(number) = self.handle(file).map(|handle| handle.number()) else { return Ok(()) };
        if !self.tree.has_locks(number, 1) && !self.tree.has_lost_locks(number, 1) {
            return Ok(());
        }
        let sent = self.send_file(file).await;
        self.world.remove_locks(self.process, file, LockRange::WHOLE);
        let unlocked = self.tree.unlock(number, 1, LockRange::WHOLE).await;
        self.check("an unlock", unlocked)?;
        sent
    }
}
