//! Operations of a process on names.

use fs::{OpenTreeFile, Tree};
use layout::Striping;
use namespace::{NewInode, RemovalTarget, RenameMode, TreeOperation, TreeRefusal};
use sim::SimMachine;

use super::process::{Done, Excused, Process};
use super::{at, directory_of};
use crate::contents::EventTime;
use crate::names::{Outcome, State};
use crate::testbed::BLOCK;

impl Process {
    /// Performs an operation on names and records its outcome.
    pub(super) async fn change_names<T>(
        &self,
        what: &str,
        perform: impl Fn(&State) -> Option<State>,
        change: impl Future<Output = fs::Result<T>>,
    ) -> Done<T> {
        let (client, cuts) = (self.client, self.world.cuts.get());
        let before = self.world.names.borrow_mut()[client].begin(&perform);
        let result = change.await;
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(error)
                if error.is_refused(TreeRefusal::NotFound) || error.is_refused(TreeRefusal::Exists) =>
            {
                Outcome::Refused
            }
            Err(_) => Outcome::Unknown,
        };
        let is_disturbed = self.world.cuts.get() != cuts;
        let ended = self.world.names.borrow_mut()[client].end(before, outcome, is_disturbed, perform);
        let refusal = result.as_ref().err().map(|error| format!(" ({error})")).unwrap_or_default();
        self.world.keep("names", &format!("client {client}: {what}{refusal}"), ended);
        if outcome == Outcome::Unknown {
            // A rename flushes the file first, and reports its losses.
            self.world.disclaim(self.process);
        }
        match (outcome, result) {
            (Outcome::Refused, _) => Err(Excused),
            (_, result) => self.check(what, result),
        }
    }

    pub(super) async fn made(tree: &Tree<SimMachine>, path: &str) -> fs::Result<OpenTreeFile<SimMachine>> {
        let stripes = tree.cache().client().disks();
        let new = NewInode::File { striping: Striping::new(BLOCK, stripes)?, disks: tree.all_disks().await? };
        let make = TreeOperation::Make { at: at(path), new, mode: 0o644, uid: 0, gid: 0, exclusive: true };
        tree.open(make).await
    }

    pub(super) fn note_made(&self, file: usize, made: OpenTreeFile<SimMachine>, asked: EventTime) {
        self.world.file(file, |file| file.number = Some(made.number()));
        self.add_handle(file, made, asked);
    }

    pub(super) async fn make(&self, name: u64) -> Done {
        let (file, tree, path, asked) =
            (self.world.new_file(), self.tree.clone(), self.path(name), self.now());
        let perform = |state: &State| {
            let mut after = state.clone();
            after.insert(name, file).is_none().then_some(after)
        };
        let made = self.change_names("creating a file", perform, Self::made(&tree, &path)).await?;
        self.note_made(file, made, asked);
        Ok(())
    }

    pub(super) async fn replace(&self, name: u64, bytes: u64) -> Done {
        let (file, tree, asked) = (self.world.new_file(), self.tree.clone(), self.now());
        let hidden = format!("{}/.new{}", directory_of(self.client), self.world.stamp());
        let made = Self::made(&tree, &hidden).await;
        let made = self.check("creating a hidden file", made)?;
        self.note_made(file, made, asked);
        self.write_to(file, 0, bytes).await?;
        self.sync_file(file).await?;
        let (from, to) = (at(&hidden), at(&self.path(name)));
        let rename = tree.unname(TreeOperation::Rename { from, to, mode: RenameMode::Replace });
        let perform = |state: &State| {
            let mut after = state.clone();
            after.insert(name, file);
            Some(after)
        };
        self.change_names("replacing a file", perform, rename).await
    }

    pub(super) async fn rename(&self, from: u64, to: u64) -> Done {
        let tree = self.tree.clone();
        let (old, new) = (at(&self.path(from)), at(&self.path(to)));
        let rename = tree.unname(TreeOperation::Rename { from: old, to: new, mode: RenameMode::Replace });
        let perform = |state: &State| {
            let (file, mut after) = (*state.get(&from)?, state.clone());
            // Two names of one file both stay, as in POSIX.
            if after.insert(to, file) != Some(file) {
                after.remove(&from);
            }
            Some(after)
        };
        self.change_names("a rename", perform, rename).await
    }

    pub(super) async fn link(&self, from: u64, to: u64) -> Done {
        let file = self.opened_own(from).await?;
        let (tree, number, at) = (self.tree.clone(), self.handle(file)?.number(), at(&self.path(to)));
        let link = async { tree.perform(TreeOperation::Link { number, at }).await.map(drop) };
        let perform = |state: &State| {
            let mut after = state.clone();
            after.insert(to, file).is_none().then_some(after)
        };
        self.change_names("a link", perform, link).await
    }

    pub(super) async fn remove(&self, name: u64) -> Done {
        let (tree, at) = (self.tree.clone(), at(&self.path(name)));
        let remove = tree.unname(TreeOperation::Remove { at, what: RemovalTarget::File });
        let perform = |state: &State| {
            let mut after = state.clone();
            after.remove(&name).map(|_| after)
        };
        self.change_names("a removal", perform, remove).await
    }

    /// Lists the private directory.
    pub(super) async fn list(&self) -> Done {
        let (client, cuts) = (self.client, self.world.cuts.get());
        let listed = self.world.list(&self.tree, client).await;
        let found = self.check("listing a directory", listed)?;
        if self.world.cuts.get() == cuts {
            self.world.check_listed(client, &found);
        }
        Ok(())
    }

    pub(super) fn note_names_flushed(&self, is_done: bool) {
        let flushed = self.world.names.borrow_mut()[self.client].flush(is_done);
        self.world.keep("names", &format!("client {}", self.client), flushed);
        if !is_done {
            // It may have reported the loss of a length, which is with the names.
            self.world.disclaim(self.process);
        }
    }

    pub(super) async fn flush_names(&self) -> Done {
        let flushed = self.tree.flush().await;
        self.note_names_flushed(flushed.is_ok());
        self.check("a flush of names", flushed)
    }

    pub(super) async fn sync_all(&self) -> Done {
        let started = self.now();
        let synced = self.tree.sync().await;
        self.note_names_flushed(synced.is_ok());
        self.check("a sync of all files", synced)?;
        let (process, now) = (self.process, self.now());
        self.world.files.borrow_mut().iter_mut().for_each(|file| file.persist_settled(process, started, now));
        Ok(())
    }
}
