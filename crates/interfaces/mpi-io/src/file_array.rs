//! Parts of arrays as types: subarrays, and the part of one process in a distributed array.
//!
//! Both are built dimension by dimension, beginning with the one whose elements are adjacent in the file.

use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::file_type::FileType;

/// One dimension of a box (subarray).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxSide {
    /// Length of the array in this dimension, in elements (or rows, or planes).
    pub(crate) length: i64,
    /// Number of elements (or rows, or planes) in the box.
    pub(crate) count: i64,
    /// Index of the first element (or row, or plane) in the box.
    pub(crate) first: i64,
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DistributedDimension {
    /// Length in elements (or rows, or planes).
    pub(crate) length: i64,
    /// Distribution of this dimension.
    pub(crate) dealing: DimensionDistribution,
    /// Number of processes along this dimension.
    pub(crate) processes: i64,
}

/// Distribution of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DimensionDistribution {
    /// Not distributed.
    Whole,
    /// One block per process, of this length; without a length, as long as needed.
    Blocks(Option<i64>),
    /// Blocks of this length, dealt cyclically.
    Cyclic(i64),
}

fn wrong(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Type, format!("an array: {why}"))
}

fn product(left: i64, right: i64) -> Outcome<i64> {
    left.checked_mul(right).ok_or_else(|| wrong("longer than the largest possible file"))
}

/// Returns a box of an array of elements. `sides` are in the order of the language: adjacent elements are along the
/// last dimension if `rows_first` (C), otherwise along the first (Fortran).
pub(crate) fn array_box(element: &FileType, sides: &[BoxSide], rows_first: bool) -> Outcome<FileType> {
    inwards_out(element, sides, rows_first, |inner, stride, side| {
        let BoxSide { length, count, first } = *side;
        if count < 0 || first < 0 || first.checked_add(count).is_none_or(|end| end > length) {
            return Err(wrong("the subarray extends beyond the array"));
        }
        Ok((inner.strided(count, stride)?.moved(product(first, stride)?)?, length))
    })
}

/// Returns the part of process `rank` of an array that is distributed over a grid of processes. Ranks run fastest along
/// the last dimension. `sides` are in the order of the language, as in [`array_box`].
pub(crate) fn dealt_array(
    element: &FileType,
    sides: &[DistributedDimension],
    rank: i64,
    rows_first: bool,
) -> Outcome<FileType> {
    let mut placed = Vec::with_capacity(sides.len());
    let mut place = rank;
    for side in sides.iter().rev() {
        if side.processes < 1 || side.length < 0 {
            return Err(wrong("a dimension has a negative length, or no process"));
        }
        placed.push((*side, place % side.processes));
        place /= side.processes;
    }
    placed.reverse();
    if rank < 0 || place > 0 {
        return Err(wrong("no process of the grid has this rank"));
    }
    inwards_out(element, &placed, rows_first, |inner, stride, (side, place)| {
        Ok((share(inner, stride, side, *place)?, side.length))
    })
}

/// Returns the part of the process at coordinate `place` of one dimension.
fn share(inner: &FileType, stride: i64, side: &DistributedDimension, place: i64) -> Outcome<FileType> {
    let DistributedDimension { length, dealing, processes } = *side;
    let run = match dealing {
        DimensionDistribution::Whole if processes == 1 => length,
        DimensionDistribution::Whole => {
            return Err(wrong("an undistributed dimension has several processes"));
        }
        DimensionDistribution::Blocks(None) => {
            (length / processes + i64::from(length % processes > 0)).max(1)
        }
        DimensionDistribution::Blocks(Some(run)) if run > 0 && product(run, processes)? >= length => run,
        DimensionDistribution::Cyclic(run) if run > 0 => run,
        _ => return Err(wrong("the blocks are too short for the number of processes")),
    };
    let (first, cycle) = (product(place, run)?, product(run, processes)?);
    let whole = (length - first).max(0) / cycle * run;
    let rest = ((length - first).max(0) % cycle).min(run);
    let blocks = inner.strided(run, stride)?.strided(whole / run, product(cycle, stride)?)?;
    let last = inner.strided(rest, stride)?;
    let after = product(product(whole / run, cycle)?, stride)?;
    let parts = [(0, &blocks), (after, &last)].into_iter().filter(|(_, part)| part.size() > 0);
    FileType::in_order(parts)?.moved(product(first, stride)?)
}

