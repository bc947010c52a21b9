//! Which objects have been opened, and which of their files are open now.
//!
//! An object keeps its [`ObjectId`] for as long as the node runs, unless it is removed; its file may be
//! closed meanwhile to make room for others, the least recently used first, and is opened again when needed. A file
//! that is in use is not closed: what it knows of itself beyond what is on the disk is there once. The file of a removed
//! object is closed as soon as nobody uses it, so that the system can give its space to others.

use std::collections::BTreeMap;
use std::rc::Rc;

use machine::ObjectId;

use super::directory::Identity;

/// The objects of one disk that have been opened; `F` is an open file.
pub(crate) struct Objects<F> {
    by_id: BTreeMap<ObjectId, Known<F>>,
    by_name: BTreeMap<String, ObjectId>,
    last_id: u64,
    open: usize,
    open_max: usize,
    uses: u64,
}

struct Known<F> {
    name: String,
    identity: Identity,
    file: Option<Rc<F>>,
    last_use: u64,
}

/// What there is to be known of an object's file.
pub(crate) enum Access<F> {
    /// It is open.
    Open(Rc<F>),
    /// It has been closed; open it, check that it is the same, and [`enter`](Objects::enter) it again.
    Closed(String),
    /// The object was never there or has been removed.
    Missing,
}

impl<F> Objects<F> {
    /// None yet. More than `open_max` files are open only while more are in use.
    pub(crate) fn new(open_max: usize) -> Self {
        Objects { by_id: BTreeMap::new(), by_name: BTreeMap::new(), last_id: 0, open: 0, open_max, uses: 0 }
    }

    /// Enters the file of the object `name`, and returns the id of the object in this file, with the file that is
    /// open from now on: if it was already, that one, for there may be more to it than what is on the disk.
    pub(crate) fn enter(&mut self, name: &str, identity: Identity, file: F) -> (ObjectId, Rc<F>) {
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
        let file = self.by_id.get(&id).and_then(|known| known.file.clone()).unwrap_or_else(|| file.into());
        let known = Known { name, identity, file: Some(file.clone()), last_use: self.uses };
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

    /// Notes that the object `name` has been removed.
    pub(crate) fn forget(&mut self, name: &str) {
        if let Some(id) = self.by_name.remove(name) {
            let known = self.by_id.remove(&id).expect("every name has its object");
            self.open -= usize::from(known.file.is_some());
        }
    }

    fn close_excess(&mut self) {
        while self.open > self.open_max {
            let is_idle =
                |known: &Known<F>| known.file.as_ref().is_some_and(|file| Rc::strong_count(file) == 1);
            let idle = self.by_id.values_mut().filter(|known| is_idle(known));
            let Some(least) = idle.min_by_key(|known| known.last_use) else { break };
            least.file = None;
            self.open -= 1;
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

    #[test]
    fn what_is_in_use_stays_open_and_what_is_not_makes_room() {
        let mut objects = Objects::new(2);
        let (first, in_use) = objects.enter("first", identity(1), 1);
        let (second, _) = objects.enter("second", identity(2), 2);
        let (third, _) = objects.enter("third", identity(3), 3);
        assert!(
            is_open(&mut objects, first) && !is_open(&mut objects, second) && is_open(&mut objects, third)
        );
        // Whoever opens it anew gets the very same.
        let (again, file) = objects.enter("first", identity(1), 10);
        assert!(again == first && Rc::ptr_eq(&file, &in_use));
    }

    #[test]
    fn what_is_removed_is_closed_when_nobody_uses_it_any_more() {
        let mut objects = Objects::new(2);
        let (id, in_use) = objects.enter("thing", identity(1), 1);
        objects.forget("thing");
        assert!(matches!(objects.access(id), Access::Missing));
        assert_eq!(Rc::strong_count(&in_use), 1);
        let (new, _) = objects.enter("thing", identity(2), 2);
        assert_ne!(id, new);
    }
}
