//! Scrubbing: reads back the contents of a disk and compares them with their checksums, without changing
//! them.
//!
//! The disk is read at background priority, behind all other requests, and a small part at a time. A damaged part is
//! halved until it is as small as the unit that a disk can report, so that readable bytes next to the damage are not
//! reported as damaged. Each request is short, so that little work is wasted for a client that has disconnected.

use std::rc::Rc;

use layout::Extent;
use machine::{BufferPool, Disk, Error, Machine, NodeId, Work, yield_now};

use super::disks::Disks;
use super::stripe_label::read_label;
use super::stripe_place::Home;
use crate::error::Failure;
use crate::number;
use crate::protocol::{Damage, Direction, FileId, Reply, SCRUB_BYTES_MAX};
use crate::schedule::{DiskUser, Urgency};
use crate::scrub_unit::UNIT_BYTES;

/// Number of bytes read from the disk at a time: no other request waits longer than for one such read.
const STEP_BYTES: u64 = 256 * 1024;

/// Memory for scrubbing, for each disk, in bytes.
const BYTES_PER_DISK: u64 = 2 * STEP_BYTES;

/// Reads back the contents of a node's disks.
pub(super) struct Scrubber<M: Machine> {
    machine: M,
    disks: Rc<Disks<M>>,
    buffers: BufferPool,
}

impl<M: Machine> Scrubber<M> {
    pub(super) fn new(machine: M, disks: Rc<Disks<M>>) -> Self {
        let buffers = BufferPool::new(machine.disks().len() as u64 * BYTES_PER_DISK);
        Scrubber { machine, disks, buffers }
    }

    /// Reads back part of a file's stripe on a disk.
    pub(super) async fn scrub(
        &self,
        client: NodeId,
        file: FileId,
        disk: u32,
        offset: u64,
        bytes: u32,
    ) -> Result<Reply, Box<Failure>> {
        let name = number::object_name(file);
        let disks = self.machine.disks();
        let index = disk as usize;
        let found = disks.get(index).ok_or_else(|| {
            Failure::invalid(format!("there is no disk {disk}: this I/O node has {}", disks.len()))
        })?;
        let object = found.open(&name).await?;
        let label = read_label(&name, index, &object.label)?;
        let end = offset.saturating_add(u64::from(bytes.min(SCRUB_BYTES_MAX))).min(object.bytes);
        let (mut damage, mut why) = (Vec::<Damage>::new(), None);
        // Parts that are still to be read, in reverse order.
        let mut parts = vec![Extent::new(offset, end.saturating_sub(offset))];
        while let Some(part) = parts.pop().filter(|part| !part.is_empty()) {
            let (part, rest) = split(part, STEP_BYTES);
            parts.extend(rest);
            let home = Home { disk: index, object: object.id };
            match self.read_back(client, home, part).await.map_err(|error| *error) {
                Ok(()) => {}
                Err(Error::Damaged { why: found, .. }) => {
                    let (first, second) = halves(part);
                    match second {
                        Some(second) => parts.extend([second, first]),
                        None => {
                            note(&mut damage, part);
                            why.get_or_insert(found);
                        }
                    }
                }
                Err(error) => return Err(Failure::from(error).into()),
            }
        }
        Ok(Reply::Scrubbed { label, bytes: object.bytes, damage, why })
    }

    /// Reads a part of an object and discards it.
    async fn read_back(&self, client: NodeId, home: Home, part: Extent) -> machine::Result<()> {
        let buffer = self.buffers.take(part.bytes).await;
        self.machine.compute(Work::QueueDiskRequest).await;
        let outcome = {
            let user = DiskUser { job: client, urgency: Urgency::Background };
            let _turn = self.disks.turn(home, part, Direction::Read, user).await;
            let read = self.disks.of(home).read(home.object, part.offset, buffer).await;
            self.disks.count_bytes(home, Direction::Read, part.bytes, &read);
            read
        };
        self.machine.compute(Work::CompleteDiskRequest).await;
        // Yield, because a disk with all contents in memory answers at once, so that no other task would run.
        yield_now().await;
        outcome.map(drop)
    }
}

/// Returns the first `bytes` bytes of a part, and the rest if any.
fn split(part: Extent, bytes: u64) -> (Extent, Option<Extent>) {
    let first = part.bytes.min(bytes);
    let rest = Extent::new(part.offset + first, part.bytes - first);
    (Extent::new(part.offset, first), (!rest.is_empty()).then_some(rest))
}

/// Returns the halves of a part, cut at a unit boundary; only the part if it is within one unit.
fn halves(part: Extent) -> (Extent, Option<Extent>) {
    let first_unit = part.offset / UNIT_BYTES;
    let units = part.end().div_ceil(UNIT_BYTES) - first_unit;
    if units < 2 {
        return (part, None);
    }
    split(part, (first_unit + units / 2) * UNIT_BYTES - part.offset)
}

/// Adds a part that is after all others.
fn note(damage: &mut Vec<Damage>, part: Extent) {
    let Extent { offset, bytes } = part;
    match damage.last_mut() {
        Some(last) if last.offset + last.bytes == offset => last.bytes += bytes,
        _ => damage.push(Damage { offset, bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64) -> Extent {
        Extent::new(start, end - start)
    }

    #[test]
    fn parts_are_halved_down_to_a_unit() {
        assert_eq!(halves(part(0, 8192)), (part(0, 4096), Some(part(4096, 8192))));
        assert_eq!(halves(part(100, 4096)), (part(100, 4096), None));
        assert_eq!(halves(part(100, 4097)), (part(100, 4096), Some(part(4096, 4097))));
        assert_eq!(halves(part(8192, 8193)), (part(8192, 8193), None));
        assert_eq!(split(part(5, 20), 10), (part(5, 15), Some(part(15, 20))));
        assert_eq!(split(part(5, 15), 10), (part(5, 15), None));
    }

    #[test]
    fn adjacent_damaged_ranges_are_merged() {
        let mut damage = Vec::new();
        for (start, end) in [(0, 4096), (4096, 8192), (12288, 12300)] {
            note(&mut damage, part(start, end));
        }
        assert_eq!(damage, [Damage { offset: 0, bytes: 8192 }, Damage { offset: 12288, bytes: 12 }]);
    }
}
