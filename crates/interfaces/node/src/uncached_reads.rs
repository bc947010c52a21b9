//! Decides which of many ranges of a file are read alone, bypassing the page cache.
//!
//! A caller passes all ranges that it will read, so it is known which pages several ranges share. An uncached read
//! transfers only a part of a page, but needs a request for each range. A read into the cache transfers the whole page,
//! once. The cheaper way is chosen; a request counts like [`REQUEST_BYTES`] transferred bytes.

use std::collections::{BTreeMap, BTreeSet};

use layout::Extent;

/// Number of bytes whose transfer costs as much as a request: about 50 microseconds, at a GB/s.
const REQUEST_BYTES: u64 = 64 << 10;

/// Reads among many that are cheaper alone.
#[derive(Debug)]
pub struct UncachedReads {
    page_bytes: u64,
    /// Pages that are cheaper to read into the cache.
    shared: BTreeSet<u64>,
}

impl UncachedReads {
    /// Finds the cheaper way for each part of `ranges`, which the caller will read from a file with pages of
    /// `page_bytes` bytes.
    pub fn among(ranges: &[Extent], page_bytes: u64) -> Self {
        let mut costs: BTreeMap<u64, u64> = BTreeMap::new();
        for (page, bytes) in ranges.iter().flat_map(|range| parts_at_ends(*range, page_bytes)) {
            *costs.entry(page).or_default() += bytes + REQUEST_BYTES;
        }
        let shared = costs.into_iter().filter(|&(_, cost)| cost > page_bytes + REQUEST_BYTES);
        UncachedReads { page_bytes, shared: shared.map(|(page, _)| page).collect() }
    }

    /// True if a part of one of the ranges is to be read alone.
    pub fn has(&self, part: Extent) -> bool {
        parts_at_ends(part, self.page_bytes).all(|(page, _)| !self.shared.contains(&page))
    }
}

/// Returns the pages at both ends of a range of which the range has only a part, and the number of bytes in each part.
fn parts_at_ends(range: Extent, page_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let (first, last) = (range.offset / page_bytes, range.end().saturating_sub(1) / page_bytes);
    let ends = [Some(first), Some(last).filter(|&last| last > first)];
    ends.into_iter().flatten().filter_map(move |page| {
        let start = page * page_bytes;
        let bytes = range.end().min(start + page_bytes).saturating_sub(range.offset.max(start));
        (0 < bytes && bytes < page_bytes).then_some((page, bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 256 << 10;

    #[test]
    fn ranges_that_share_no_page_are_read_uncached() {
        let ranges = [Extent::new(5, 100), Extent::new(PAGE, 10 * PAGE), Extent::new(12 * PAGE + 7, PAGE)];
        let lone = UncachedReads::among(&ranges, PAGE);
        assert!(ranges.iter().all(|range| lone.has(*range)));
    }

    #[test]
    fn a_page_requested_by_many_ranges_is_cached() {
        let small: Vec<Extent> = (0..100).map(|place| Extent::new(place * 1000, 10)).collect();
        let lone = UncachedReads::among(&small, PAGE);
        assert!(small.iter().all(|range| !lone.has(*range)));
        let halves = [Extent::new(0, PAGE / 2), Extent::new(PAGE / 2, PAGE / 2 + 1)];
        let lone = UncachedReads::among(&halves, PAGE);
        assert!(halves.iter().all(|range| !lone.has(*range)), "it moves as much, by fewer requests");
    }

    #[test]
    fn a_page_with_few_requested_bytes_is_not_cached() {
        let two = [Extent::new(0, 10), Extent::new(PAGE - 10, 10)];
        assert!(two.iter().all(|range| UncachedReads::among(&two, PAGE).has(*range)));
    }
}
