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
//!
//! And the I/O node has hands for only so many requests at a time, from when they are taken out of the queue until their
//! answers have left. Of a class, a client may have as many there as hands are free (a *dynamic threshold*: Choudhury and
//! Hahne 1998); its others wait without being in anybody's way. So a client alone uses half of the hands, several that
//! are busy have equal parts, and one that takes no answers leaves half of what it found to whoever comes.

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
    /// How many can be taken out at a time, if they are shared fairly, and how many are.
    hands: usize,
    under_way: usize,
}

impl<T> RequestQueue<T> {
    /// A queue out of which, shared fairly, `hands` requests are taken at a time.
    pub(crate) fn new(sharing: Sharing, hands: usize) -> Self {
        RequestQueue { demand: Line::new(sharing), background: Line::new(sharing), hands, under_way: 0 }
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
        let free = self.hands - self.under_way;
        let demand = self.demand.pop(free).map(|request| (Class::Demand, request));
        let taken = demand.or_else(|| {
            let request = if background_allowed { self.background.pop(free) } else { None };
            request.map(|request| (Class::Background, request))
        });
        if taken.is_some() && self.demand.is_fair() {
            self.under_way += 1;
        }
        taken
    }

    /// The answer to a request of `client` that was taken out in this class has left. Says whether another one can be
    /// taken out for that.
    pub(crate) fn done(&mut self, class: Class, client: NodeId) -> bool {
        let Line::Fair(line) = self.line(class) else { return false };
        line.done(client);
        self.under_way = self.under_way.saturating_sub(1);
        let free = self.hands - self.under_way;
        [&self.demand, &self.background].iter().any(|line| line.has_next(free))
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
    /// The clients that wait, by the virtual start of the first of their requests, then by order of arrival.
    order: BTreeMap<(u64, u64), NodeId>,
    /// Clients with nothing waiting or under way may be missing.
    clients: BTreeMap<NodeId, ClientLine<T>>,
    waiting: usize,
    now: u64,
    arrivals: u64,
}

/// The requests of a client.
struct ClientLine<T> {
    waiting: VecDeque<Entry<T>>,
    /// When, in virtual time, the last one that was taken out ends.
    end: u64,
    /// Requests that were taken out and are not done.
    under_way: usize,
}

struct Entry<T> {
    /// When it came, in virtual time, and the how many-th of all.
    came: u64,
    arrival: u64,
    bytes: u64,
    request: T,
}

/// Clients that have nothing waiting or under way are forgotten when there are more than this many of all kinds.
const CLIENTS_MAX: usize = 1024;

impl<T> Line<T> {
    fn new(sharing: Sharing) -> Self {
        match sharing {
            Sharing::Arrival => Line::Arrival(VecDeque::new()),
            Sharing::Fair => Line::Fair(FairLine::default()),
        }
    }

    fn is_fair(&self) -> bool {
        matches!(self, Line::Fair(_))
    }

    fn len(&self) -> usize {
        match self {
            Line::Arrival(queue) => queue.len(),
            Line::Fair(line) => line.waiting,
        }
    }

    fn push(&mut self, client: NodeId, bytes: u64, request: T) {
        match self {
            Line::Arrival(queue) => queue.push_back((client, bytes, request)),
            Line::Fair(line) => line.push(client, bytes, request),
        }
    }

    #[inline]
    fn pop(&mut self, free: usize) -> Option<T> {
        match self {
            Line::Arrival(queue) => queue.pop_front().map(|(_, _, request)| request),
            Line::Fair(line) => line.pop(free),
        }
    }

    fn has_next(&self, free: usize) -> bool {
        match self {
            Line::Arrival(queue) => !queue.is_empty(),
            Line::Fair(line) => line.next(free).is_some(),
        }
    }

    fn take_out(&mut self, is_wanted: impl Fn(&T) -> bool) -> Vec<(NodeId, u64, T)> {
        match self {
            Line::Arrival(queue) => {
                let (wanted, rest) = std::mem::take(queue).into_iter().partition(|entry| is_wanted(&entry.2));
                *queue = rest;
                Vec::from_iter::<VecDeque<_>>(wanted)
            }
            Line::Fair(line) => line.take_out(is_wanted),
        }
    }
}

impl<T> FairLine<T> {
    fn push(&mut self, client: NodeId, bytes: u64, request: T) {
        self.arrivals += 1;
        self.waiting += 1;
        let (came, arrival) = (self.now, self.arrivals);
        let line = self.clients.entry(client).or_default();
        line.waiting.push_back(Entry { came, arrival, bytes, request });
        if line.waiting.len() == 1 {
            self.put_in_order(client);
        }
    }

