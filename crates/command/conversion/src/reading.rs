//! Reads the contents of an old file from its disks, and sends them to a thread that reads them like a local file.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;

use flume::{Receiver, Sender};
use futures_util::future::join_all;
use machine::{BufferPool, Disk as _, ObjectId};
use node::sparse::{Hole, SparseRead};
use real::Disk;

use super::old_files::OldFile;

/// Number of bytes to read at once, from all disks together, unless one block is larger.
const BATCH_BYTES: u64 = 4 << 20;

/// Capacity, in parts, of the queue to the reading thread.
pub(super) const PARTS_WAITING: usize = 4;

/// Part of the contents of a file. Parts are sent in the order of the file.
#[derive(Debug)]
pub(super) enum Part {
    Data(Vec<u8>),
    /// Number of bytes that were never written and read as zeros.
    Hole(u64),
    /// Error that prevents reading the rest.
    Failed(String),
}

/// Reads a file and sends all its parts. Ends early if the receiver is dropped.
pub(super) async fn send(disks: &[Disk], file: &OldFile, parts: &Sender<Part>) {
    if let Err(error) = send_all(disks, file, parts).await {
        // The receiver may have been dropped, because its thread failed.
        let _ = parts.send_async(Part::Failed(error.to_string())).await;
    }
}

async fn send_all(disks: &[Disk], file: &OldFile, parts: &Sender<Part>) -> machine::Result<()> {
    let blocks = file.striping.block_count(file.bytes);
    let batch = (BATCH_BYTES / file.striping.block_bytes()).max(1);
    let pool = BufferPool::new(batch * file.striping.block_bytes());
    let mut stripes: BTreeMap<u32, Stripe<'_>> = file
        .stripes
        .iter()
        .map(|(&index, &(disk, object))| (index, Stripe { disk: &disks[disk], object, data: Some(0..0) }))
        .collect();
    for first in (0..blocks).step_by(batch as usize) {
        for part in read_blocks(file, &mut stripes, first..blocks.min(first + batch), &pool).await? {
            if parts.send_async(part).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Stripe, with the range of data that was found last.
struct Stripe<'a> {
    disk: &'a Disk,
    object: ObjectId,
    /// Range of data found last; `None` after the last range of the stripe.
    data: Option<Range<u64>>,
}

impl Stripe<'_> {
    /// True if this range may contain data. Each call must have a higher range than the call before.
    async fn has_data(&mut self, range: &Range<u64>) -> machine::Result<bool> {
        if self.data.as_ref().is_some_and(|data| data.end <= range.start) {
            self.data = self.disk.data_after(self.object, range.start).await?;
        }
        Ok(self.data.as_ref().is_some_and(|data| data.start < range.end))
    }
}

/// Reads consecutive blocks, with one access for each stripe.
async fn read_blocks(
    file: &OldFile,
    stripes: &mut BTreeMap<u32, Stripe<'_>>,
    blocks: Range<u64>,
    pool: &BufferPool,
) -> machine::Result<Vec<Part>> {
    let (mut wanted, mut places) = (BTreeMap::<u32, Range<u64>>::new(), Vec::new());
    for block in blocks {
        let length = file.striping.block_extent(block, file.bytes).bytes;
        let place = file.striping.place_of_block(block);
        let begin = place.block * file.striping.block_bytes();
        let range = begin..begin + length;
        let stripe = stripes.get_mut(&place.stripe).expect("the file has all its stripes");
        let has_data = stripe.has_data(&range).await?;
        if has_data {
            let all = wanted.entry(place.stripe).or_insert_with(|| range.clone());
            all.end = range.end;
        }
        places.push((place.stripe, range, has_data));
    }
    let reads = wanted.iter().map(|(index, range)| {
        let (stripe, length) = (&stripes[index], range.end - range.start);
        async move {
            let read = stripe.disk.read(stripe.object, range.start, pool.take(length).await).await?;
            Ok::<_, Box<machine::Error>>(read.slice(0..length).to_vec().expect("real bytes"))
        }
    });
    let bytes = join_all(reads).await.into_iter().collect::<machine::Result<Vec<Vec<u8>>>>()?;
    let read: BTreeMap<u32, (u64, Vec<u8>)> =
        wanted.iter().zip(bytes).map(|((&index, range), bytes)| (index, (range.start, bytes))).collect();
    let mut parts = Vec::new();
    for (stripe, range, has_data) in places {
        match (parts.last_mut(), has_data) {
            (Some(Part::Hole(bytes)), false) => *bytes += range.end - range.start,
            (_, false) => parts.push(Part::Hole(range.end - range.start)),
            (last, true) => {
                let (begin, bytes) = &read[&stripe];
                let block = &bytes[(range.start - begin) as usize..(range.end - begin) as usize];
                match last {
                    Some(Part::Data(data)) => data.extend_from_slice(block),
                    _ => parts.push(Part::Data(block.to_vec())),
                }
            }
        }
    }
    Ok(parts)
}

/// Reader of the contents of an old file, for a thread that may block.
pub(super) struct Contents {
    parts: Receiver<Part>,
    /// Number of bytes of the file that have not been received yet.
    left: u64,
    /// Number of bytes of the hole before `data`.
    hole: u64,
    data: Vec<u8>,
    /// Index of the first unread byte of `data`.
    at: usize,
}

impl Contents {
    /// Returns the contents of a file of `bytes` bytes.
    pub(super) fn new(parts: Receiver<Part>, bytes: u64) -> Contents {
        Contents { parts, left: bytes, hole: 0, data: Vec::new(), at: 0 }
    }

    /// Receives parts until data are buffered, or the file ends.
    fn fill(&mut self) -> io::Result<()> {
        while self.at == self.data.len() && self.left > 0 {
            let bytes = match self.parts.recv() {
                Ok(Part::Data(data)) => {
                    (self.data, self.at) = (data, 0);
                    self.data.len() as u64
                }
                Ok(Part::Hole(bytes)) => {
                    self.hole += bytes;
                    bytes
                }
                Ok(Part::Failed(why)) => return Err(io::Error::other(why)),
                Err(_) => return Err(io::Error::other("the node with the disks has ended")),
            };
            self.left -= bytes;
        }
        Ok(())
    }
}

impl Read for Contents {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        if self.hole > 0 {
            let count = self.hole.min(bytes.len() as u64) as usize;
            bytes[..count].fill(0);
            self.hole -= count as u64;
            return Ok(count);
        }
        let count = (&self.data[self.at..]).read(bytes)?;
        self.at += count;
        Ok(count)
    }
}

