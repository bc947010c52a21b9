//! Selects pages to prefetch: pure state of one open file, without futures.
//!
//! A window of W pages is that of Zhang's PDIOL: while page *i* is used, pages *i*+1 to *i*+W-1 are prefetched. So a
//! window of 1 prefetches nothing.
//!
//! An adaptive window finds W itself. The window opens when pages are used in sequence, further if the application has
//! advised sequential use. Its size doubles when the application had to wait for a page that was in flight already, and
//! is halved when pages were evicted before they were used. The window grows at most once for each window consumed, so
//! that the effect shows before it grows again. To save messages it is refilled only when half of it has been consumed.
//!
//! The window also tracks the pages that a sequential application has passed. If the cache cannot hold the file, these
//! pages are dropped at once. If the file were read once more, Second Chance would have evicted each page before its
//! reuse.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use machine::Class;

/// Distance of prefetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// No prefetching.
    None,
    /// A fixed window of this number of pages, including the one in use.
    Window(u64),
    /// A window that adapts to the application's use and the disks' speed.
    Adaptive,
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prefetch::None => f.pad("none"),
            Prefetch::Window(pages) => pages.fmt(f),
            Prefetch::Adaptive => f.pad("adaptive"),
        }
    }
}

impl FromStr for Prefetch {
    type Err = String;

    /// Parses a number of pages, `adaptive` or `none`; 0 is the same as `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("none", _) | (_, Ok(0)) => Ok(Prefetch::None),
            ("adaptive", _) => Ok(Prefetch::Adaptive),
            (_, Ok(pages)) => Ok(Prefetch::Window(pages)),
            _ => Err(format!(
                "no window {text:?}: expected a number of pages, the one in use among them, adaptive or none"
            )),
        }
    }
}

/// The application's advice on the order of use of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// No advice.
    #[default]
    Unknown,
    Sequential,
    Random,
}

/// Number of pages behind the one in use that do not count as passed: a program may go back a little.
const KEPT_BEHIND: u64 = 8;

/// Factor by which the first adaptive window of a file grows after `Advice::Sequential`, since the pattern need not be
/// detected. That window is requested at demand priority, because all of it will be used. In a merge that opens several
/// files, a disk then reads one long run of each rather than a few pages of each in turn. Later windows of a handle
/// that turns out to read at random are not requested at demand priority.
const SEQUENTIAL_FACTOR: u64 = 8;

/// Bounds of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Pages of the file.
    pub(super) pages: u64,
    /// Initial pages of an adaptive window: some for each disk.
    pub(super) least: u64,
    /// Maximum pages of an adaptive window.
    pub(super) most: u64,
    /// Half the pages of the cache, the limit of any window.
    pub(super) half: u64,
}

/// The window of one open file.
#[derive(Debug)]
pub(super) struct Window {
    prefetch: Prefetch,
    order: Order,
    /// The last page used.
    last: Option<u64>,
    /// The first page of the current sequential run.
    began: u64,
    /// End of the pages requested in the current sequential run.
    asked: u64,
    /// The pages of the read in progress: from the page in use to the end of the pages requested at demand priority.
    wanted: Range<u64>,
    /// Pages in the adaptive window.
    size: u64,
    /// The window does not grow before this page is used.
    grows_from: u64,
    /// True once the first window has begun.
    has_begun: bool,
    /// True if the first window has just begun, in a file advised to be sequential.
    begins: bool,
    wasted: u64,
}

impl Window {
    pub(super) fn new(prefetch: Prefetch) -> Self {
        Window {
            prefetch,
            order: Order::Unknown,
            last: None,
            began: 0,
            asked: 0,
            wanted: 0..0,
            size: 1,
            grows_from: 0,
            has_begun: false,
            begins: false,
            wasted: 0,
        }
    }

    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Returns true if the page was the last one used: then there is nothing to do.
    pub(super) fn is_at(&self, page: u64) -> bool {
        self.last == Some(page)
    }

    /// Records a read from page `page` to page `through`. Returns the pages after the first to request at demand
    /// priority.
    pub(super) fn want(&mut self, page: u64, through: u64) -> Range<u64> {
        let goes_on = self.wanted.start <= page && page < self.wanted.end;
        let first = if goes_on { self.wanted.end } else { page + 1 };
        self.wanted = page..first.max(through + 1);
        first..self.wanted.end
    }