    /// The place in the order of the next client that may have one more, if so many can be taken out.
    fn next(&self, free: usize) -> Option<(u64, u64)> {
        // Those that may not have at least as many already, so they are few.
        let next = self.order.iter().find(|(_, client)| self.clients[client].under_way < free);
        next.map(|(&place, _)| place)
    }

    fn pop(&mut self, free: usize) -> Option<T> {
        let place = self.next(free)?;
        let client = self.order.remove(&place).expect("just found");
        let line = self.clients.get_mut(&client).expect("what is in order waits");
        let Entry { bytes, request, .. } = line.waiting.pop_front().expect("what is in order waits");
        // Who was held back has saved nothing up.
        self.now = self.now.max(place.0);
        self.waiting -= 1;
        line.under_way += 1;
        // Even a request for nothing takes its turn.
        line.end = self.now.saturating_add(bytes.max(1));
        self.put_in_order(client);
        if self.clients.len() > CLIENTS_MAX {
            self.clients.retain(|_, line| !line.is_over(self.now));
        }
        Some(request)
    }

    fn done(&mut self, client: NodeId) {
        if let Some(line) = self.clients.get_mut(&client) {
            line.under_way = line.under_way.saturating_sub(1);
        }
    }

    fn take_out(&mut self, is_wanted: impl Fn(&T) -> bool) -> Vec<(NodeId, u64, T)> {
        let mut wanted = Vec::new();
        for (&client, line) in &mut self.clients {
            let (out, rest) =
                std::mem::take(&mut line.waiting).into_iter().partition(|entry| is_wanted(&entry.request));
            line.waiting = rest;
            let out: VecDeque<Entry<T>> = out;
            wanted.extend(out.into_iter().map(|entry| (client, entry.bytes, entry.request)));
        }
        if !wanted.is_empty() {
            self.waiting -= wanted.len();
            self.order.clear();
            let clients: Vec<NodeId> = self.clients.keys().copied().collect();
            clients.into_iter().for_each(|client| self.put_in_order(client));
        }
        wanted
    }