impl SparseRead for Contents {
    fn hole(&mut self) -> io::Result<Hole> {
        self.fill()?;
        let is_last = self.hole > 0 && self.left == 0 && self.at == self.data.len();
        Ok(Hole { bytes: self.hole, is_last })
    }

    fn skip_hole(&mut self, bytes: u64) -> io::Result<()> {
        self.hole -= bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(bytes: u64, parts: Vec<Part>) -> Contents {
        let (send, receive) = flume::unbounded();
        parts.into_iter().for_each(|part| send.send(part).expect("the receiver is here"));
        Contents::new(receive, bytes)
    }

    #[test]
    fn parts_are_read_in_order_with_their_holes() {
        let parts = || {
            let data = |bytes: &[u8]| Part::Data(bytes.to_vec());
            vec![data(b"ab"), Part::Hole(2), Part::Hole(1), data(b"c"), data(b"d"), Part::Hole(1)]
        };
        let mut all = Vec::new();
        contents(8, parts()).read_to_end(&mut all).expect("all of it");
        assert_eq!(all, b"ab\0\0\0cd\0");
        let mut sparse = contents(8, parts());
        assert_eq!(sparse.hole().expect("data"), Hole::default());
        sparse.read_exact(&mut [0; 2]).expect("data");
        assert_eq!(sparse.hole().expect("a hole"), Hole { bytes: 3, is_last: false });
        sparse.skip_hole(3).expect("a hole");
        sparse.read_exact(&mut [0; 2]).expect("data");
        assert_eq!(sparse.hole().expect("a hole"), Hole { bytes: 1, is_last: true });
    }

    #[test]
    fn a_failed_or_short_read_is_an_error() {
        let failed =
            |parts| contents(8, parts).read_to_end(&mut Vec::new()).expect_err("it is short").to_string();
        assert_eq!(failed(vec![Part::Hole(2), Part::Failed("damaged".into())]), "damaged");
        assert!(failed(vec![Part::Data(vec![1; 7])]).contains("has ended"));
    }
}