    /// Records that the pages from `end` on could not be requested.
    pub(super) fn wanted_to(&mut self, end: u64) {
        self.wanted.end = end;
    }

    /// Records the use of `page`; `waited` if it was in flight and had not arrived; `wasted` is the number of pages of
    /// the file dropped unused so far. Returns the pages to prefetch.
    pub(super) fn advance(&mut self, page: u64, waited: bool, wasted: u64, bounds: Bounds) -> Range<u64> {
        let goes_on = match self.last {
            None => page == 0 || self.order == Order::Sequential,
            Some(last) => last <= page && page <= self.asked.max(last + 1),
        };
        (self.last, self.begins) = (Some(page), false);
        if !goes_on {
            self.began = page;
        }
        let size = match self.prefetch {
            _ if self.order == Order::Random => 1,
            Prefetch::None => 1,
            Prefetch::Window(pages) => pages.min(bounds.half),
            Prefetch::Adaptive => self.adapt(page, goes_on, waited, wasted, bounds),
        };
        let first = if goes_on { self.asked.max(page + 1) } else { page + 1 };
        let end = page.saturating_add(size).min(bounds.pages);
        let low = self.prefetch != Prefetch::Adaptive || first <= page.saturating_add(size.div_ceil(2));
        self.asked = first;
        if low { first..end.max(first) } else { first..first }
    }

    /// Returns the class of the requests for the pages of the last [`advance`](Self::advance).
    pub(super) fn class(&self) -> Class {
        if self.begins { Class::Demand } else { Class::Background }
    }

    /// Returns the page that the application has passed with its last use.
    pub(super) fn passed(&self) -> Option<u64> {
        let page = self.last?.checked_sub(KEPT_BEHIND)?;
        (self.order != Order::Random && page >= self.began).then_some(page)
    }

    /// Records that the pages below `end` have been requested.
    pub(super) fn asked_to(&mut self, end: u64) {
        self.asked = end;
    }

