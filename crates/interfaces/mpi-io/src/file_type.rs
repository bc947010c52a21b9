//! Types of MPI as selections of a file.
//!
//! A type is a map of bytes, repeated every `extent` bytes. MPI requires the bytes of a file type in ascending order,
//! and without overlap if the file is written. Unless the bytes overlap (`type_data.rs`), they are a [`Selection`]: a
//! small tree for any number of bytes.

use layout::{Extent, Selection};

use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::type_data::TypeData;

/// A type of MPI, with the properties that matter for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileType {
    /// Displacement in bytes of the first byte of data.
    first: i64,
    /// The data, relative to that byte.
    data: TypeData,
    /// Lower and upper bound. Their difference is the distance to the next copy.
    bounds: TypeBounds,
}

/// The bounds of a type, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeBounds {
    pub(crate) lower: i64,
    pub(crate) upper: i64,
}

fn wrong(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Type, format!("a type of the file: {why}"))
}

fn fits(number: Option<i64>) -> Outcome<i64> {
    number.ok_or_else(|| wrong("it extends beyond the largest possible file"))
}

fn count_of(number: i64) -> Outcome<u64> {
    u64::try_from(number).map_err(|_| wrong("a count is negative"))
}

impl FileType {
    /// Returns a type of `count` adjacent bytes.
    pub(crate) fn bytes(count: i64) -> Outcome<FileType> {
        let data = Selection::contiguous(Extent::new(0, count_of(count)?))?;
        let bounds = TypeBounds { lower: 0, upper: count };
        Ok(FileType { first: 0, data: TypeData::Once(data), bounds })
    }

    /// Returns the empty type.
    fn nothing() -> FileType {
        FileType { first: 0, data: TypeData::EMPTY, bounds: TypeBounds { lower: 0, upper: 0 } }
    }

    /// Returns the distance from one copy to the next, in bytes.
    pub(crate) fn extent(&self) -> Outcome<i64> {
        fits(self.bounds.upper.checked_sub(self.bounds.lower))
    }

    /// Returns the number of data bytes.
    pub(crate) fn size(&self) -> u64 {
        self.data.bytes()
    }

    /// Returns the data of the type placed at file offset `displacement`.
    pub(crate) fn placed(&self, displacement: u64) -> Outcome<TypeData> {
        if self.size() == 0 {
            return Ok(TypeData::EMPTY);
        }
        let first = displacement.checked_add_signed(self.first);
        let first = first.ok_or_else(|| wrong("its data begin before the start of the file"))?;
        self.data.shifted(first)
    }

    /// Returns the run of data that begins at byte `position` of the data: its displacement and length in bytes. Both
    /// are 0 at the end.
    pub(crate) fn run_at(&self, position: i64) -> Outcome<(i64, i64)> {
        let run = self.data.run_at(count_of(position)?)?;
        Ok(run.map_or((0, 0), |run| (self.first + run.offset as i64, run.bytes as i64)))
    }

    /// Returns the same data with other bounds.
    pub(crate) fn resized(&self, lower: i64, extent: i64) -> Outcome<FileType> {
        let upper = fits(lower.checked_add(extent))?;
        Ok(FileType { bounds: TypeBounds { lower, upper }, ..self.clone() })
    }

    /// Returns the type moved by `bytes` bytes.
    pub(crate) fn moved(&self, bytes: i64) -> Outcome<FileType> {
        FileType::in_order(std::iter::once((bytes, self)))
    }

    /// Returns `count` adjacent copies.
    pub(crate) fn contiguous(&self, count: i64) -> Outcome<FileType> {
        self.strided(count, self.extent()?)
    }

    /// Returns `count` copies, each `stride` bytes after the previous one.
    pub(crate) fn strided(&self, count: i64, stride: i64) -> Outcome<FileType> {
        match count_of(count)? {
            0 => Ok(FileType::nothing()),
            1 => Ok(self.clone()),
            many => {
                let span = fits(stride.checked_mul(count - 1))?;
                let last = self.moved_bounds(span)?;
                let data = match self.size() {
                    0 => TypeData::EMPTY,
                    _ => {
                        let stride = u64::try_from(stride);
                        self.data.repeated(
                            many,
                            stride.map_err(|_| wrong("its data are not in ascending order"))?,
                        )?
                    }
                };
                Ok(FileType { first: self.first, data, bounds: self.bounds.with(last) })
            }
        }
    }

    /// Returns blocks of adjacent copies. Each block is a length in copies and a displacement in bytes.
    pub(crate) fn indexed(&self, blocks: impl Iterator<Item = (i64, i64)>) -> Outcome<FileType> {
        let blocks = blocks.filter(|&(length, _)| length != 0);
        let placed: Outcome<Vec<(i64, FileType)>> =
            blocks.map(|(length, displacement)| Ok((displacement, self.contiguous(length)?))).collect();
        FileType::in_order(placed?.iter().map(|(displacement, block)| (*displacement, block)))
    }

