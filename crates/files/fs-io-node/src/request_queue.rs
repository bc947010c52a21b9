//! The block requests that wait at an I/O node, and their order of service: pure state, without futures.
//!
//! Every demand request comes before every background request. Within a class the order is that of
//! [`Sharing`]: of arrival, or fair among the clients. Fair means *start-time fair queueing* (Goyal, Vin and
//! Cheng 1996). Each request starts, in virtual time, at the end of its client's previous one, or now if that
//! time has passed. It ends its number of bytes later. The request with the earliest start is served first,
//! and sets the virtual time to its start.
//!
//! ```text
//! client a asked for much:    a1 |----| a2 |----| a3 |----| a4 |----| ...
//! client b comes at a2:                 b1 |----|
//! served                      a1   a2   b1   a3   a4 ...
//! ```
//!
//! The number of requests in service, from leaving the queue until their answers have left, may be limited by
//! *service slots*. A client may then have as many slots as are free (a *dynamic threshold*: Choudhury and
//! Hahne 1998), and its other requests do not block other clients. So a single client uses half of the slots,
//! and several busy clients have equal parts. A client that receives no answers leaves to others half of the
//! slots that it found free. A quarter of the slots is for demand only.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use machine::{Class, NodeId};

use crate::protocol::FileId;
use crate::settings::Sharing;

/// Place of a request: file, stripe, and offset in bytes within the stripe.
pub(crate) type RequestPlace = (FileId, u32, u64);

/// A request that can be found by its place.
pub(crate) trait Placed {
    fn place(&self) -> RequestPlace;
}

/// Queue of requests of clients.
pub(crate) struct RequestQueue<T> {
    demand: ClassQueue<T>,
    background: ClassQueue<T>,
    /// `None` if the number of requests in service is unlimited.
    slots: Option<Slots>,
}

/// Service slots, which limit the requests that have been taken out and are not done.
struct Slots {
    /// Number of slots.
    all: usize,
    free: usize,
    /// Slots in use by each client that has any.
    of_client: BTreeMap<NodeId, usize>,
}

/// One in this number of the service slots, and of the threads of a pool, is for demand only.
pub(crate) const KEPT_FOR_DEMAND: usize = 4;

impl<T: Placed> RequestQueue<T> {
    /// Creates a queue with at most `slots` requests in service, if limited.
    pub(crate) fn new(sharing: Sharing, slots: Option<usize>) -> Self {
        let slots = slots.map(|slots| Slots { all: slots, free: slots, of_client: BTreeMap::new() });
        let (demand, mut background) = (ClassQueue::new(sharing), ClassQueue::new(sharing));
        if let ClassQueue::Fair(line) = &mut background {
            line.index = Some(BTreeSet::new());
        }
        RequestQueue { demand, background, slots }
    }

    pub(crate) fn len(&self) -> usize {
        self.demand.len() + self.background.len()
    }

    /// Returns the number of waiting requests, demand or background.
    pub(crate) fn len_of_class(&self, class: Class) -> usize {
        match class {
            Class::Control | Class::Demand => self.demand.len(),
            Class::Background => self.background.len(),
        }
    }

    /// True if one more request of a client may wait. With fair sharing a client may have a few in any case,
    /// and beyond these no more than there is room left for.
    pub(crate) fn has_room_for(&self, client: NodeId) -> bool {
        let waiting = self.demand.len_of(client) + self.background.len_of(client);
        waiting < WAITING_MIN.max(WAITING_MAX.saturating_sub(self.len()))
    }

    /// Adds a request of `client` that moves `bytes`.
    pub(crate) fn push(&mut self, class: Class, client: NodeId, bytes: u64, request: T) {
        self.line(class).push(client, bytes, request);
    }

    /// Takes out the request to serve next; a background request only if `background_allowed`.
    #[inline]
    pub(crate) fn pop(&mut self, background_allowed: bool) -> Option<(Class, T)> {
        if let Some(request) = self.demand.pop(&mut self.slots, Class::Demand) {
            return Some((Class::Demand, request));
        }
        if !background_allowed {
            return None;
        }
        self.background.pop(&mut self.slots, Class::Background).map(|request| (Class::Background, request))
    }

