//! Table that allocates indices and reuses released ones, last first.
//!
//! Like a slab, but with a defined order of reuse, because indices enter the digest of a run.

use crate::agenda::INDEX_END;

pub(crate) struct IndexTable<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for IndexTable<T> {
    fn default() -> Self {
        IndexTable { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> IndexTable<T> {
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let index = self.vacancy();
        self.occupy(index, value);
        index
    }

    /// Returns a free entry, which the caller must occupy at once.
    #[inline]
    pub(crate) fn vacancy(&mut self) -> usize {
        self.free.pop().map_or_else(|| self.grow(), |index| index as usize)
    }

    #[inline]
    pub(crate) fn occupy(&mut self, index: usize, value: T) {
        let vacant = self.entries[index].replace(value);
        debug_assert!(vacant.is_none(), "a free entry");
        // The compiler cannot know that the entry was vacant, and would copy `value` once more in case its drop panics.
        std::mem::forget(vacant);
    }

    #[cold]
    fn grow(&mut self) -> usize {
        assert!(self.entries.len() < INDEX_END, "fewer than {INDEX_END} entries at once");
        self.entries.push(None);
        self.entries.len() - 1
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, index: usize) -> T {
        self.free.push(index as u32);
        self.entries[index].take().expect("an entry in use")
    }

    /// Returns all entries in use, by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.as_ref()?)))
    }

    /// Returns all entries in use.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    pub(crate) fn get(&self, index: usize) -> &T {
        self.entries[index].as_ref().expect("an entry in use")
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut T {
        self.entries[index].as_mut().expect("an entry in use")
    }
}
