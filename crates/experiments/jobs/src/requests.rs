//! Sequence of a client's requests: their records, and which of them are reads.
//!
//! Every client accesses a separate part of the file repeatedly, sequentially or in a new random order in each pass. In
//! a pass, each record is accessed once. The sequence depends only on the seed.

use layout::{Extent, Operation};
use machine::mix;

use crate::{Order, Workload};

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Operation: read or write.
    pub(crate) operation: Operation,
    /// Range of the record.
    pub(crate) extent: Extent,
}

/// Endless requests of one client.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    workload: Workload,
    /// First record of the client's part. The next field is the number of records in the part.
    first: u64,
    records: u64,
    /// Key that distinguishes the client's random numbers from those of other clients.
    key: u64,
    /// Number of requests so far.
    made: u64,
}

/// Distinct numbers for each use of the seed, so that the draws for order and operation are independent.
const OF_ORDER: u64 = 1;
const OF_OPERATION: u64 = 2;

impl Requests {
    /// Creates the requests of the client of this number.
    ///
    /// # Panics
    /// If there are fewer records than clients.
    pub(crate) fn new(workload: &Workload, client: u32) -> Self {
        let part = workload.part(client);
        let (first, records) = (part.start, part.end - part.start);
        assert!(records > 0, "client {client} has no record");
        let key = mix(mix(workload.seed) ^ u64::from(client));
        Requests { workload: workload.clone(), first, records, key, made: 0 }
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let (pass, place) = (self.made / self.records, self.made % self.records);
        let draw = mix(mix(self.key ^ OF_OPERATION) ^ self.made);
        self.made += 1;
        let record = self.first
            + match self.workload.order {
                Order::Sequential => place,
                Order::Random => shuffled(place, self.records, mix(mix(self.key ^ OF_ORDER) ^ pass)),
            };
        let is_read = draw % 100 < u64::from(self.workload.reads_percent);
        let bytes = self.workload.record_bytes;
        Some(Request {
            operation: if is_read { Operation::Read } else { Operation::Write },
            extent: Extent::new(record * bytes, bytes).clip(self.workload.file_bytes),
        })
    }
}

/// Number of rounds of the Feistel network. With three rounds, observers of its values cannot distinguish the
/// permutation from a random one (Luby and Rackoff 1988). With four rounds, observers of the inverse cannot do so
/// either.
const ROUNDS: u64 = 4;

/// Returns the element at `place` in a permutation of `0..count` that depends on `key`.
///
/// A Feistel network permutes all numbers of an even number of bits. If the result is not below `count`, it passes
/// through the network again. So the permutation needs no memory, for any number of records.
fn shuffled(place: u64, count: u64, key: u64) -> u64 {
    let half = (u64::BITS - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut number = place;
    loop {
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (mix(key ^ (round << 56) ^ right) & mask));
        }
        number = left << half | right;
        if number < count {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn workload(order: Order, reads_percent: u8, clients: u32) -> Workload {
        let (file_bytes, record_bytes) = (1000 * 512, 512);
        Workload { order, reads_percent, file_bytes, record_bytes, clients, ..Workload::default() }
    }

    fn first(workload: &Workload, client: u32, count: usize) -> Vec<Request> {
        Requests::new(workload, client).take(count).collect()
    }

    #[test]
    fn all_clients_together_request_each_record_once_in_a_pass() {
        for order in [Order::Sequential, Order::Random] {
            for clients in [1, 3, 7, 1000] {
                let workload = workload(order, 50, clients);
                let mut offsets = BTreeSet::new();
                for client in 0..clients {
                    let part = workload.part(client);
                    let pass = first(&workload, client, (part.end - part.start) as usize);
                    for Request { extent, .. } in pass {
                        assert!(extent.offset.is_multiple_of(512) && extent.bytes == 512, "{extent:?}");
                        assert!(offsets.insert(extent.offset), "{extent:?} is requested twice");
                    }
                }
                assert_eq!((offsets.len(), offsets.last()), (1000, Some(&(999 * 512))));
            }
        }
    }

    #[test]
    fn a_short_last_record_ends_with_the_file() {
        let workload = Workload { file_bytes: 1300, ..workload(Order::Sequential, 0, 1) };
        let extents: Vec<Extent> = first(&workload, 0, 4).into_iter().map(|request| request.extent).collect();
        let expected = [(0, 512), (512, 512), (1024, 276), (0, 512)];
        assert_eq!(extents, expected.map(|(offset, bytes)| Extent::new(offset, bytes)));
    }

    #[test]
    fn each_pass_has_a_new_random_order() {
        let workload = workload(Order::Random, 100, 1);
        let requests = first(&workload, 0, 2000);
        let offset = |request: &Request| request.extent.offset;
        let (one, other): (Vec<u64>, Vec<u64>) =
            (requests[..1000].iter().map(offset).collect(), requests[1000..].iter().map(offset).collect());
        assert_ne!(one, other);
        // Of a thousand random steps, about half go forward, and about one goes to the next record.
        let on = one.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let next = one.windows(2).filter(|pair| pair[1] == pair[0] + 512).count();
        assert!((450..550).contains(&on) && next < 10, "{on} steps go forward, {next} to the next record");
    }

    #[test]
    fn the_share_of_reads_is_as_requested() {
        for percent in [0, 1, 30, 70, 99, 100] {
            let requests = first(&workload(Order::Sequential, percent, 1), 0, 100_000);
            let reads = requests.iter().filter(|request| request.operation == Operation::Read).count();
            let off = reads as f64 / 1000.0 - f64::from(percent);
            // For 50 % reads, four standard deviations of the share are 0.6 %.
            assert!(
                off.abs() < if percent % 100 == 0 { 1e-9 } else { 0.7 },
                "expected {percent} % reads, found {reads}"
            );
        }
    }

    #[test]
    fn requests_depend_on_the_seed_and_the_client() {
        let mixed = workload(Order::Random, 50, 2);
        assert_eq!(first(&mixed, 0, 500), first(&mixed, 0, 500));
        let operations = |workload: &Workload, client| -> Vec<Operation> {
            first(workload, client, 500).into_iter().map(|request| request.operation).collect()
        };
        assert_ne!(operations(&mixed, 0), operations(&mixed, 1));
        let relative = |client| -> Vec<u64> {
            let begin = mixed.part(client).start * 512;
            first(&mixed, client, 500).into_iter().map(|request| request.extent.offset - begin).collect()
        };
        assert_ne!(relative(0), relative(1));
        assert_ne!(first(&mixed, 0, 500), first(&Workload { seed: 2, ..mixed.clone() }, 0, 500));
    }

    #[test]
    fn shuffling_permutes_any_number() {
        for count in [1, 2, 3, 4, 5, 63, 64, 65, 4097] {
            let all: BTreeSet<u64> = (0..count).map(|place| shuffled(place, count, 9)).collect();
            assert_eq!((all.len() as u64, all.last()), (count, Some(&(count - 1))), "{count}");
        }
        let most = u64::MAX >> 1;
        assert!((0..100).all(|place| shuffled(place, most, 3) < most));
    }
}