    /// Frees the slot of a request of `client` whose answer has left. Returns an upper limit of the requests
    /// that can be taken out now.
    pub(crate) fn done(&mut self, client: NodeId) -> usize {
        let Some(slots) = &mut self.slots else { return 0 };
        slots.put_back(client);
        // One for the free slot; and one more of this client, which now has one slot less, if another client
        // takes the free slot.
        let demand = self.demand.count_of_next(slots, Class::Demand, 2);
        demand + self.background.count_of_next(slots, Class::Background, 2 - demand)
    }

    /// Promotes the background requests for these offsets of a stripe to demand, behind the present ones.
    /// Returns their number.
    pub(crate) fn promote(&mut self, file: FileId, stripe: u32, offsets: Range<u64>) -> usize {
        let wanted = self.background.take_out((file, stripe, offsets.start)..(file, stripe, offsets.end));
        let count = wanted.len();
        for (client, bytes, request) in wanted {
            self.demand.push(client, bytes, request);
        }
        count
    }

    /// Drops the waiting requests of a client.
    pub(crate) fn forget(&mut self, client: NodeId) {
        self.demand.forget(client);
        self.background.forget(client);
    }

    fn line(&mut self, class: Class) -> &mut ClassQueue<T> {
        match class {
            Class::Control | Class::Demand => &mut self.demand,
            Class::Background => &mut self.background,
        }
    }
}

impl Slots {
    /// True if a client may take one more slot for a request of this class.
    fn allow(&self, client: NodeId, class: Class) -> bool {
        let free = match class {
            Class::Control | Class::Demand => self.free,
            Class::Background => self.free.saturating_sub(self.all / KEPT_FOR_DEMAND),
        };
        self.of_client.get(&client).copied().unwrap_or(0) < free
    }

    fn take(&mut self, client: NodeId) {
        self.free -= 1;
        *self.of_client.entry(client).or_default() += 1;
    }

    fn put_back(&mut self, client: NodeId) {
        if let Entry::Occupied(mut there) = self.of_client.entry(client) {
            self.free += 1;
            *there.get_mut() -= 1;
            if *there.get() == 0 {
                there.remove();
            }
        }
    }
}

/// True if a client may have one more request of this class in service.
fn may_have_one(slots: &Option<Slots>, client: NodeId, class: Class) -> bool {
    slots.as_ref().is_none_or(|slots| slots.allow(client, class))
}

/// Number of requests that a client may have waiting, however many others have.
const WAITING_MIN: usize = 1024;

/// Limit of the waiting requests of all clients together, apart from the minimum of each.
const WAITING_MAX: usize = 65_536;

/// The requests of one class.
enum ClassQueue<T> {
    Arrival(VecDeque<(NodeId, u64, T)>),
    Fair(FairQueue<T>),
}

struct FairQueue<T> {
    /// The clients with waiting requests, by the virtual start of their first request, then by order of
    /// arrival.
    order: BTreeMap<(u64, u64), NodeId>,
    /// Queues by client. Clients without waiting requests may be missing.
    clients: BTreeMap<NodeId, ClientLine<T>>,
    waiting: usize,
    now: u64,
    arrivals: u64,
    /// Index of the waiting requests by place, client and sequence number, if they must be found by place.
    index: Option<BTreeSet<(RequestPlace, NodeId, u64)>>,
}

/// The requests of a client.
struct ClientLine<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Virtual end of the last request that was taken out.
    end: u64,
}

struct Waiting<T> {
    /// Virtual time of arrival, and sequence number among all requests.
    came: u64,
    arrival: u64,
    bytes: u64,
    request: T,
}

/// Number of clients above which those without waiting requests are dropped.
const CLIENTS_MAX: usize = 1024;

impl<T: Placed> ClassQueue<T> {
    fn new(sharing: Sharing) -> Self {
        match sharing {
            Sharing::Arrival => ClassQueue::Arrival(VecDeque::new()),
            Sharing::Fair => ClassQueue::Fair(FairQueue::default()),
        }
    }

    fn len(&self) -> usize {
        match self {
            ClassQueue::Arrival(queue) => queue.len(),
            ClassQueue::Fair(line) => line.waiting,
        }
    }

