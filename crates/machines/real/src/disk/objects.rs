//! Table of the opened objects, and of their open files.
//!
//! An object keeps its [`ObjectId`] while the node runs, unless it is removed. The least recently used files are closed
//! to limit the number of open files, and reopened when needed. A file in use is not closed: its in-memory state beyond
//! that on the disk (checksums, length) must exist only once. The file of a removed object is closed as soon as no task
//! uses it, so that the system can reuse its space.

use std::collections::BTreeMap;
use std::rc::Rc;

use machine::ObjectId;

use super::identity::Identity;
use super::name::Stage;
use super::sync_failure::SyncFailure;

/// Opened objects of one disk; `F` is an open file.
pub(crate) struct Objects<F> {
    by_id: BTreeMap<ObjectId, OpenedObject<F>>,
    by_name: BTreeMap<(String, Stage), ObjectId>,
    last_id: u64,
    /// Objects with an open file, by the time of its last use.
    by_use: BTreeMap<u64, ObjectId>,
    open_max: usize,
    uses: u64,
}

struct OpenedObject<F> {
    name: String,
    stage: Stage,
    identity: Identity,
    /// True if the object has never been flushed.
    is_new: bool,
    /// Failed syncs, remembered after the file is closed.
    sync_failure: SyncFailure,
    file: Option<Rc<F>>,
    last_use: u64,
}

/// State of an object's file.
pub(crate) enum Access<F> {
    /// The file is open.
    Open(Rc<F>),
    /// The file was closed. The caller must open it, check that it is the same, and [`enter`](Objects::enter) it again.
    Closed(String, Stage),
    /// The object never existed or has been removed.
    Missing,
}

impl<F> Objects<F> {
    /// Creates an empty table. More than `open_max` files are open only while more are in use.
    pub(crate) fn new(open_max: usize) -> Self {
        Objects {
            by_id: BTreeMap::new(),
            by_name: BTreeMap::new(),
            last_id: 0,
            by_use: BTreeMap::new(),
            open_max,
            uses: 0,
        }
    }

    /// Enters the file of the object `name` of this stage. Returns the id of the object in this file, and the open
    /// file. If the file was already open, the old one is kept, since its state in memory may be newer than the disk.
    /// Otherwise `open` creates the open file from the record of failed syncs.
    pub(crate) fn enter(
        &mut self,
        name: &str,
        stage: Stage,
        identity: Identity,
        open: impl FnOnce(SyncFailure) -> F,
    ) -> (ObjectId, Rc<F>) {
        let known = self.by_name.get(&(name.to_owned(), stage)).copied();
        let id = match known.filter(|id| self.by_id[id].identity == identity) {
            Some(id) => id,
            None => {
                self.forget(name, stage);
                self.last_id += 1;
                ObjectId(self.last_id)
            }
        };
        self.uses += 1;
        let name = name.to_owned();
        self.by_name.insert((name.clone(), stage), id);
        let before = self.by_id.remove(&id);
        self.by_use.remove(&before.as_ref().map_or(0, |before| before.last_use));
        let (sync_failure, file) =
            before.map(|before| (before.sync_failure, before.file)).unwrap_or_default();
        let file = file.unwrap_or_else(|| open(sync_failure.clone()).into());
        let (is_new, open_file) = (false, Some(file.clone()));
        let known = OpenedObject {
            name,
            stage,
            identity,
            is_new,
            sync_failure,
            file: open_file,
            last_use: self.uses,
        };
        self.by_id.insert(id, known);
        self.by_use.insert(self.uses, id);
        self.close_excess();
        (id, file)
    }

    /// Returns the file of an object, and marks it as used.
    pub(crate) fn access(&mut self, id: ObjectId) -> Access<F> {
        self.uses += 1;
        let Some(known) = self.by_id.get_mut(&id) else { return Access::Missing };
        match &known.file {
            Some(file) => {
                self.by_use.remove(&known.last_use);
                self.by_use.insert(self.uses, id);
                known.last_use = self.uses;
                Access::Open(file.clone())
            }
            None => Access::Closed(known.name.clone(), known.stage),
        }
    }

    /// Returns the name and the stage of the object, for messages.
    pub(crate) fn name(&self, id: ObjectId) -> Option<(&str, Stage)> {
        self.by_id.get(&id).map(|known| (&*known.name, known.stage))
    }

