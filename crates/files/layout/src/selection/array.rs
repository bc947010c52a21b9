//! What is selected of an array: a box, or what one node has when it is dealt out.
//!
//! Both go from the innermost side outwards. What is selected of a row is repeated for the rows, that for the
//! planes, and so on, and a side that is wholly selected makes the runs longer.

use super::error::SelectionError;
use super::tree::{Tree, within_file};
use crate::axis::Axes;
use crate::distribution::Dimension;

/// One side of an array, and what is selected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArraySide {
    /// Its length in elements (or rows, or planes).
    pub length: u64,
    /// The first that is selected.
    pub first: u64,
    /// How many are.
    pub count: u64,
}

/// What is selected of the inner sides of an array.
struct Inner {
    /// Bytes of the file from one index of the next side to the next.
    index_bytes: u64,
    /// Where the first selected byte is, in bytes.
    offset: u64,
    tree: Tree,
}

impl Inner {
    fn element(bytes: u64) -> Result<Self, SelectionError> {
        Ok(Inner { index_bytes: bytes, offset: 0, tree: Tree::run(bytes)? })
    }

    /// With one more side around it, of `length` indices: runs of `run` indices every `stride` from `first` on,
    /// `count` indices in all.
    fn within(
        self,
        length: u64,
        first: u64,
        count: u64,
        run: u64,
        stride: u64,
    ) -> Result<Self, SelectionError> {
        let bytes = |indices: u64| self.index_bytes.checked_mul(indices);
        let of_index = self.tree.bytes();
        let index_bytes = within_file(bytes(length))?;
        if count == 0 {
            return Ok(Inner { index_bytes, offset: 0, tree: Tree::EMPTY });
        }
        let offset = self.offset + within_file(bytes(first))?;
        let mut tree = Tree::repeat(self.tree, of_index * run.min(count), self.index_bytes)?;
        if count > run {
            tree = Tree::repeat(tree, of_index * count, self.index_bytes * stride)?;
        }
        Ok(Inner { index_bytes, offset, tree })
    }
}

/// A box of an array with these sides, outermost first, and where it begins.
pub(super) fn of_box(element_bytes: u64, sides: &[ArraySide]) -> Result<(u64, Tree), SelectionError> {
    let mut inner = Inner::element(element_bytes)?;
    for (side, &ArraySide { length, first, count }) in sides.iter().enumerate().rev() {
        if first.checked_add(count).is_none_or(|end| end > length) {
            return Err(SelectionError::OutsideSide { side, length, first, count });
        }
        inner = inner.within(length, first, count, count, count)?;
    }
    Ok((inner.offset, inner.tree))
}

/// What `node` has of an array with these dimensions, outermost first, and where it begins.
pub(super) fn dealt(
    record_bytes: u64,
    dimensions: &[Dimension],
    node: u32,
) -> Result<(u64, Tree), SelectionError> {
    let mut inner = Inner::element(record_bytes)?;
    let mut place = node;
    for (index, dimension) in dimensions.iter().enumerate().rev() {
        dimension.check(index)?;
        within_file(Some(dimension.length))?;
        let part = place % dimension.parts;
        place /= dimension.parts;
        let axes = Axes::new(1, std::slice::from_ref(dimension));
        let (axis, run) = (axes.inner(), dimension.run());
        let first = u64::from(part).saturating_mul(run);
        inner = inner.within(dimension.length, first, axis.share(part), run, axis.cycle)?;
    }
    if place > 0 {
        let places =
            dimensions.iter().map(|dimension| u64::from(dimension.parts)).fold(1, u64::saturating_mul);
        return Err(SelectionError::NoSuchNode { node, places });
    }
    Ok((inner.offset, inner.tree))
}
