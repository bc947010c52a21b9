//! The block requests that wait at an I/O node, and which of them is served next: pure state, without futures.
//!
//! A request on demand comes before every one in the background. Within a class the order is that of
//! [`Sharing`]: of arrival, or fair among the clients. Fair means *start-time fair queueing* (Goyal, Vin and
//! Cheng 1996): each request starts, in virtual time, when its client's previous one has ended, or now if that
//! is over; it ends so many bytes later; the earliest start is served first, and its start is what time it is.
//!
//! ```text
//! client a asked for much:    a1 |----| a2 |----| a3 |----| a4 |----| ...
//! client b comes at a2:                 b1 |----|
//! served                      a1   a2   b1   a3   a4 ...
//! ```

use std::collections::{BTreeMap, VecDeque};

use machine::{Class, NodeId};

/// Whose block request an I/O node serves next, among those of the same class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sharing {
    /// That which came first, as in the reports. What the I/O node reads ahead is as urgent as what was asked for.
    #[default]
    Arrival,
    /// That of the client who has been served least: each gets the same share of the bytes. What the I/O node
    /// reads ahead waits for what was asked for.
    Fair,
}

/// Requests of clients, each known by a `T`.
pub(crate) struct RequestQueue<T> {
    demand: Line<T>,
    background: Line<T>,
}

impl<T> RequestQueue<T> {
    pub(crate) fn new(sharing: Sharing) -> Self {
        RequestQueue { demand: Line::new(sharing), background: Line::new(sharing) }
    }

    pub(crate) fn len(&self) -> usize {
        self.demand.len() + self.background.len()
    }

    /// Adds a request of `client` that moves `bytes`.
    pub(crate) fn push(&mut self, class: Class, client: NodeId, bytes: u64, request: T) {
        self.line(class).push(client, bytes, request);
    }

    /// Takes out the request to serve next; one in the background only if that is `allowed` now.
    #[inline]
    pub(crate) fn pop(&mut self, background_allowed: bool) -> Option<(Class, T)> {
        if let Some(request) = self.demand.pop() {
            return Some((Class::Demand, request));
        }
        let request = if background_allowed { self.background.pop() } else { None };
        request.map(|request| (Class::Background, request))
    }

    /// Makes the requests in the background that `is_wanted` picks requests on demand, behind those there are;
    /// says how many.
    pub(crate) fn promote(&mut self, is_wanted: impl Fn(&T) -> bool) -> usize {
        let wanted = self.background.take_out(is_wanted);
        let count = wanted.len();
        for (client, bytes, request) in wanted {
            self.demand.push(client, bytes, request);
        }
        count
    }

    fn line(&mut self, class: Class) -> &mut Line<T> {
        match class {
            Class::Control | Class::Demand => &mut self.demand,
            Class::Background => &mut self.background,
        }
    }
}

/// The requests of one class.
enum Line<T> {
    Arrival(VecDeque<(NodeId, u64, T)>),
    Fair(FairLine<T>),
}

struct FairLine<T> {
    /// By virtual start, then by order of arrival.
    waiting: BTreeMap<(u64, u64), (NodeId, u64, T)>,
    /// When, in virtual time, the last request of each client ends; those that are over may be missing.
    ends: BTreeMap<NodeId, u64>,
    now: u64,
    arrivals: u64,
}

/// Ends that are over are forgotten when there are more than this many of all kinds.
const ENDS_MAX: usize = 1024;

