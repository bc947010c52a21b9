//! The open stripes of an I/O node.
//!
//! Requests name stripes by file and index. Stripes stay open until many are open; then those of idle files
//! are closed, the least recently used first.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::Object;

use super::open_stripe::{OpenStripe, not_open};
use super::stripe_place::Home;
use crate::cache::StripeKey;
use crate::error::Failure;
use crate::protocol::{FileId, Label};

/// Open stripes by file and index.
#[derive(Default)]
pub(super) struct Stripes {
    open: RefCell<BTreeMap<(FileId, u32), Rc<OpenStripe>>>,
    /// Number of openings so far.
    openings: Cell<u64>,
    /// Number of uses of stripes so far.
    uses: Cell<u64>,
}

/// Number of open stripes at which opening another evicts idle ones.
const OPEN_MAX: usize = 65_536;

/// Number of idle files evicted at a time, so that the search for them is rare.
const PUSHED_OUT: usize = OPEN_MAX / 8;

impl Stripes {
    pub(super) fn get(&self, file: FileId, stripe: u32) -> Result<Rc<OpenStripe>, Box<Failure>> {
        let open = self.open.borrow();
        let found = open.get(&(file, stripe)).ok_or_else(|| not_open(file, stripe))?;
        self.note_use(found);
        Ok(found.clone())
    }

    /// Returns the stripe with this key of the cache, if it is still open.
    pub(super) fn find(&self, key: StripeKey) -> Option<Rc<OpenStripe>> {
        self.get(key.file, key.stripe).ok().filter(|stripe| stripe.key() == key)
    }

    /// Returns the open stripes of a file, in order; empty if the file is not open.
    pub(super) fn of_file(&self, file: FileId) -> Vec<Rc<OpenStripe>> {
        let range = (file, 0)..=(file, u32::MAX);
        let stripes: Vec<_> = self.open.borrow().range(range).map(|(_, stripe)| stripe.clone()).collect();
        for stripe in &stripes {
            self.note_use(stripe);
        }
        stripes
    }

    /// Returns the number of open stripes.
    pub(super) fn count(&self) -> u64 {
        self.open.borrow().len() as u64
    }

    pub(super) fn all(&self) -> Vec<Rc<OpenStripe>> {
        self.open.borrow().values().cloned().collect()
    }

    /// Returns the `count` least recently used stripes.
    pub(super) fn least_recently_used(&self, count: usize) -> Vec<Rc<OpenStripe>> {
        let mut stripes = self.all();
        stripes.sort_unstable_by_key(|stripe| stripe.last_use.get());
        stripes.truncate(count);
        stripes
    }

    /// Closes up to `files` idle files, the least recently used first.
    pub(super) fn close_idle(&self, files: usize) {
        push_out(&mut self.open.borrow_mut(), files);
    }

    fn note_use(&self, stripe: &OpenStripe) {
        self.uses.set(self.uses.get() + 1);
        stripe.last_use.set(self.uses.get());
    }

    /// Enters a stripe. Returns the known one if it is open already, since the cached blocks belong to that.
    pub(super) fn insert(&self, name: &str, label: Label, disk: usize, object: &Object) -> Rc<OpenStripe> {
        let home = Home { disk, object: object.id };
        let known = self.get(label.file, label.stripe).ok();
        if let Some(known) = known.filter(|known| known.home == home) {
            return known;
        }
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_MAX {
            push_out(&mut open, PUSHED_OUT);
        }
        self.openings.set(self.openings.get() + 1);
        let stripe = OpenStripe::new(name, label, self.openings.get(), home, object.bytes);
        let stripe = Rc::new(stripe);
        self.note_use(&stripe);
        open.insert((label.file, label.stripe), stripe.clone());
        stripe
    }

    /// Closes the stripe of a removed file.
    pub(super) fn remove(&self, stripe: &OpenStripe) {
        stripe.removed.set(true);
        self.open.borrow_mut().remove(&(stripe.file(), stripe.label.stripe));
    }
}

