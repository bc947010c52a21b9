//! Selections of arrays: a box, or one node's part of a distributed array.
//!
//! Both are built from the innermost side outwards: the selection in one row is repeated for all selected rows, the
//! selection in one plane for all selected planes, and so on. A side that is selected entirely makes the runs longer.

use super::error::SelectionError;
use super::tree::{Tree, within_file};
use crate::axis::Axes;
use crate::distribution::Dimension;

/// One side of an array, and its selected indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArraySide {
    /// Length in elements (or rows, or planes).
    pub length: u64,
    /// First selected index.
    pub first: u64,
    /// Number of selected indices.
    pub count: u64,
}

/// The selection of the inner sides of an array.
struct Inner {
    /// Bytes of the file per index of the next side.
    index_bytes: u64,
    /// Offset of the first selected byte.
    offset: u64,
    tree: Tree,
}

impl Inner {
    fn element(bytes: u64) -> Result<Self, SelectionError> {
        Ok(Inner { index_bytes: bytes, offset: 0, tree: Tree::run(bytes)? })
    }

    /// Adds a side of `length` indices around the selection. Selects runs of `run` indices that begin every `stride`
    /// indices from `first` on, `count` indices in total.
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

/// Returns the selection of a box of an array with these sides, outermost first, and its offset in bytes.
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

/// Returns the selection of the part of `node` in an array with these dimensions, outermost first, and its offset in
/// bytes.
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
