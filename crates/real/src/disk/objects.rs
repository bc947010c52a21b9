//! Which objects have been opened, and which of their files are open now.
//!
//! An object keeps its [`ObjectId`] for as long as the node runs, unless it is removed; its file may be
//! closed meanwhile to make room for others, the least recently used first, and is opened again when needed.
//! The file of a removed object cannot be: when that is closed, the object is gone for good.

use std::collections::BTreeMap;

use machine::ObjectId;

use super::directory::Identity;

/// Files open at once. Well below the usual limit of 1024 for a process, which connections need too.
const OPEN_MAX: usize = 512;

/// The objects of one disk that have been opened; `F` is an open file.
pub(crate) struct Objects<F> {
    by_id: BTreeMap<ObjectId, Known<F>>,
    by_name: BTreeMap<String, ObjectId>,
    last_id: u64,
    open: usize,
    uses: u64,
}

struct Known<F> {
    name: String,
    identity: Identity,
    file: Option<F>,
    removed: bool,
    last_use: u64,
}

/// What there is to be known of an object's file.
pub(crate) enum Access<F> {
    /// It is open.
    Open(F),
    /// It has been closed; open it, check that it is the same, and [`enter`](Objects::enter) it again.
    Closed(String),
    /// The object was never there or has been removed.
    Missing,
}

impl<F: Clone> Objects<F> {
    pub(crate) fn new() -> Self {
        Objects { by_id: BTreeMap::new(), by_name: BTreeMap::new(), last_id: 0, open: 0, uses: 0 }
    }

    /// Enters the file of the object `name`, and returns the id of the object in this file, with the file that is
    /// open from now on: if it was already, that one, for there may be more to it than what is on the disk.
    pub(crate) fn enter(&mut self, name: &str, identity: Identity, file: F) -> (ObjectId, F) {
        let known = self.by_name.get(name).copied();
        let id = match known.filter(|id| self.by_id[id].identity == identity) {
            Some(id) => id,
            None => {
                self.forget(name);
                self.last_id += 1;
                ObjectId(self.last_id)
            }
        };
        self.uses += 1;
        let name = name.to_owned();
        self.by_name.insert(name.clone(), id);
        let file = self.by_id.get(&id).and_then(|known| known.file.clone()).unwrap_or(file);
        let known = Known { name, identity, file: Some(file.clone()), removed: false, last_use: self.uses };
        let before = self.by_id.insert(id, known);
        if before.is_none_or(|before| before.file.is_none()) {
            self.open += 1;
        }
        self.close_excess();
        (id, file)
    }

    /// The file of an object, which is thereby used.
    pub(crate) fn access(&mut self, id: ObjectId) -> Access<F> {
        self.uses += 1;
        let Some(known) = self.by_id.get_mut(&id) else { return Access::Missing };
        known.last_use = self.uses;
        match &known.file {
            Some(file) => Access::Open(file.clone()),
            None => Access::Closed(known.name.clone()),
        }
    }

    /// The name of the object, for messages.
    pub(crate) fn name(&self, id: ObjectId) -> Option<&str> {
        self.by_id.get(&id).map(|known| &*known.name)
    }

    /// Whether the object `name` is known and its file closed: then it must be opened before it is removed.
    pub(crate) fn is_closed(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|id| self.by_id[id].file.is_none())
    }

    /// Notes that the object `name` has been removed. It can be used on as long as its file stays open.
    pub(crate) fn forget(&mut self, name: &str) {
        if let Some(id) = self.by_name.remove(name) {
            let known = self.by_id.get_mut(&id).expect("every name has its object");
            known.removed = true;
            if known.file.is_none() {
                self.by_id.remove(&id);
            }
        }
    }

    fn close_excess(&mut self) {
        while self.open > OPEN_MAX {
            let open = self.by_id.iter().filter(|(_, known)| known.file.is_some());
            let least = open.min_by_key(|(_, known)| known.last_use).map(|(&id, _)| id);
            let id = least.expect("some file is open");
            let known = self.by_id.get_mut(&id).expect("just found");
            known.file = None;
            self.open -= 1;
            if known.removed {
                self.by_id.remove(&id);
            }
        }
    }
}