/// Closes up to `files` idle files, the least recently used first, with all of their stripes: a request for a
/// whole file takes its open stripes, so none may be missing.
fn push_out(open: &mut BTreeMap<(FileId, u32), Rc<OpenStripe>>, files: usize) {
    let mut last_uses: BTreeMap<FileId, Option<u64>> = BTreeMap::new();
    for (&(file, _), stripe) in &*open {
        let last_use = stripe.is_idle().then(|| stripe.last_use.get());
        let of_file = last_uses.entry(file).or_insert(last_use);
        *of_file = of_file.zip(last_use).map(|(first, second)| first.max(second));
    }
    let mut idle: Vec<(u64, FileId)> =
        last_uses.into_iter().filter_map(|(file, last_use)| Some((last_use?, file))).collect();
    idle.sort_unstable();
    let leaving: BTreeSet<FileId> = idle.into_iter().take(files).map(|(_, file)| file).collect();
    open.retain(|(file, _), _| !leaving.contains(file));
}

#[cfg(test)]
mod tests {
    use layout::Striping;
    use machine::{NodeId, ObjectId};

    use super::*;
    use crate::client_account::Account;
    use crate::error::Failure;
    use crate::unflushed_writers::Writers;

    fn open(stripes: &Stripes, file: u64, stripe: u32) -> Rc<OpenStripe> {
        let striping = Striping::new(512, 2).expect("a striping");
        let label = Label { file: FileId(file), striping, stripe, begun: 0, replaces: None };
        let object = Object { id: ObjectId(file), label: Vec::new(), bytes: 0 };
        stripes.insert(&format!("file {file}"), label, stripe as usize, &object)
    }

    fn files_left(stripes: &Stripes, pushed_out: usize) -> Vec<u64> {
        push_out(&mut stripes.open.borrow_mut(), pushed_out);
        stripes.open.borrow().keys().map(|(file, _)| file.0).collect()
    }

    #[test]
    fn the_least_recently_used_file_is_evicted_with_all_its_stripes() {
        let stripes = Stripes::default();
        for file in [3, 1, 2] {
            open(&stripes, file, 0);
            open(&stripes, file, 1);
        }
        stripes.get(FileId(3), 1).expect("open");
        assert_eq!(files_left(&stripes, 1), [2, 2, 3, 3]);
        assert_eq!(files_left(&stripes, 1), [3, 3]);
    }

    #[test]
    fn files_in_use_unflushed_or_with_an_unreported_failure_are_kept() {
        let stripes = Stripes::default();
        for file in 1..=4 {
            open(&stripes, file, 0);
        }
        let (in_use, written) = (open(&stripes, 1, 1), open(&stripes, 2, 1));
        written.writers.note(NodeId(7));
        let failed = open(&stripes, 3, 1);
        failed.writers.note(NodeId(7));
        failed.writers.fail(&Failure::invalid("a write that failed"));
        failed.writers.forget(failed.writers.flush_start());
        drop((written, failed));
        assert_eq!(files_left(&stripes, 9), [1, 1, 2, 2, 3, 3]);
        drop(in_use);
        let with_writers = |file, check: &dyn Fn(&Writers)| {
            check(&stripes.get(FileId(file), 1).expect("open").writers);
        };
        with_writers(2, &|writers| drop(writers.forget(writers.flush_start())));
        let account = Rc::new(Account::new(NodeId(7)));
        with_writers(3, &|writers| {
            assert!(writers.report(&account).is_err());
        });
        assert_eq!(files_left(&stripes, 9), [0; 0], "all are flushed, reported and unused");
    }

    #[test]
    fn an_eviction_removes_many_stripes() {
        let stripes = Stripes::default();
        for file in 0..OPEN_MAX as u64 {
            open(&stripes, file, 0);
        }
        open(&stripes, 0, 0);
        assert_eq!(stripes.open.borrow().len(), OPEN_MAX, "known already");
        open(&stripes, u64::MAX, 0);
        assert_eq!(stripes.open.borrow().len(), OPEN_MAX - PUSHED_OUT + 1);
    }
}