    /// Returns the number of waiting requests of a client. In order of arrival they are not counted: 0.
    fn len_of(&self, client: NodeId) -> usize {
        match self {
            ClassQueue::Arrival(_) => 0,
            ClassQueue::Fair(line) => line.clients.get(&client).map_or(0, |line| line.waiting.len()),
        }
    }

    fn push(&mut self, client: NodeId, bytes: u64, request: T) {
        match self {
            ClassQueue::Arrival(queue) => queue.push_back((client, bytes, request)),
            ClassQueue::Fair(line) => line.push(client, bytes, request),
        }
    }

    #[inline]
    fn pop(&mut self, slots: &mut Option<Slots>, class: Class) -> Option<T> {
        // Without a free slot no request can have one: this saves a scan of all waiting requests.
        if slots.as_ref().is_some_and(|slots| slots.free == 0) {
            return None;
        }
        let (client, request) = match self {
            ClassQueue::Arrival(queue) => {
                let may = |(client, ..): &(NodeId, u64, T)| may_have_one(slots, *client, class);
                let (client, _, request) = queue.remove(queue.iter().position(may)?)?;
                (client, request)
            }
            ClassQueue::Fair(line) => line.pop(slots, class)?,
        };
        if let Some(slots) = slots {
            slots.take(client);
        }
        Some(request)
    }

    /// Returns the number of requests that could be taken out now, at most `most`.
    fn count_of_next(&self, slots: &Slots, class: Class, most: usize) -> usize {
        match self {
            _ if slots.free == 0 => 0,
            ClassQueue::Arrival(queue) => {
                queue.iter().filter(|(client, ..)| slots.allow(*client, class)).take(most).count()
            }
            ClassQueue::Fair(line) => {
                line.order.values().filter(|&&client| slots.allow(client, class)).take(most).count()
            }
        }
    }

    fn forget(&mut self, client: NodeId) {
        match self {
            ClassQueue::Arrival(queue) => queue.retain(|entry| entry.0 != client),
            ClassQueue::Fair(line) => line.forget(client),
        }
    }

    fn take_out(&mut self, places: Range<RequestPlace>) -> Vec<(NodeId, u64, T)> {
        match self {
            ClassQueue::Arrival(queue) => {
                let is_wanted = |entry: &(NodeId, u64, T)| places.contains(&entry.2.place());
                let (wanted, rest) = std::mem::take(queue).into_iter().partition(is_wanted);
                *queue = rest;
                Vec::from_iter::<VecDeque<_>>(wanted)
            }
            ClassQueue::Fair(line) => line.take_out(places),
        }
    }
}

impl<T: Placed> FairQueue<T> {
    fn push(&mut self, client: NodeId, bytes: u64, request: T) {
        self.arrivals += 1;
        self.waiting += 1;
        let (came, arrival) = (self.now, self.arrivals);
        if let Some(index) = &mut self.index {
            index.insert((request.place(), client, arrival));
        }
        let line = self.clients.entry(client).or_default();
        line.waiting.push_back(Waiting { came, arrival, bytes, request });
        if line.waiting.len() == 1 {
            self.put_in_order(client);
        }
    }

    fn pop(&mut self, slots: &Option<Slots>, class: Class) -> Option<(NodeId, T)> {
        // A client that is passed over has at least as many slots as are free, so if any are free, such
        // clients are few.
        let is_next = |(_, client): &(&(u64, u64), &NodeId)| may_have_one(slots, **client, class);
        let place = *self.order.iter().find(is_next)?.0;
        let client = self.order.remove(&place).expect("just found");
        let line = self.clients.get_mut(&client).expect("what is in order waits");
        let first = line.waiting.pop_front().expect("what is in order waits");
        let Waiting { bytes, arrival, request, .. } = first;
        if let Some(index) = &mut self.index {
            index.remove(&(request.place(), client, arrival));
        }
        // A client that was held back earns no credit: virtual time never goes back.
        self.now = self.now.max(place.0);
        self.waiting -= 1;
        // Count even a request for 0 bytes.
        line.end = self.now.saturating_add(bytes.max(1));
        self.put_in_order(client);
        if self.clients.len() > CLIENTS_MAX {
            self.clients.retain(|_, line| !line.is_over(self.now));
        }
        Some((client, request))
    }

