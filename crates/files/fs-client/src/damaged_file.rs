//! Reads a damaged file: returns all readable bytes, and the unreadable extents.

use layout::{BlockRequest, Extent};
use machine::{Class, Machine, Payload};

use super::File;
use crate::error::{Error, FailureKind, Result};
use crate::scrub_unit::UNIT_BYTES;

/// A file with possibly missing or damaged stripes, open for reading.
pub struct DamagedFileReader<M: Machine> {
    file: File<M>,
}

/// Part of a damaged file: consecutive readable bytes, or the number of consecutive unreadable bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum SalvagedExtent {
    /// Readable bytes.
    Data(Payload),
    /// Number of unreadable bytes.
    Lost(u64),
}

impl SalvagedExtent {
    /// Returns the number of bytes of the file that this part covers.
    pub fn bytes(&self) -> u64 {
        match self {
            SalvagedExtent::Data(data) => data.len(),
            SalvagedExtent::Lost(bytes) => *bytes,
        }
    }
}

impl<M: Machine> DamagedFileReader<M> {
    /// Returns an open file as a damaged file.
    pub(super) fn of(file: File<M>) -> Self {
        DamagedFileReader { file }
    }

    /// Returns the known size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Returns the blocks of the file, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Extent> + use<M> {
        let (striping, bytes) = (self.file.striping(), self.bytes());
        (0..striping.block_count(bytes)).map(move |block| striping.block_extent(block, bytes))
    }

    /// Reads the readable parts of a block. Determines the damage to the smallest unit in which disks detect it.
    pub async fn read(&self, block: Extent) -> Result<Vec<SalvagedExtent>> {
        let (mut remnants, mut parts) = (Vec::new(), vec![block]);
        while let Some(part) = parts.pop() {
            let BlockRequest { stripe_offset, .. } = self.file.block_request(part)?;
            match self.file.read_block(part, || Class::Demand).await {
                Ok(data) => remnants.push(SalvagedExtent::Data(data)),
                Err(error) if matches!(*error, Error::MissingStripe { .. } | Error::UnknownDisk { .. }) => {
                    remnants.push(SalvagedExtent::Lost(part.bytes));
                }
                Err(error) if error.is_remote(FailureKind::Damaged) => match halves(part, stripe_offset) {
                    Some([first, second]) => parts.extend([second, first]),
                    None => remnants.push(SalvagedExtent::Lost(part.bytes)),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(remnants)
    }
}

/// Splits a part of a block at a unit boundary of its stripe, because disks have one checksum for each unit. Returns
/// `None` if the part is within one unit.
fn halves(part: Extent, stripe_offset: u64) -> Option<[Extent; 2]> {
    let units = (stripe_offset + part.bytes).div_ceil(UNIT_BYTES) - stripe_offset / UNIT_BYTES;
    if units < 2 {
        return None;
    }
    let first = (stripe_offset / UNIT_BYTES + units / 2) * UNIT_BYTES - stripe_offset;
    Some([Extent::new(part.offset, first), Extent::new(part.offset + first, part.bytes - first)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_halved_at_unit_boundaries_of_the_stripe() {
        let halves = |offset, bytes, stripe_offset| halves(Extent::new(offset, bytes), stripe_offset);
        assert_eq!(halves(100_000, 4096, 8192), None);
        assert_eq!(halves(100_000, 4097, 8192), Some([Extent::new(100_000, 4096), Extent::new(104_096, 1)]));
        assert_eq!(halves(7, 10, 4090), Some([Extent::new(7, 6), Extent::new(13, 4)]));
    }
}
