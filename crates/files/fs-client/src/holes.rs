//! Finds data and holes of a file by querying each I/O node for its stripes.

use std::collections::BTreeMap;
use std::ops::Range;

use layout::StripePlace;
use machine::Machine;

use super::{File, unexpected};
use crate::Features;
use crate::error::Result;
use crate::protocol::{Reply, Request};

impl<M: Machine> File<M> {
    /// Returns the first offset from `offset` on that may be data, not a hole; `None` if only a hole follows.
    ///
    /// # Errors
    /// Fails if an I/O node does not answer.
    pub async fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        let data = self.retry_once(async || self.find_data(offset).await).await?;
        Ok(data.iter().filter_map(|(&stripe, data)| self.offset_of(stripe, data.start)).min())
    }

    /// Returns the first offset from `offset` on that is in a hole; `None` if data extend to the largest offset of a
    /// file.
    ///
    /// # Errors
    /// Fails if an I/O node does not answer.
    pub async fn next_hole(&self, offset: u64) -> Result<Option<u64>> {
        let data = self.retry_once(async || self.find_data(offset).await).await?;
        let holes = (0..self.striping().stripe_count()).filter_map(|stripe| {
            let from = self.striping().stripe_bytes(offset, stripe);
            let hole = data.get(&stripe).filter(|data| data.start <= from).map_or(from, |data| data.end);
            self.offset_of(stripe, hole)
        });
        Ok(holes.min())
    }

    /// Returns, for each stripe with data at or after file offset `offset`, the first range of data at or after this
    /// offset, in offsets of the stripe.
    async fn find_data(&self, offset: u64) -> Result<BTreeMap<u32, Range<u64>>> {
        let (file, striping) = (self.id(), self.striping());
        let (mut unknown, mut known) = (Vec::new(), Vec::new());
        for stripe in 0..striping.stripe_count() {
            let reports_holes = !self.has_no_disk(stripe)
                && (self.is_absent(stripe)
                    || self.client.can(self.home_of(stripe), Features::FINDING_DATA).await?);
            if reports_holes { known.push(stripe) } else { unknown.push(stripe) }
        }
        self.attach(known.iter().copied(), false).await?;
        let request = |home| {
            let here = known
                .iter()
                .copied()
                .filter(|&stripe| self.home_of(stripe) == home && !self.is_absent(stripe));
            let stripes: Vec<(u32, u64)> =
                here.map(|stripe| (stripe, striping.stripe_bytes(offset, stripe))).collect();
            (!stripes.is_empty()).then_some(Request::FindData { file, stripes })
        };
        // Treat a stripe as data if its I/O node cannot answer or its disk is missing, since a read of this stripe
        // fails instead of returning zeros.
        let may_be_data = |stripe: u32| {
            let (from, end) =
                (striping.stripe_bytes(offset, stripe), striping.stripe_bytes(self.bytes(), stripe));
            (from < end).then_some((stripe, from..end))
        };
        let mut all: BTreeMap<_, _> = unknown.into_iter().filter_map(may_be_data).collect();
        for (node, answer) in self.answers_of_homes(request).await {
            let (Reply::DataFound { data }, _) = answer? else { return Err(unexpected(node)) };
            all.extend(data.into_iter().map(|(stripe, start, end)| (stripe, start..end)));
        }
        Ok(all)
    }

    fn offset_of(&self, stripe: u32, offset: u64) -> Option<u64> {
        self.striping().file_offset_of(StripePlace { stripe, offset }).ok()
    }
}