    fn forget(&mut self, client: NodeId) {
        let Some(line) = self.clients.remove(&client) else { return };
        if let Some(first) = line.first() {
            self.order.remove(&first);
        }
        self.waiting -= line.waiting.len();
        if let Some(index) = &mut self.index {
            for entry in line.waiting {
                index.remove(&(entry.request.place(), client, entry.arrival));
            }
        }
    }

    fn take_out(&mut self, places: Range<RequestPlace>) -> Vec<(NodeId, u64, T)> {
        let index = self.index.iter_mut().flat_map(|index| {
            let first = (places.start, NodeId(0), 0);
            index.range(first..(places.end, NodeId(0), 0)).copied().collect::<Vec<_>>()
        });
        // In order of arrival.
        let mut found: Vec<_> = index.map(|(place, client, arrival)| (arrival, client, place)).collect();
        found.sort_unstable();
        found.into_iter().map(|(arrival, client, place)| self.take_out_one(place, client, arrival)).collect()
    }

    fn take_out_one(&mut self, place: RequestPlace, client: NodeId, arrival: u64) -> (NodeId, u64, T) {
        if let Some(index) = &mut self.index {
            index.remove(&(place, client, arrival));
        }
        let line = self.clients.get_mut(&client).expect("what is in the index waits");
        let first = line.first();
        let at = line.waiting.binary_search_by_key(&arrival, |entry| entry.arrival);
        let out = line.waiting.remove(at.expect("what is in the index waits")).expect("just found");
        self.waiting -= 1;
        if let Some(first) = first.filter(|&(_, first)| first == arrival) {
            self.order.remove(&first);
            self.put_in_order(client);
        }
        (client, out.bytes, out.request)
    }

    /// Enters the first waiting request of a client into the order, if it has one.
    fn put_in_order(&mut self, client: NodeId) {
        if let Some(first) = self.clients[&client].first() {
            self.order.insert(first, client);
        }
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        let (order, clients) = (BTreeMap::new(), BTreeMap::new());
        FairQueue { order, clients, waiting: 0, now: 0, arrivals: 0, index: None }
    }
}

impl<T> Default for ClientLine<T> {
    fn default() -> Self {
        ClientLine { waiting: VecDeque::new(), end: 0 }
    }
}

impl<T> ClientLine<T> {
    /// Returns the position of its first waiting request in the order, if it has one.
    fn first(&self) -> Option<(u64, u64)> {
        self.waiting.front().map(|first| (first.came.max(self.end), first.arrival))
    }