    /// Lets the first waiting request of a client be taken out, if there is one.
    fn put_in_order(&mut self, client: NodeId) {
        let line = &self.clients[&client];
        if let Some(first) = line.waiting.front() {
            self.order.insert((first.came.max(line.end), first.arrival), client);
        }
    }
}

impl<T> Default for FairLine<T> {
    fn default() -> Self {
        FairLine { order: BTreeMap::new(), clients: BTreeMap::new(), waiting: 0, now: 0, arrivals: 0 }
    }
}

impl<T> Default for ClientLine<T> {
    fn default() -> Self {
        ClientLine { waiting: VecDeque::new(), end: 0, under_way: 0 }
    }
}

impl<T> ClientLine<T> {
    /// Whether it tells nothing that a new one would not.
    fn is_over(&self, now: u64) -> bool {
        self.waiting.is_empty() && self.under_way == 0 && self.end <= now
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 64;

    fn served<T>(queue: &mut RequestQueue<T>, count: usize) -> Vec<T> {
        (0..count).filter_map(|_| queue.pop(true)).map(|(_, request)| request).collect()
    }

    #[test]
    fn by_arrival_the_first_is_the_first_whoever_asks() {
        let mut queue = RequestQueue::new(Sharing::Arrival, usize::MAX);
        for number in 0..10 {
            queue.push(Class::Demand, NodeId(number / 9), BLOCK, number);
        }
        assert_eq!(served(&mut queue, 20), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn one_client_with_thousands_of_requests_does_not_starve_another() {
        let mut queue = RequestQueue::new(Sharing::Fair, usize::MAX);
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
        let mut queue = RequestQueue::new(Sharing::Fair, usize::MAX);
        for number in 0..400 {
            queue.push(Class::Demand, NodeId(1), 8 * BLOCK, (1, number));
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let next = served(&mut queue, 90);
        assert_eq!(next.iter().filter(|(client, _)| *client == 1).count(), 10);
    }

    #[test]
    fn who_was_idle_has_saved_nothing_up() {
        let mut queue = RequestQueue::new(Sharing::Fair, usize::MAX);
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
            let mut queue = RequestQueue::new(sharing, usize::MAX);
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

    #[test]
    fn who_takes_no_answers_leaves_half_of_what_was_free_to_whoever_comes() {
        let mut queue = RequestQueue::new(Sharing::Fair, 16);
        for client in 1..=3 {
            for number in 0..20 {
                queue.push(Class::Demand, NodeId(client), BLOCK, (client, number));
            }
            assert_eq!(served(&mut queue, 99).len(), 16 >> client, "client {client}");
        }
        // Another class of the same client is held back by what is left, too.
        queue.push(Class::Background, NodeId(1), BLOCK, (1, 100));
        queue.push(Class::Background, NodeId(1), BLOCK, (1, 101));
        assert_eq!(served(&mut queue, 99), [(1, 100)]);
    }

    #[test]
    fn an_answer_that_leaves_lets_one_request_be_taken_out_and_no_more() {
        let mut queue = RequestQueue::new(Sharing::Fair, 16);
        for number in 0..40 {
            queue.push(Class::Demand, NodeId(1), BLOCK, (1, number));
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let mut taken = served(&mut queue, 99);
        assert_eq!(taken.len(), 11, "6 and 5, and 5 are free");
        for client in (0..60).map(|turn| 1 + turn % 2) {
            assert!(queue.done(Class::Demand, NodeId(client)));
            let next = served(&mut queue, 99);
            assert_eq!(next.len(), 1, "{next:?}");
            taken.extend(next);
        }
        assert_eq!((taken.len(), queue.len()), (71, 9));
        // Promoted, what waits in the background is held back as what is wanted on demand.
        queue.push(Class::Background, NodeId(1), BLOCK, (1, 100));
        assert_eq!(queue.promote(|request| request.1 == 100), 1);
        assert_eq!(served(&mut queue, 99), []);
        assert!(!RequestQueue::<()>::new(Sharing::Fair, 16).done(Class::Demand, NodeId(1)), "nobody waits");
    }

    #[test]
    fn who_was_held_back_has_saved_nothing_up() {
        let mut queue = RequestQueue::new(Sharing::Fair, 2);
        for number in 0..200 {
            queue.push(Class::Demand, NodeId(1), BLOCK, (1, number));
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let serve = |queue: &mut RequestQueue<(u64, i32)>| {
            let (client, _) = served(queue, 1)[0];
            queue.done(Class::Demand, NodeId(client));
            client
        };
        // The first one is kept under way.
        assert_eq!(served(&mut queue, 1), [(1, 0)]);
        assert!((0..50).all(|_| serve(&mut queue) == 2));
        queue.done(Class::Demand, NodeId(1));
        let first = (0..20).filter(|_| serve(&mut queue) == 1).count();
        assert!((9..=11).contains(&first), "{first}");
    }

    proptest! {
        #[test]
        fn every_request_is_served_once_and_in_its_clients_order(
            steps in proptest::collection::vec((0..4_u64, 1..200_u64, 0..3_usize, 0..3_usize), 1..200),
            hands in 1..12_usize,
        ) {
            let mut queue = RequestQueue::new(Sharing::Fair, hands);
            let (mut out, mut pushed, mut under_way) = (Vec::new(), 0, VecDeque::new());
            for (client, bytes, pops, dones) in steps {
                queue.push(Class::Demand, NodeId(client), bytes, (client, pushed));
                pushed += 1;
                let next = served(&mut queue, pops);
                under_way.extend(next.iter().map(|request| request.0));
                out.extend(next);
                for client in under_way.drain(..dones.min(under_way.len())) {
                    queue.done(Class::Demand, NodeId(client));
                }
                prop_assert!(under_way.len() <= hands);
                // Each leaves half: n clients have 1 + 2 + 4 + ... < 2^n at most.
                let clients: BTreeSet<u64> = under_way.iter().copied().collect();
                prop_assert!(under_way.len() < hands || 1 << clients.len() > hands);
            }
            while out.len() < pushed {
                for client in under_way.drain(..) {
                    queue.done(Class::Demand, NodeId(client));
                }
                let next = served(&mut queue, 1);
                prop_assert!(next.len() == 1, "somebody waits and nobody is in the way");
                under_way.extend(next.iter().map(|request| request.0));
                out.extend(next);
            }
            prop_assert_eq!(queue.len(), 0);
            for client in 0..4 {
                let own: Vec<_> = out.iter().filter(|request| request.0 == client).collect();
                prop_assert!(own.is_sorted());
            }
        }
    }
}
