//! Finds the data and the holes of stripes. A hole is a range that was never written, according to the disk.

use std::ops::Range;
use std::rc::Rc;

use machine::{Disk, Machine};

use super::IoNode;
use crate::error::Failure;
use crate::protocol::{FileId, Reply};

impl<M: Machine> IoNode<M> {
    /// Finds the first data of each of these stripes at or after an offset. A lost range does not count as a hole,
    /// since reads of this range must fail.
    pub(super) async fn find_data(
        self: &Rc<Self>,
        file: FileId,
        stripes: &[(u32, u64)],
    ) -> Result<Reply, Box<Failure>> {
        self.check_stripe_count(stripes.len())?;
        let mut data = Vec::new();
        for &(index, offset) in stripes {
            let stripe = self.stripes.get(file, index)?;
            // Write the cached data first, since the disk reports only data that were passed to it.
            self.blocks.write_out(&stripe).await;
            let found = self.disks.of(stripe.home).data_after(stripe.home.object, offset).await?;
            let lost = stripe.losses.after(offset);
            let first = found.into_iter().chain(lost).min_by_key(|range| range.start);
            data.extend(first.map(|Range { start, end }| (index, start, end)));
        }
        Ok(Reply::DataFound { data })
    }
}