    /// True if it has no more information than a new one.
    fn is_over(&self, now: u64) -> bool {
        self.waiting.is_empty() && self.end <= now
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 64;

    /// Requests of tests are numbers, which are their places, too.
    impl Placed for u64 {
        fn place(&self) -> RequestPlace {
            (FileId(1), 0, *self)
        }
    }

    impl<T: Copy> Placed for (u64, T) {
        fn place(&self) -> RequestPlace {
            (FileId(self.0), 0, 0)
        }
    }

    fn served<T: Placed>(queue: &mut RequestQueue<T>, count: usize) -> Vec<T> {
        (0..count).filter_map(|_| queue.pop(true)).map(|(_, request)| request).collect()
    }

    #[test]
    fn sharing_by_arrival_serves_requests_in_order_of_arrival() {
        let mut queue = RequestQueue::new(Sharing::Arrival, None);
        for number in 0..10 {
            queue.push(Class::Demand, NodeId(number / 9), BLOCK, number);
        }
        assert_eq!(served(&mut queue, 20), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn one_client_with_thousands_of_requests_does_not_starve_another() {
        let mut queue = RequestQueue::new(Sharing::Fair, None);
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
        // The requests of each client keep their order.
        assert!(next.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1), "{next:?}");
    }

    #[test]
    fn shares_count_bytes_and_not_requests() {
        let mut queue = RequestQueue::new(Sharing::Fair, None);
        for number in 0..400 {
            queue.push(Class::Demand, NodeId(1), 8 * BLOCK, (1, number));
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let next = served(&mut queue, 90);
        assert_eq!(next.iter().filter(|(client, _)| *client == 1).count(), 10);
    }

    #[test]
    fn an_idle_client_saves_up_no_bandwidth() {
        let mut queue = RequestQueue::new(Sharing::Fair, None);
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
    fn background_requests_follow_demand_and_can_be_held_and_promoted() {
        for sharing in [Sharing::Arrival, Sharing::Fair] {
            let mut queue = RequestQueue::new(sharing, None);
            for number in 0..4 {
                queue.push(Class::Background, NodeId(1), BLOCK, number);
            }
            queue.push(Class::Demand, NodeId(2), BLOCK, 10);
            assert_eq!(queue.pop(false), Some((Class::Demand, 10)));
            assert_eq!(queue.pop(false), None);
            assert_eq!(queue.promote(FileId(1), 0, 2..3), 1);
            assert_eq!((queue.pop(false), queue.len()), (Some((Class::Demand, 2)), 3));
            assert_eq!(served(&mut queue, 9), [0, 1, 3]);
        }
    }

    #[test]
    fn a_client_that_receives_no_replies_gets_half_of_the_free_slots() {
        let mut queue = RequestQueue::new(Sharing::Fair, Some(16));
        for client in 1..=3 {
            for number in 0..20 {
                queue.push(Class::Demand, NodeId(client), BLOCK, (client, number));
            }
            assert_eq!(served(&mut queue, 99).len(), 16 >> client, "client {client}");
        }
        // A client's slots count in all classes.
        queue.push(Class::Background, NodeId(1), BLOCK, (1, 100));
        assert_eq!(served(&mut queue, 99), []);
    }

    #[test]
    fn background_requests_leave_a_quarter_of_the_slots_to_demand() {
        let mut queue = RequestQueue::new(Sharing::Fair, Some(16));
        for client in 0..100 {
            queue.push(Class::Background, NodeId(client), BLOCK, client);
            queue.push(Class::Background, NodeId(client), BLOCK, client);
        }
        assert_eq!(served(&mut queue, 999).len(), 16 - 16 / KEPT_FOR_DEMAND);
        (0..100).for_each(|client| queue.push(Class::Demand, NodeId(client), BLOCK, 1000 + client));
        let demand = served(&mut queue, 999);
        assert!(demand.len() == 16 / KEPT_FOR_DEMAND && demand.iter().all(|&request| request >= 1000));
    }

    #[test]
    fn promotion_finds_all_waiting_requests_and_clients_keep_their_turns() {
        let mut queue = RequestQueue::new(Sharing::Fair, None);
        for number in 0..40 {
            queue.push(Class::Background, NodeId(number % 4), BLOCK, number / 4);
        }
        assert_eq!(queue.promote(FileId(2), 0, 0..99), 0);
        assert_eq!(queue.promote(FileId(1), 0, 0..2), 8, "the first of all");
        assert_eq!(queue.promote(FileId(1), 0, 5..6), 4);
        assert_eq!(queue.promote(FileId(1), 0, 5..6), 0, "they have been");
        let demand: Vec<u64> = (0..12).filter_map(|_| queue.pop(false)).map(|(_, number)| number).collect();
        assert_eq!((demand.len(), demand.iter().filter(|&&number| number == 5).count()), (12, 4));
        assert_eq!(queue.pop(false), None);
        queue.forget(NodeId(3));
        let rest = served(&mut queue, 99);
        assert_eq!(rest, [2, 3, 4, 6, 7, 8, 9].map(|number| [number; 3]).concat());
        assert_eq!(queue.promote(FileId(1), 0, 0..99), 0);
    }

    #[test]
    fn a_client_with_endless_requests_leaves_queue_space_to_others() {
        let mut queue = RequestQueue::new(Sharing::Fair, Some(16));
        let mut fill = |client| {
            let mut waiting = 0_u64;
            while queue.has_room_for(NodeId(client)) {
                let class = if waiting.is_multiple_of(3) { Class::Background } else { Class::Demand };
                queue.push(class, NodeId(client), BLOCK, waiting);
                waiting += 1;
            }
            waiting as usize
        };
        assert_eq!([1, 2, 3].map(&mut fill), [WAITING_MAX / 2, WAITING_MAX / 4, WAITING_MAX / 8]);
        for client in 4..20 {
            assert!(fill(client) >= WAITING_MIN, "client {client}");
        }
        queue.forget(NodeId(1));
        assert!(queue.has_room_for(NodeId(19)));
    }

    #[test]
    fn only_requests_of_a_forgotten_client_are_dropped() {
        for sharing in [Sharing::Arrival, Sharing::Fair] {
            let mut queue = RequestQueue::new(sharing, None);
            for number in 0..6 {
                let class = if number < 4 { Class::Demand } else { Class::Background };
                queue.push(class, NodeId(number % 2), BLOCK, number);
            }
            queue.forget(NodeId(0));
            queue.forget(NodeId(7));
            assert_eq!(queue.len(), 3);
            queue.push(Class::Demand, NodeId(0), BLOCK, 10);
            let mut next = served(&mut queue, 9);
            next.sort_unstable();
            assert_eq!((next, queue.len()), (vec![1, 3, 5, 10], 0));
        }
    }

    #[test]
    fn a_sent_reply_admits_no_more_requests_than_reported() {
        for slots in 12..20 {
            let mut queue = RequestQueue::new(Sharing::Fair, Some(slots));
            for number in 0..90 {
                queue.push(Class::Demand, NodeId(1), BLOCK, (1, number));
                queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
                queue.push(Class::Background, NodeId(3), BLOCK, (3, number));
            }
            let mut under_way = VecDeque::from(served(&mut queue, 99));
            let mut twice = 0;
            for turn in 0..60 {
                // End sometimes the newest request, and otherwise the oldest.
                let ended = if turn % 3 == 0 { under_way.pop_back() } else { under_way.pop_front() };
                let (client, _) = ended.expect("some are in flight");
                let reported = queue.done(NodeId(client));
                let next = served(&mut queue, 99);
                assert!(next.len() <= reported, "{next:?} of {reported}, {slots} slots");
                twice += usize::from(next.len() == 2);
                under_way.extend(next);
            }
            assert!(twice < 60 && under_way.len() > slots / 2);
        }
        assert_eq!(RequestQueue::<u64>::new(Sharing::Fair, Some(16)).done(NodeId(1)), 0, "no request waits");
    }

    #[test]
    fn a_delayed_client_saves_up_no_bandwidth() {
        let mut queue = RequestQueue::new(Sharing::Fair, Some(2));
        for number in 0..200 {
            queue.push(Class::Demand, NodeId(1), BLOCK, (1, number));
            queue.push(Class::Demand, NodeId(2), BLOCK, (2, number));
        }
        let serve = |queue: &mut RequestQueue<(u64, i32)>| {
            let (client, _) = served(queue, 1)[0];
            queue.done(NodeId(client));
            client
        };
        // The first request stays in service.
        assert_eq!(served(&mut queue, 1), [(1, 0)]);
        assert!((0..50).all(|_| serve(&mut queue) == 2));
        queue.done(NodeId(1));
        let first = (0..20).filter(|_| serve(&mut queue) == 1).count();
        assert!((9..=11).contains(&first), "{first}");
    }

    proptest! {
        #[test]
        fn each_request_is_served_once_in_the_order_of_its_client(
            steps in proptest::collection::vec((0..4_u64, 1..200_u64, 0..3_usize, 0..3_usize), 1..200),
            slots in 1..12_usize,
        ) {
            let mut queue = RequestQueue::new(Sharing::Fair, Some(slots));
            let (mut out, mut pushed, mut under_way) = (Vec::new(), 0, VecDeque::new());
            for (client, bytes, pops, dones) in steps {
                queue.push(Class::Demand, NodeId(client), bytes, (client, pushed));
                pushed += 1;
                let next = served(&mut queue, pops);
                under_way.extend(next.iter().map(|request| request.0));
                out.extend(next);
                for client in under_way.drain(..dones.min(under_way.len())) {
                    queue.done(NodeId(client));
                }
                prop_assert!(under_way.len() <= slots);
                // Each client leaves half: n clients have at most 1 + 2 + 4 + ... < 2^n.
                let clients: BTreeSet<u64> = under_way.iter().copied().collect();
                prop_assert!(under_way.len() < slots || 1 << clients.len() > slots);
            }
            while out.len() < pushed {
                for client in under_way.drain(..) {
                    queue.done(NodeId(client));
                }
                let next = served(&mut queue, 1);
                prop_assert!(next.len() == 1, "a request waits and no slot is taken");
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