    fn adapt(&mut self, page: u64, goes_on: bool, waited: bool, wasted: u64, bounds: Bounds) -> u64 {
        let most = bounds.most.max(1);
        if !goes_on {
            (self.size, self.grows_from) = (1, page);
        } else if self.size == 1 {
            let is_hinted = self.order == Order::Sequential;
            let begin = if is_hinted { SEQUENTIAL_FACTOR * bounds.least } else { bounds.least };
            (self.size, self.grows_from) = (begin, page + begin);
            self.begins = is_hinted && !self.has_begun;
            self.has_begun = true;
        } else if wasted > self.wasted {
            (self.size, self.grows_from) = ((self.size / 2).max(2), self.asked);
        } else if waited && page >= self.grows_from {
            (self.size, self.grows_from) = (self.size * 2, self.asked);
        }
        self.wasted = wasted;
        self.size = self.size.min(most);
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds { pages: 1000, least: 4, most: 64, half: 500 };

    /// Uses a page and requests all pages to prefetch.
    fn use_page(window: &mut Window, page: u64, waited: bool, wasted: u64) -> Range<u64> {
        let range = window.advance(page, waited, wasted, BOUNDS);
        window.asked_to(range.end);
        range
    }

    #[test]
    fn a_window_of_w_reaches_w_minus_1_pages_ahead() {
        let mut window = Window::new(Prefetch::Window(4));
        assert_eq!(use_page(&mut window, 0, false, 0), 1..4);
        assert_eq!(use_page(&mut window, 1, false, 0), 4..5);
        assert_eq!(use_page(&mut window, 500, false, 0), 501..504);
        assert_eq!(use_page(&mut window, 998, false, 0), 999..1000);
    }

    #[test]
    fn a_window_of_1_prefetches_nothing() {
        for prefetch in [Prefetch::None, Prefetch::Window(1), Prefetch::Window(0)] {
            let mut window = Window::new(prefetch);
            assert!((0..9).all(|page| use_page(&mut window, page, true, 0).is_empty()));
        }
    }

    #[test]
    fn passed_pages_trail_the_current_page_of_a_sequential_run() {
        let mut window = Window::new(Prefetch::Window(4));
        let mut passed = |page| {
            use_page(&mut window, page, false, 0);
            window.passed()
        };
        assert!((0..KEPT_BEHIND).all(|page| passed(page).is_none()));
        assert_eq!([passed(KEPT_BEHIND), passed(KEPT_BEHIND + 1)], [Some(0), Some(1)]);
        assert!((500..500 + KEPT_BEHIND).all(|page| passed(page).is_none()), "a new run began at 500");
        assert_eq!(passed(500 + KEPT_BEHIND), Some(500));
        assert_eq!(passed(3), None);
        window.set_order(Order::Random);
        assert!((3..30).all(|page| {
            use_page(&mut window, page, false, 0);
            window.passed().is_none()
        }));
    }

    #[test]
    fn random_access_opens_no_adaptive_window() {
        let mut window = Window::new(Prefetch::Adaptive);
        assert!([7, 99, 3, 500].iter().all(|&page| use_page(&mut window, page, false, 0).is_empty()));
        assert_eq!(use_page(&mut window, 501, false, 0), 502..505);
    }

    #[test]
    fn a_random_hint_prevents_prefetching_and_a_sequential_hint_starts_it() {
        let mut window = Window::new(Prefetch::Window(9));
        window.set_order(Order::Random);
        assert!(use_page(&mut window, 0, false, 0).is_empty());
        let mut window = Window::new(Prefetch::Adaptive);
        window.set_order(Order::Sequential);
        assert_eq!(use_page(&mut window, 40, false, 0), 41..40 + SEQUENTIAL_FACTOR * BOUNDS.least);
        assert_eq!(window.class(), Class::Demand);
        let next = 40 + SEQUENTIAL_FACTOR * BOUNDS.least / 2;
        let later: Vec<_> = (41..=next).map(|page| use_page(&mut window, page, false, 0)).collect();
        assert!(later.iter().any(|pages| !pages.is_empty()), "{later:?}");
        assert_eq!(window.class(), Class::Background, "only the first");
        assert!([500, 501].iter().any(|&page| !use_page(&mut window, page, false, 0).is_empty()));
        assert_eq!(window.class(), Class::Background, "a new run began at 500");
    }

    #[test]
    fn an_adaptive_window_doubles_on_waits_and_halves_on_waste() {
        let mut window = Window::new(Prefetch::Adaptive);
        for page in 0..500 {
            use_page(&mut window, page, true, 0);
        }
        assert_eq!(window.size, BOUNDS.most);
        use_page(&mut window, 500, false, 3);
        assert_eq!(window.size, BOUNDS.most / 2);
        use_page(&mut window, 501, false, 3);
        assert_eq!(window.size, BOUNDS.most / 2, "the same waste counts once");
    }

    #[test]
    fn an_adaptive_window_does_not_grow_without_waits() {
        let mut window = Window::new(Prefetch::Adaptive);
        for page in 0..500 {
            use_page(&mut window, page, false, 0);
        }
        assert_eq!(window.size, BOUNDS.least);
    }

    #[test]
    fn each_page_of_a_request_is_wanted_once() {
        let mut window = Window::new(Prefetch::Adaptive);
        assert_eq!([window.want(3, 9), window.want(4, 9), window.want(5, 12)], [4..10, 10..10, 10..13]);
        assert_eq!([window.want(12, 14), window.want(3, 5)], [13..15, 4..6]);
        window.wanted_to(5);
        assert_eq!([window.want(4, 5), window.want(5, 5)], [5..6, 6..6]);
    }

    proptest! {
        #[test]
        fn each_page_of_a_sequential_run_is_requested_once(
            adaptive: bool, size in 2u64..40, waits in prop::collection::vec(any::<bool>(), 200),
        ) {
            let prefetch = if adaptive { Prefetch::Adaptive } else { Prefetch::Window(size) };
            let (mut window, mut asked) = (Window::new(prefetch), 1);
            for (page, &waited) in (0..).zip(&waits) {
                let range = use_page(&mut window, page, waited, 0);
                prop_assert!(range.is_empty() || range.start == asked, "{range:?} after {asked}");
                asked = asked.max(range.end);
                prop_assert!(asked > page + 1, "the next page is requested");
            }
        }
    }
}