    /// Joins types, each moved by its displacement, in ascending order.
    pub(crate) fn in_order<'a>(parts: impl Iterator<Item = (i64, &'a FileType)>) -> Outcome<FileType> {
        let (mut bounds, mut first, mut joined) = (None::<TypeBounds>, None, Vec::new());
        for (displacement, part) in parts {
            let moved = part.moved_bounds(displacement)?;
            bounds = Some(bounds.map_or(moved, |bounds| bounds.with(moved)));
            if part.size() > 0 {
                let at = fits(displacement.checked_add(part.first))?;
                let offset = fits(at.checked_sub(*first.get_or_insert(at)))?;
                let offset = u64::try_from(offset);
                joined.push((
                    offset.map_err(|_| wrong("its data are not in ascending order"))?,
                    part.data.clone(),
                ));
            }
        }
        let bounds = bounds.unwrap_or(TypeBounds { lower: 0, upper: 0 });
        Ok(FileType { first: first.unwrap_or(0), data: TypeData::joined(&joined)?, bounds })
    }

    fn moved_bounds(&self, bytes: i64) -> Outcome<TypeBounds> {
        let TypeBounds { lower, upper } = self.bounds;
        Ok(TypeBounds { lower: fits(lower.checked_add(bytes))?, upper: fits(upper.checked_add(bytes))? })
    }
}

impl TypeBounds {
    fn with(self, other: TypeBounds) -> TypeBounds {
        TypeBounds { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the displacements of all data bytes.
    fn map(of: &FileType) -> Vec<i64> {
        let runs = of.data.chunks().map(|chunk| chunk.file_offset..chunk.file_offset + chunk.bytes);
        runs.flatten().map(|offset| of.first + offset as i64).collect()
    }

    #[test]
    fn a_vector_has_gaps_between_its_blocks() {
        let vector = FileType::bytes(2).and_then(|pair| pair.contiguous(2)?.strided(2, 6)).expect("a type");
        assert_eq!(map(&vector), [0, 1, 2, 3, 6, 7, 8, 9]);
        assert_eq!(vector.bounds, TypeBounds { lower: 0, upper: 10 });
    }

    #[test]
    fn displacements_may_be_negative() {
        let byte = FileType::bytes(1).expect("a byte");
        let type_ = byte.indexed([(1, -3), (0, -9), (2, 4)].into_iter()).expect("a type");
        assert_eq!((map(&type_), type_.bounds), (vec![-3, 4, 5], TypeBounds { lower: -3, upper: 6 }));
        assert_eq!(type_.placed(10).expect("within a file").selection().span(), Extent::new(7, 9));
        assert_eq!(type_.placed(2).expect_err("before it").class, ErrorClass::Type);
    }

    #[test]
    fn types_not_in_ascending_order_are_rejected() {
        let byte = FileType::bytes(1).expect("a byte");
        let parts = byte.strided(2, 10).expect("two bytes");
        for (of, blocks) in [(&byte, [(1, 4), (1, 0)]), (&parts, [(1, 0), (1, 5)])] {
            assert_eq!(of.indexed(blocks.into_iter()).expect_err("wrong").class, ErrorClass::Type);
        }
        assert_eq!(byte.strided(2, -1).expect_err("downwards").class, ErrorClass::Type);
        assert_eq!(parts.strided(2, 5).expect_err("back again").class, ErrorClass::Type);
        assert_eq!(FileType::bytes(-1).expect_err("negative").class, ErrorClass::Type);
        assert_eq!(byte.strided(i64::MAX, i64::MAX).expect_err("too far").class, ErrorClass::Type);
    }

    #[test]
    fn data_may_overlap() {
        let byte = FileType::bytes(1).expect("a byte");
        let pair = byte.contiguous(2).expect("a pair");
        assert_eq!(map(&pair.strided(3, 1).expect("a type")), [0, 1, 1, 2, 2, 3]);
        assert_eq!(map(&byte.strided(2, 0).expect("the same twice")), [0, 0]);
        let type_ = pair.indexed([(1, -3), (2, -2), (1, 4)].into_iter()).expect("a type");
        assert_eq!((map(&type_), type_.size()), (vec![-3, -2, -2, -1, 0, 1, 4, 5], 8));
        assert_eq!(type_.run_at(3), Ok((-1, 3)));
        assert_eq!(type_.bounds, TypeBounds { lower: -3, upper: 6 });
        assert_eq!(byte.strided(1 << 20, 0).expect_err("too many").class, ErrorClass::Unsupported);
    }

    #[test]
    fn a_type_of_a_billion_pieces_can_be_built() {
        let eight = FileType::bytes(8).and_then(|eight| eight.strided(1_000_000_000, 32)).expect("a type");
        assert_eq!((eight.size(), eight.data.selection().runs()), (8_000_000_000, 1_000_000_000));
        assert!(eight.resized(0, 32_000_000_000).and_then(|tile| tile.contiguous(3)).is_ok());
    }

    #[test]
    fn resized_bounds_change_the_extent() {
        let byte = FileType::bytes(1).and_then(|byte| byte.resized(-2, 5)).expect("a type");
        assert_eq!(map(&byte.contiguous(3).expect("a type")), [0, 5, 10]);
    }
}