    /// Sets the mark that an object has never been flushed.
    pub(crate) fn set_new(&mut self, id: ObjectId, is_new: bool) {
        self.by_id.entry(id).and_modify(|known| known.is_new = is_new);
    }

    /// Returns the name of an object that has never been flushed.
    pub(crate) fn new_name(&self, id: ObjectId) -> Option<&str> {
        self.by_id.get(&id).filter(|known| known.is_new).map(|known| &*known.name)
    }

    /// Removes the object `name` of this stage from the table.
    pub(crate) fn forget(&mut self, name: &str, stage: Stage) {
        if let Some(id) = self.by_name.remove(&(name.to_owned(), stage)) {
            let known = self.by_id.remove(&id).expect("every name has its object");
            self.by_use.remove(&known.last_use);
        }
    }

    /// Returns true if a sync of any object has failed.
    pub(crate) fn has_failed_sync(&self) -> bool {
        self.by_id.values().any(|known| known.sync_failure.is_noted())
    }

    fn close_excess(&mut self) {
        while self.by_use.len() > self.open_max {
            let is_idle = |id| self.by_id[id].file.as_ref().is_some_and(|file| Rc::strong_count(file) == 1);
            let idle = self.by_use.iter().find(|(_, id)| is_idle(id));
            let Some((&last_use, &id)) = idle else { break };
            self.by_id.get_mut(&id).expect("it is idle").file = None;
            self.by_use.remove(&last_use);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64) -> Identity {
        Identity { device: 0, inode }
    }

    fn is_open(objects: &mut Objects<u64>, id: ObjectId) -> bool {
        matches!(objects.access(id), Access::Open(_))
    }

    /// Opening a file searches only the open files for one to close, so its cost does not depend on the number of
    /// objects.
    #[test]
    fn only_open_files_are_ordered_by_their_use() {
        let mut objects = Objects::new(5);
        for inode in 0..1000 {
            let (id, file) = objects.enter(&inode.to_string(), Stage::Published, identity(inode), |_| inode);
            objects.access(ObjectId(id.0 / 2));
            drop(file);
            if inode % 3 == 0 {
                objects.forget(&(inode / 4 * 2).to_string(), Stage::Published);
            }
            let open = objects.by_id.iter().filter(|(_, object)| object.file.is_some());
            assert_eq!(objects.by_use, open.map(|(&id, object)| (object.last_use, id)).collect());
            assert!(objects.by_use.len() <= 5);
        }
    }

    #[test]
    fn only_unused_files_are_closed_to_limit_open_files() {
        let mut objects = Objects::new(2);
        let (first, in_use) = objects.enter("first", Stage::Published, identity(1), |_| 1);
        let (second, _) = objects.enter("second", Stage::Published, identity(2), |_| 2);
        let (third, _) = objects.enter("third", Stage::Published, identity(3), |_| 3);
        assert!(
            is_open(&mut objects, first) && !is_open(&mut objects, second) && is_open(&mut objects, third)
        );
        // Opening the file again returns the very same file.
        let (again, file) = objects.enter("first", Stage::Published, identity(1), |_| 10);
        assert!(again == first && Rc::ptr_eq(&file, &in_use));
    }

    #[test]
    fn a_removed_object_is_closed_after_its_last_use() {
        let mut objects = Objects::new(2);
        let (id, in_use) = objects.enter("thing", Stage::Published, identity(1), |_| 1);
        objects.forget("thing", Stage::Published);
        assert!(matches!(objects.access(id), Access::Missing));
        assert_eq!(Rc::strong_count(&in_use), 1);
        let (new, _) = objects.enter("thing", Stage::Published, identity(2), |_| 2);
        assert_ne!(id, new);
    }

    #[test]
    fn a_failed_sync_is_remembered_while_the_file_is_closed() {
        let mut objects = Objects::new(1);
        let mut enter = |name, inode| {
            objects.enter(name, Stage::Published, identity(inode), |failure| failure).1.is_noted()
        };
        assert!(!enter("failed", 1));
        let Some(known) = objects.by_id.values().next() else { panic!("it was entered") };
        known.sync_failure.note(&std::io::Error::other("the medium has failed"));
        let mut enter = |name, inode| {
            objects.enter(name, Stage::Published, identity(inode), |failure| failure).1.is_noted()
        };
        assert!(!enter("other", 2));
        assert!(enter("failed", 1));
        assert!(!enter("failed", 3), "it is another one, of the same name");
        assert!(!objects.has_failed_sync());
    }
}
