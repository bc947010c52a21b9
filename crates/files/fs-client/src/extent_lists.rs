//! Encodes lists of extents for I/O nodes: entry by entry as in the report, or with regular sequences of entries merged
//! into runs. Small records form such sequences.
//!
//! In both forms messages are of bounded length, and each I/O node receives only its own entries.

use layout::{Extent, Striping};
use machine::{Machine, Message};

use super::File;
use crate::directory::{Entry, EntryRun, ListedStretch};
use crate::protocol::{ENTRIES_MAX, FileId, MemoryId, Request};

/// Extents of a file, with their offsets in a member's memory.
pub struct FileEntries<M: Machine> {
    /// The file.
    pub file: File<M>,
    /// The extents, in any order. If they overlap, a write keeps the latest.
    pub entries: Vec<Entry>,
}

/// The entries for one I/O node, split into messages.
pub(super) trait Directory: Default {
    /// Adds an entry with data at this node.
    fn push(&mut self, file: FileId, entry: Entry);

    /// Returns the messages.
    fn requests(self, memory: MemoryId) -> Vec<Request>;
}

/// Returns the entries for each of the `io_nodes` I/O nodes.
pub(super) fn directories_by_io_node<T: Directory, M: Machine>(
    parts: &[FileEntries<M>],
    io_nodes: usize,
) -> Vec<T> {
    let mut directories: Vec<T> = (0..io_nodes).map(|_| T::default()).collect();
    for FileEntries { file, entries } in parts {
        let (striping, homes) = (file.striping(), file.homes_by_index());
        // The last entry's block and its I/O node: usually the next entry is in the same block.
        let mut latest = (Extent::new(0, 0), 0);
        let mut sent_number = vec![usize::MAX; io_nodes];
        for (number, entry) in entries.iter().enumerate() {
            let (block, node) = latest;
            if entry.bytes > 0 && block.offset <= entry.offset && entry.extent().end() <= block.end() {
                directories[node].push(file.id(), *entry);
                continue;
            }
            for stripe in entry.stripes(striping) {
                let node = homes[stripe as usize];
                if sent_number[node] != number {
                    sent_number[node] = number;
                    directories[node].push(file.id(), *entry);
                }
            }
            latest =
                (block_at(striping, entry.offset), homes[striping.place_of(entry.offset).stripe as usize]);
        }
    }
    directories
}

fn block_at(striping: Striping, offset: u64) -> Extent {
    let bytes = striping.block_bytes();
    Extent::new(offset / bytes * bytes, bytes)
}

/// Entries encoded one by one.
#[derive(Default)]
pub(super) struct DirectoryOfEntries {
    messages: Vec<Vec<(FileId, Vec<Entry>)>>,
}

impl Directory for DirectoryOfEntries {
    fn push(&mut self, file: FileId, entry: Entry) {
        let length = |message: &Vec<(FileId, Vec<Entry>)>| {
            message.iter().map(|(_, entries)| entries.len() + 1).sum::<usize>()
        };
        if self.messages.last().is_none_or(|message| length(message) + 2 > ENTRIES_MAX) {
            self.messages.push(Vec::new());
        }
        let message = self.messages.last_mut().expect("there is one");
        match message.last_mut() {
            Some((last, entries)) if *last == file => entries.push(entry),
            _ => message.push((file, vec![entry])),
        }
    }

    fn requests(self, memory: MemoryId) -> Vec<Request> {
        self.messages.into_iter().map(|entries| Request::Directory { memory, entries }).collect()
    }
}

/// Limit in bytes of an encoded number.
const NUMBER_BYTES: usize = 10;

/// Limits in bytes of the encoded start of a file (two numbers) and of an entry or a run (eight numbers).
const FILE_BYTES: usize = 2 * NUMBER_BYTES;
const RUN_BYTES: usize = 8 * NUMBER_BYTES;

/// Limit in bytes of the entries in a message. The other header fields take less than the rest of the header.
const MESSAGE_BYTES_MAX: usize = Message::HEADER_BYTES_MAX - 16 * NUMBER_BYTES;

/// Entries with regular sequences merged into runs.
#[derive(Default)]
pub(super) struct DirectoryOfRuns {
    messages: Vec<Vec<(FileId, Vec<ListedStretch>)>>,
    /// Free space in the last message, in bytes.
    room: usize,
    /// The last entry added.
    latest: Option<Entry>,
}

impl Directory for DirectoryOfRuns {
    fn push(&mut self, file: FileId, entry: Entry) {
        let latest = self.latest.replace(entry);
        let is_of_file = self.last_file() == Some(file);
        if is_of_file && latest.is_some_and(|latest| self.goes_on(&latest, &entry)) {
            return;
        }
        let needed = RUN_BYTES + if is_of_file { 0 } else { FILE_BYTES };
        if self.messages.is_empty() || self.room < needed {
            self.messages.push(Vec::new());
            self.room = MESSAGE_BYTES_MAX;
        }
        self.room -= RUN_BYTES;
        let message = self.messages.last_mut().expect("there is one");
        match message.last_mut() {
            Some((last, stretches)) if *last == file => stretches.push(ListedStretch::One(entry)),
            _ => {
                self.room -= FILE_BYTES;
                message.push((file, vec![ListedStretch::One(entry)]));
            }
        }
    }