/// Builds a type dimension by dimension; `with` returns the selection of one dimension and its length.
fn inwards_out<S>(
    element: &FileType,
    sides: &[S],
    rows_first: bool,
    with: impl Fn(&FileType, i64, &S) -> Outcome<(FileType, i64)>,
) -> Outcome<FileType> {
    let (mut inner, mut stride) = (element.clone(), element.extent()?);
    for index in 0..sides.len() {
        let side = if rows_first { &sides[sides.len() - 1 - index] } else { &sides[index] };
        let length;
        (inner, length) = with(&inner, stride, side)?;
        stride = product(stride, length)?;
    }
    inner.resized(0, stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(of: &FileType) -> Vec<u64> {
        let data = of.placed(0).expect("within a file");
        data.chunks().flat_map(|chunk| chunk.file_offset..chunk.file_offset + chunk.bytes).collect()
    }

    #[test]
    fn a_subarray_is_equal_in_c_and_fortran_order() {
        let byte = FileType::bytes(1).expect("a byte");
        let rows = BoxSide { length: 4, count: 2, first: 1 };
        let columns = BoxSide { length: 8, count: 3, first: 2 };
        let in_c = array_box(&byte, &[rows, columns], true).expect("a box");
        assert_eq!(offsets(&in_c), [10, 11, 12, 18, 19, 20]);
        assert_eq!(in_c.extent(), Ok(32));
        assert_eq!(array_box(&byte, &[columns, rows], false).expect("a box"), in_c);
        let outside = BoxSide { length: 4, count: 2, first: 3 };
        assert_eq!(array_box(&byte, &[outside], true).expect_err("outside").class, ErrorClass::Type);
    }

    /// Checks the distribution of every element against the definition in the standard.
    #[test]
    fn elements_are_distributed_as_the_standard_defines() {
        let byte = FileType::bytes(1).expect("a byte");
        let dealings = [
            DimensionDistribution::Blocks(None),
            DimensionDistribution::Blocks(Some(5)),
            DimensionDistribution::Cyclic(1),
            DimensionDistribution::Cyclic(3),
        ];
        for (length, processes) in [(7, 2), (9, 2), (1, 2), (8, 4), (0, 2), (12, 3)] {
            for dealing in dealings {
                let run = match dealing {
                    DimensionDistribution::Blocks(None) => ((length + processes - 1) / processes).max(1),
                    DimensionDistribution::Blocks(Some(run)) | DimensionDistribution::Cyclic(run) => run,
                    DimensionDistribution::Whole => length,
                };
                if run * processes < length && matches!(dealing, DimensionDistribution::Blocks(_)) {
                    continue;
                }
                let sides = [
                    DistributedDimension {
                        length: 3,
                        dealing: DimensionDistribution::Cyclic(1),
                        processes: 2,
                    },
                    DistributedDimension { length, dealing, processes },
                ];
                for rank in 0..2 * processes {
                    let mine = |row: i64, column: i64| {
                        row % 2 == rank / processes && column / run % processes == rank % processes
                    };
                    let expected: Vec<u64> = (0..3 * length)
                        .filter(|at| mine(at / length, at % length))
                        .map(|at| at as u64)
                        .collect();
                    let dealt = dealt_array(&byte, &sides, rank, true).expect("dealt");
                    assert_eq!(offsets(&dealt), expected, "{sides:?}, rank {rank}");
                    assert_eq!(dealt.extent(), Ok(3 * length));
                }
            }
        }
    }

    #[test]
    fn impossible_arrays_are_refused() {
        let byte = FileType::bytes(1).expect("a byte");
        let side = |length, dealing, processes| DistributedDimension { length, dealing, processes };
        for (sides, rank) in [
            (side(4, DimensionDistribution::Whole, 2), 0),
            (side(4, DimensionDistribution::Blocks(Some(1)), 2), 0),
            (side(4, DimensionDistribution::Cyclic(0), 2), 0),
            (side(4, DimensionDistribution::Cyclic(1), 0), 0),
            (side(4, DimensionDistribution::Cyclic(1), 2), 2),
            (side(i64::MAX, DimensionDistribution::Cyclic(i64::MAX), 2), 0),
        ] {
            assert_eq!(
                dealt_array(&byte, &[sides], rank, true).expect_err("impossible").class,
                ErrorClass::Type
            );
        }
    }
}
