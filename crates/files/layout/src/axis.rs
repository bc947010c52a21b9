//! The canonical form of a distributed array: at most a few axes, the innermost counted in bytes.
//!
//! The bytes of a record form one more dimension of the array: it has length `record_bytes` and is never distributed.
//! If one part owns all indices of a dimension, that dimension can be merged with the next outer one: both form one
//! longer dimension with longer runs. Few dimensions remain, and their runs are nearly the chunks:
//!
//! ```text
//!   rows cyclic over 16, columns whole, records of 8 bytes       1280 x 1024 x 8
//!   = one axis of 10485760 bytes, dealt to 16 parts in runs of 8192
//! ```
//!
//! The same merging detects that two patterns with different names are the same distribution.

use crate::distribution::Dimension;
use crate::limits::DIMENSIONS_MAX;

/// One axis: `length` indices distributed over `parts` parts in runs of `run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) length: u64,
    /// Consecutive indices of the same part; at most `length`.
    pub(crate) run: u64,
    /// Distance in indices between the starts of successive runs of a part: `run * parts`, saturated.
    pub(crate) cycle: u64,
    pub(crate) parts: u32,
    /// Difference of the numbers of two nodes adjacent along this axis.
    pub(crate) node_stride: u32,
    /// Bytes of the file from one index to the next.
    pub(crate) index_bytes: u64,
    /// Number of indices that each part owns in whole cycles, and number of indices after the whole cycles.
    whole: u64,
    rest: u64,
}

impl Axis {
    fn new(length: u64, run: u64, parts: u32, node_stride: u32, index_bytes: u64) -> Self {
        let cycle = run.saturating_mul(u64::from(parts));
        let whole = length / cycle * run;
        let rest = length % cycle;
        Axis { length, run, cycle, parts, node_stride, index_bytes, whole, rest }
    }

    /// Returns the number of indices of `part`.
    pub(crate) fn share(&self, part: u32) -> u64 {
        let before = u64::from(part).saturating_mul(self.run);
        self.whole + self.rest.saturating_sub(before).min(self.run)
    }

    /// Returns the part of this axis that belongs to `node`.
    pub(crate) fn part_of(&self, node: u32) -> u32 {
        node / self.node_stride % self.parts
    }

    /// True if part 0 owns every index.
    fn is_whole(&self) -> bool {
        self.run == self.length
    }

    /// Returns the axis that merges `self` with the axis `inner` inside it. `inner` must be whole.
    fn around(self, inner: Axis) -> Axis {
        let (length, run) = (self.length * inner.length, self.run * inner.length);
        Axis::new(length, run, self.parts, self.node_stride, inner.index_bytes)
    }

    /// Returns the axis formed by `count` repetitions of `self`; `None` if the repetitions break the cycle.
    fn repeated(self, count: u64) -> Option<Axis> {
        let even = self.rest == 0;
        let length = self.length * count;
        even.then(|| Axis::new(length, self.run, self.parts, self.node_stride, self.index_bytes))
    }
}

/// The axes of an array, innermost first, as few as possible.
///
/// Either there is one axis, or each is distributed over several parts or combines several uneven distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axes {
    axes: [Axis; DIMENSIONS_MAX],
    count: usize,
}

impl Axes {
    /// Returns the axes of an array with these dimensions, outermost first. The caller has checked the dimensions, and
    /// the array is smaller than the largest file.
    pub(crate) fn new(record_bytes: u64, dimensions: &[Dimension]) -> Self {
        let mut axes = Axes { axes: Default::default(), count: 1 };
        axes.axes[0] = Axis::new(record_bytes, record_bytes, 1, 1, 1);
        let mut node_stride = 1;
        for dimension in dimensions.iter().rev() {
            axes.wrap(dimension, node_stride);
            node_stride *= dimension.parts;
        }
        axes
    }

    /// Adds one more dimension around the existing axes.
    fn wrap(&mut self, dimension: &Dimension, node_stride: u32) {
        let last = self.axes[self.count - 1];
        let index_bytes = last.length * last.index_bytes;
        let (length, run) = (dimension.length, dimension.run());
        let outer = Axis::new(length, run, dimension.parts, node_stride, index_bytes);
        if last.is_whole() {
            self.axes[self.count - 1] = outer.around(last);
        } else if let (true, Some(repeated)) = (outer.is_whole(), last.repeated(length)) {
            self.axes[self.count - 1] = repeated;
        } else {
            self.axes[self.count] = outer;
            self.count += 1;
        }
    }

    /// Returns the axis counted in bytes. One pass along it is a row.
    pub(crate) fn inner(&self) -> &Axis {
        &self.axes[0]
    }

    /// Returns the axes around the inner one, innermost first.
    pub(crate) fn outer(&self) -> &[Axis] {
        &self.axes[1..self.count]
    }