    fn requests(self, memory: MemoryId) -> Vec<Request> {
        self.messages.into_iter().map(|stretches| Request::Stretches { memory, stretches }).collect()
    }
}

impl DirectoryOfRuns {
    fn last_file(&self) -> Option<FileId> {
        self.messages.last()?.last().map(|(file, _)| *file)
    }

    /// Merges an entry into the last run, if it continues that run after the entry `latest`. Returns true if it does.
    fn goes_on(&mut self, latest: &Entry, entry: &Entry) -> bool {
        let follows = entry.bytes == latest.bytes && entry.at == latest.at + latest.bytes;
        let stride = entry.offset.checked_sub(latest.offset);
        let later = entry.time.checked_sub(latest.time).and_then(|later| u32::try_from(later).ok());
        let (true, Some(stride), Some(later)) = (follows, stride, later) else { return false };
        let length = number_bytes(later);
        if self.room < length {
            return false;
        }
        let last = self.messages.last_mut().and_then(|message| message.last_mut());
        let Some(stretch) = last.and_then(|(_, stretches)| stretches.last_mut()) else { return false };
        match stretch {
            ListedStretch::One(first) => {
                *stretch = ListedStretch::Run(EntryRun { first: *first, stride, later: vec![later] })
            }
            ListedStretch::Run(run) if run.stride == stride => run.later.push(later),
            ListedStretch::Run(_) => return false,
        }
        self.room -= length;
        true
    }
}

/// Returns the encoded size of a number in bytes, with seven bits in each byte.
fn number_bytes(number: u32) -> usize {
    (number | 1).ilog2() as usize / 7 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CollectiveId, Frame};
    use proptest::prelude::*;

    fn requests<T: Directory>(entries: &[(u64, Entry)]) -> Vec<Request> {
        let mut directory = T::default();
        for (file, entry) in entries {
            directory.push(FileId(*file), *entry);
        }
        directory.requests(MemoryId::Collective(CollectiveId { group: u64::MAX, operation: u32::MAX }))
    }

    fn entries_of(requests: &[Request]) -> Vec<(u64, Entry)> {
        let of_request = |request: &Request| -> Vec<(u64, Entry)> {
            match request {
                Request::Directory { entries, .. } => entries
                    .iter()
                    .flat_map(|(file, entries)| entries.iter().map(|entry| (file.0, *entry)))
                    .collect(),
                Request::Stretches { stretches, .. } => {
                    let of_file = |(file, listed): &(FileId, Vec<ListedStretch>)| -> Vec<(u64, Entry)> {
                        listed.iter().flat_map(ListedStretch::entries).map(|entry| (file.0, entry)).collect()
                    };
                    stretches.iter().flat_map(of_file).collect()
                }
                other => panic!("{other:?}"),
            }
        };
        requests.iter().flat_map(of_request).collect()
    }

    #[test]
    fn equally_spaced_small_records_need_one_request() {
        let record =
            |number: u64| (7, Entry { offset: 32 * number, bytes: 8, at: 8 * number, time: 50 * number });
        let entries: Vec<_> = (0..50_000).map(record).collect();
        let sent = requests::<DirectoryOfRuns>(&entries);
        assert_eq!((sent.len(), entries_of(&sent)), (1, entries.clone()));
        assert_eq!(requests::<DirectoryOfEntries>(&entries).len(), 42);
    }

    proptest! {
        /// Both encodings contain the same entries in the same order, and their headers are within the limit.
        #[test]
        fn requests_contain_all_entries_in_order(
            entries in prop::collection::vec((0u64..2, 0u64..4, 0u64..3, 0u64..3, any::<bool>()), 0..6000),
        ) {
            let (mut list, mut entry) = (Vec::new(), Entry { offset: 0, bytes: 8, at: 1 << 60, time: 1 << 62 });
            for (file, distance, gap, later, is_far) in entries {
                entry.offset = if is_far { entry.offset ^ (1 << 61) } else { entry.offset + 8 * distance };
                entry.at += 8 + (gap / 2);
                entry.time += later << (14 * later);
                list.push((file, entry));
            }
            for sent in [requests::<DirectoryOfEntries>(&list), requests::<DirectoryOfRuns>(&list)] {
                prop_assert_eq!(&entries_of(&sent), &list);
                for request in sent {
                    prop_assert!(Frame::Request(u64::MAX, request).encode().len() <= Message::HEADER_BYTES_MAX);
                }
            }
        }
    }
}