impl<T> Line<T> {
    fn new(sharing: Sharing) -> Self {
        match sharing {
            Sharing::Arrival => Line::Arrival(VecDeque::new()),
            Sharing::Fair => {
                Line::Fair(FairLine { waiting: BTreeMap::new(), ends: BTreeMap::new(), now: 0, arrivals: 0 })
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Line::Arrival(queue) => queue.len(),
            Line::Fair(line) => line.waiting.len(),
        }
    }

    fn push(&mut self, client: NodeId, bytes: u64, request: T) {
        match self {
            Line::Arrival(queue) => queue.push_back((client, bytes, request)),
            Line::Fair(line) => line.push(client, bytes, request),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<T> {
        match self {
            Line::Arrival(queue) => queue.pop_front().map(|(_, _, request)| request),
            Line::Fair(line) => line.pop(),
        }
    }

    fn take_out(&mut self, is_wanted: impl Fn(&T) -> bool) -> Vec<(NodeId, u64, T)> {
        match self {
            Line::Arrival(queue) => {
                let (wanted, rest) = std::mem::take(queue).into_iter().partition(|entry| is_wanted(&entry.2));
                *queue = rest;
                Vec::from_iter::<VecDeque<_>>(wanted)
            }
            Line::Fair(line) => {
                let wanted = line.waiting.extract_if(.., |_, entry| is_wanted(&entry.2));
                wanted.map(|(_, entry)| entry).collect()
            }
        }
    }
}

impl<T> FairLine<T> {
    fn push(&mut self, client: NodeId, bytes: u64, request: T) {
        let end = self.ends.entry(client).or_default();
        let start = self.now.max(*end);
        // Even a request for nothing takes its turn.
        *end = start.saturating_add(bytes.max(1));
        self.arrivals += 1;
        self.waiting.insert((start, self.arrivals), (client, bytes, request));
    }

    fn pop(&mut self) -> Option<T> {
        let ((start, _), (_, _, request)) = self.waiting.pop_first()?;
        self.now = start;
        if self.ends.len() > ENDS_MAX {
            self.ends.retain(|_, end| *end > start);
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 64;

    fn served<T>(queue: &mut RequestQueue<T>, count: usize) -> Vec<T> {
        (0..count).filter_map(|_| queue.pop(true)).map(|(_, request)| request).collect()
    }

    #[test]
    fn by_arrival_the_first_is_the_first_whoever_asks() {
        let mut queue = RequestQueue::new(Sharing::Arrival);
        for number in 0..10 {
            queue.push(Class::Demand, NodeId(number / 9), BLOCK, number);
        }
        assert_eq!(served(&mut queue, 20), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn one_client_with_thousands_of_requests_does_not_starve_another() {
        let mut queue = RequestQueue::new(Sharing::Fair);
        for number in 0..5000 {
            queue.push(Class::Demand, NodeId(1), BLOCK, (1, number));
        }
        assert_eq!(served(&mut queue, 1000).len(), 1000);
        for number in 0..3 {
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let next = served(&mut queue, 8);
        let second: Vec<usize> = (0..8).filter(|&at| next[at].0 == 2).collect();
        assert!(second.len() == 3 && second[2] <= 6, "{next:?}");
        // Each client's own requests keep their order.
        assert!(next.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1), "{next:?}");
    }

    #[test]
    fn shares_are_of_bytes_and_not_of_requests() {
        let mut queue = RequestQueue::new(Sharing::Fair);
        for number in 0..400 {
            queue.push(Class::Demand, NodeId(1), 8 * BLOCK, (1, number));
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let next = served(&mut queue, 90);
        assert_eq!(next.iter().filter(|(client, _)| *client == 1).count(), 10);
    }

    #[test]
    fn who_was_idle_has_saved_nothing_up() {
        let mut queue = RequestQueue::new(Sharing::Fair);
        queue.push(Class::Demand, NodeId(2), BLOCK, (2, 0));
        for number in 0..100 {
            queue.push(Class::Demand, NodeId(1), BLOCK, (1, number));
        }
        assert_eq!(served(&mut queue, 50).len(), 50);
        for number in 0..50 {
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let next = served(&mut queue, 20);
        assert!((9..=11).contains(&next.iter().filter(|(client, _)| *client == 2).count()), "{next:?}");
    }

    #[test]
    fn demand_precedes_background_which_can_be_held_back_and_promoted() {
        for sharing in [Sharing::Arrival, Sharing::Fair] {
            let mut queue = RequestQueue::new(sharing);
            for number in 0..4 {
                queue.push(Class::Background, NodeId(1), BLOCK, number);
            }
            queue.push(Class::Demand, NodeId(2), BLOCK, 10);
            assert_eq!(queue.pop(false), Some((Class::Demand, 10)));
            assert_eq!(queue.pop(false), None);
            assert_eq!(queue.promote(|&request| request == 2), 1);
            assert_eq!((queue.pop(false), queue.len()), (Some((Class::Demand, 2)), 3));
            assert_eq!(served(&mut queue, 9), [0, 1, 3]);
        }
    }

    proptest! {
        #[test]
        fn every_request_is_served_once_and_in_its_clients_order(
            steps in proptest::collection::vec((0..4_u64, 1..200_u64, 0..3_usize), 1..200),
        ) {
            let mut queue = RequestQueue::new(Sharing::Fair);
            let (mut out, mut pushed) = (Vec::new(), 0);
            for (client, bytes, pops) in steps {
                queue.push(Class::Demand, NodeId(client), bytes, (client, pushed));
                pushed += 1;
                out.extend(served(&mut queue, pops));
            }
            out.extend(served(&mut queue, pushed));
            prop_assert_eq!(out.len(), pushed);
            for client in 0..4 {
                let own: Vec<_> = out.iter().filter(|request| request.0 == client).collect();
                prop_assert!(own.is_sorted());
            }
        }
    }
}