    /// Returns all axes, innermost first.
    pub(crate) fn all(&self) -> &[Axis] {
        &self.axes[..self.count]
    }
}

/// A position on an axis, regardless of its owner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AxisPosition {
    pub(crate) index: u64,
    /// The part that owns this index.
    pub(crate) part: u32,
    /// Number of indices of this part before this index.
    pub(crate) local: u64,
    /// Number of indices left in this run, including this index; at least 1.
    pub(crate) left: u64,
}

impl AxisPosition {
    /// Returns the position at `index`, which must be below the length of `axis`.
    pub(crate) fn at(axis: &Axis, index: u64) -> Self {
        let (cycle, in_cycle) = (index / axis.cycle, index % axis.cycle);
        let (part, in_run) = (in_cycle / axis.run, in_cycle % axis.run);
        AxisPosition {
            index,
            part: part as u32,
            local: cycle * axis.run + in_run,
            left: (axis.run - in_run).min(axis.length - index),
        }
    }

    /// Advances by `count` indices, at most to the end of the run.
    ///
    /// Returns true if the position reached the end of the axis and restarted at the beginning.
    #[inline]
    pub(crate) fn advance(&mut self, axis: &Axis, count: u64) -> bool {
        self.index += count;
        self.local += count;
        self.left -= count;
        if self.left > 0 {
            return false;
        }
        let ended = self.index == axis.length;
        if ended {
            *self = AxisPosition::default();
        } else if self.part + 1 < axis.parts {
            self.part += 1;
            self.local -= axis.run;
        } else {
            self.part = 0;
        }
        self.left = axis.run.min(axis.length - self.index);
        ended
    }
}

/// A position on an axis among the indices of one part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnSpot {
    pub(crate) index: u64,
    /// First index of the part.
    first: u64,
    /// Number of indices left in this run, including this index; at least 1.
    left: u64,
}

impl OwnSpot {
    /// Returns the spot at the first index of `part`, which must have at least one index.
    pub(crate) fn first(axis: &Axis, part: u32) -> Self {
        let first = u64::from(part) * axis.run;
        OwnSpot { index: first, first, left: axis.run.min(axis.length - first) }
    }

    /// Advances to the next index of the part.
    ///
    /// Returns true if the previous index was the last, so that the spot restarted at the part's first index.
    #[inline]
    pub(crate) fn step(&mut self, axis: &Axis) -> bool {
        self.index += 1;
        self.left -= 1;
        if self.left == 0 { self.jump(axis, self.index.saturating_add(axis.cycle - axis.run)) } else { false }
    }

    /// Moves from the start of a run to the start of the part's next run.
    ///
    /// Returns true if the previous run was the last, so that the spot restarted at the part's first index.
    #[inline]
    pub(crate) fn step_run(&mut self, axis: &Axis) -> bool {
        self.jump(axis, self.index.saturating_add(axis.cycle))
    }

    /// Returns the number of indices left in this run, including this index.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    #[inline]
    fn jump(&mut self, axis: &Axis, index: u64) -> bool {
        let ended = index >= axis.length;
        self.index = if ended { self.first } else { index };
        self.left = axis.run.min(axis.length - self.index);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_inner_dimensions_lengthen_the_runs() {
        let axes = Axes::new(8, &[Dimension::cyclic(1280, 16), Dimension::whole(1024)]);
        assert_eq!(axes.all().len(), 1);
        assert_eq!((axes.inner().length, axes.inner().run), (10 << 20, 8192));
    }

    #[test]
    fn whole_outer_dimensions_repeat_an_even_distribution() {
        let even = Axes::new(8, &[Dimension::whole(5), Dimension::cyclic(8, 4)]);
        assert_eq!(even, Axes::new(8, &[Dimension::cyclic(40, 4)]));
        let uneven = Axes::new(8, &[Dimension::whole(5), Dimension::cyclic(9, 4)]);
        assert_eq!(uneven.all().len(), 2);
    }

    #[test]
    fn advancing_along_an_axis_agrees_with_direct_positioning() {
        let axes = Axes::new(1, &[Dimension { length: 23, ..Dimension::cyclic(0, 3) }]);
        let axis = axes.inner();
        let mut spot = AxisPosition::at(axis, 0);
        for index in 0..23 {
            let there = AxisPosition::at(axis, index);
            assert_eq!(
                (spot.index, spot.part, spot.local, spot.left),
                (there.index, there.part, there.local, there.left)
            );
            assert_eq!(spot.advance(axis, 1), index == 22);
        }
        assert_eq!(spot.index, 0);
    }

    #[test]
    fn shares_add_up_to_the_length() {
        for parts in 1..9 {
            for dimension in [Dimension::block(23, parts), Dimension::cyclic(23, parts)] {
                let axes = Axes::new(1, &[dimension]);
                let axis = axes.inner();
                assert_eq!((0..parts).map(|part| axis.share(part)).sum::<u64>(), 23);
            }
        }
    }
}
