//! Model of a file on a disk whose power can fail: the system's version, and all possible versions on the medium.
//!
//! The system has the last written contents. For each sector of 512 bytes, the medium has the contents of the last sync
//! or those that the system had at any instant since. Sectors reach the medium in any order, or not at all. Lengths
//! reach it in order, as file systems keep a journal of them. Contents beyond the end, or beyond a cut that has reached
//! the medium, do not return.
//!
//! A failed sync is reported once. The system continues with the last written contents and considers them as written:
//! no later sync brings them to the medium, unless they are written again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::task::Poll;

use compio::buf::IoBuf;

use super::super::file::ObjectFile;
use super::super::layout::SECTOR_BYTES;
use super::Draw;
use crate::bytes::ByteRun;

const SECTOR: u64 = SECTOR_BYTES as u64;

/// Number of sectors that the system may write to the medium together: a page.
const PAGE_SECTORS: u64 = 8;

type Sector = Rc<[u8; SECTOR_BYTES]>;

/// File of the model. A clone is another handle.
#[derive(Clone, Default)]
pub(super) struct ModelFile(Rc<RefCell<State>>);

#[derive(Clone, Default)]
struct State {
    /// Number of changes since the last sync, used as time.
    now: u64,
    /// Versions of each sector: at the last sync and after each change since, with the time.
    sectors: BTreeMap<u64, Vec<(u64, Sector)>>,
    lengths: Vec<(u64, u64)>,
    /// Sectors that a failed sync did not write, as the system has them.
    left_behind: BTreeMap<u64, Sector>,
    /// Times of cuts, and the first sectors that they removed completely.
    cuts: Vec<(u64, u64)>,
    power_fails_after: Option<u64>,
    full_after: Option<u64>,
    /// Source for the sectors that the next sync does not write, if it is to fail.
    failing_sync: Option<Draw>,
    has_failed_sync: bool,
}

/// Changes that have reached the medium when the power fails.
#[derive(Clone, Copy, Debug)]
enum Reached {
    Nothing,
    Everything,
    AllUntil(u64),
    PagesInAnyOrder,
    SectorsInAnyOrder,
}

impl ModelFile {
    pub(super) fn of(contents: &[u8]) -> Self {
        let file = ModelFile::default();
        file.0.borrow_mut().put(0, contents);
        file.0.borrow_mut().settle();
        file
    }

    /// Creates a file with these contents, extended to `bytes`; nothing has to be on the medium yet.
    pub(super) fn unsettled(contents: &[u8], bytes: u64) -> Self {
        let mut state = State { lengths: vec![(0, 0)], now: 1, ..State::default() };
        state.put(0, contents);
        state.now += 1;
        state.set_len(bytes);
        ModelFile(Rc::new(RefCell::new(state)))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.borrow().bytes()
    }

    /// Returns the complete contents.
    pub(super) fn contents(&self) -> Vec<u8> {
        let mut contents = vec![0; self.bytes() as usize];
        self.read_exact_at(&mut contents, 0).expect("the range is within the file");
        contents
    }

    /// Makes the power fail after `changes` more changes and syncs, during the next one.
    pub(super) fn fail_power_after(&self, changes: u64) {
        self.0.borrow_mut().power_fails_after = Some(changes);
    }

    /// Makes the medium full, once, after `changes` more changes.
    pub(super) fn be_full_after(&self, changes: u64) {
        self.0.borrow_mut().full_after = Some(changes);
    }

    /// Makes the next sync fail.
    pub(super) fn fail_sync(&self, draw: &mut Draw) {
        self.0.borrow_mut().failing_sync = Some(Draw(draw.next()));
    }

    /// Returns true if a sync has failed.
    pub(super) fn has_failed_sync(&self) -> bool {
        self.0.borrow().has_failed_sync
    }

    pub(super) fn has_power(&self) -> bool {
        self.0.borrow().power_fails_after != Some(0)
    }

    /// Returns the file as found when the power is back.
    pub(super) fn after_power_cut(&self, draw: &mut Draw) -> ModelFile {
        let state = self.0.borrow();
        let reached = match draw.below(8) {
            0 => Reached::Nothing,
            1 => Reached::Everything,
            2 => Reached::AllUntil(draw.up_to(state.now)),
            3..=5 => Reached::PagesInAnyOrder,
            _ => Reached::SectorsInAnyOrder,
        };
        ModelFile(Rc::new(RefCell::new(state.on_medium(reached, draw))))
    }

    /// Returns the file as another process finds it after this one has been killed.
    pub(super) fn after_kill(&self) -> ModelFile {
        let state = State { power_fails_after: None, full_after: None, ..self.0.borrow().clone() };
        ModelFile(Rc::new(RefCell::new(state)))
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.check_power()?;
        if let Some(0) = state.full_after {
            state.full_after = None;
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.full_after = state.full_after.map(|changes| changes - 1);
        state.now += 1;
        change(&mut state);
        state.use_power()
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.lengths.last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Counts one change or sync towards the power failure; fails if it was the last.
    fn use_power(&mut self) -> io::Result<()> {
        self.power_fails_after = self.power_fails_after.map(|changes| changes - 1);
        self.check_power()
    }

    fn check_power(&self) -> io::Result<()> {
        if self.power_fails_after == Some(0) { Err(io::Error::other("the power has failed")) } else { Ok(()) }
    }

    fn sector(&self, number: u64) -> [u8; SECTOR_BYTES] {
        let written = || self.sectors.get(&number)?.last().map(|(_, sector)| sector);
        self.left_behind.get(&number).or_else(written).map_or([0; SECTOR_BYTES], |sector| **sector)
    }

    fn set_sector(&mut self, number: u64, sector: [u8; SECTOR_BYTES]) {
        let zeros = || vec![(0, Rc::new([0; SECTOR_BYTES]))];
        self.left_behind.remove(&number);
        self.sectors.entry(number).or_insert_with(zeros).push((self.now, Rc::new(sector)));
    }

    fn put(&mut self, position: u64, mut bytes: &[u8]) {
        let mut here = position;
        while !bytes.is_empty() {
            let within = (here % SECTOR) as usize;
            let part = bytes.len().min(SECTOR_BYTES - within);
            let mut sector = self.sector(here / SECTOR);
            sector[within..within + part].copy_from_slice(&bytes[..part]);
            self.set_sector(here / SECTOR, sector);
            (here, bytes) = (here + part as u64, &bytes[part..]);
        }
        let length = self.bytes().max(here);
        self.lengths.push((self.now, length));
    }

    fn set_len(&mut self, bytes: u64) {
        if bytes < self.bytes() {
            self.clear_behind(bytes);
            let first = bytes.div_ceil(SECTOR);
            self.left_behind.split_off(&first);
            let behind: Vec<u64> = self.sectors.range(first..).map(|(number, _)| *number).collect();
            behind.into_iter().for_each(|number| self.set_sector(number, [0; SECTOR_BYTES]));
            self.cuts.push((self.now, first));
        }
        self.lengths.push((self.now, bytes));
    }

    /// Writes everything to the medium.
    fn settle(&mut self) {
        for versions in self.sectors.values_mut() {
            let newest = versions.pop().expect("there is one");
            *versions = vec![(0, newest.1)];
        }
        self.lengths = vec![(0, self.bytes())];
        self.cuts.clear();
        self.now = 0;
    }

    /// Considers the writes to some pages since the last sync as written, though they are not on the medium.
    fn fail_sync(&mut self, draw: &mut Draw) {
        let (mut page, mut is_lost) = (u64::MAX, false);
        for (&number, versions) in &mut self.sectors {
            if number / PAGE_SECTORS != page {
                (page, is_lost) = (number / PAGE_SECTORS, draw.below(2) == 0);
            }
            if is_lost && let Some((_, newest)) = versions.last() {
                self.left_behind.entry(number).or_insert_with(|| newest.clone());
                // Cuts are in the journal, and therefore survive.
                let is_cut = |at| self.cuts.iter().any(|(cut, first)| *cut == at && *first <= number);
                versions.retain(|(at, _)| *at == 0 || is_cut(*at));
            }
        }
        (self.has_failed_sync, self.full_after) = (true, None);
    }

    fn on_medium(&self, reached: Reached, draw: &mut Draw) -> State {
        let now = self.now;
        let any = |draw: &mut Draw| match reached {
            Reached::Nothing => 0,
            Reached::Everything => now,
            Reached::AllUntil(instant) => instant,
            Reached::PagesInAnyOrder | Reached::SectorsInAnyOrder => draw.up_to(now),
        };
        let journal = any(draw);
        let length = self.lengths.iter().rev().find(|(at, _)| *at <= journal).map_or(0, |(_, bytes)| *bytes);
        let (mut page, mut of_page) = (u64::MAX, 0);
        let mut found = State { lengths: vec![(0, length)], ..State::default() };
        for (&number, versions) in &self.sectors {
            if number / PAGE_SECTORS != page || matches!(reached, Reached::SectorsInAnyOrder) {
                (page, of_page) = (number / PAGE_SECTORS, any(draw));
            }
            let cuts = || self.cuts.iter().filter(|(_, first)| *first <= number).map(|(cut, _)| *cut);
            let instant = cuts().filter(|cut| *cut <= journal).fold(of_page, u64::max);
            let is_made = |at: u64| at <= instant && !cuts().any(|cut| cut == at && cut > journal);
            let newest = versions.iter().rev().find(|(at, _)| is_made(*at));
            if number * SECTOR < length
                && let Some((_, sector)) = newest
            {
                found.sectors.insert(number, vec![(0, sector.clone())]);
            }
        }
        found.clear_behind(length);
        found
    }

    /// Clears the last sector beyond the end, like a file system when the file grows.
    fn clear_behind(&mut self, bytes: u64) {
        let within = (bytes % SECTOR) as usize;
        if within > 0 {
            let mut sector = self.sector(bytes / SECTOR);
            sector[within..].fill(0);
            self.set_sector(bytes / SECTOR, sector);
        }
    }
}

/// Lets other tasks run once.
async fn pause() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl FileExt for ModelFile {
    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        let state = self.0.borrow();
        let bytes = state.bytes().saturating_sub(position).min(into.len() as u64) as usize;
        let mut done = 0;
        while done < bytes {
            let here = position + done as u64;
            let within = (here % SECTOR) as usize;
            let part = (bytes - done).min(SECTOR_BYTES - within);
            let sector = state.sector(here / SECTOR);
            into[done..done + part].copy_from_slice(&sector[within..within + part]);
            done += part;
        }
        Ok(bytes)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ObjectFile for ModelFile {
    async fn fill(&self, mut memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>> {
        pause().await;
        let begin = memory.len();
        memory.resize(until, 0);
        let read = self.read_at(&mut memory[begin..], position)?;
        memory.truncate(begin + read);
        Ok(memory)
    }

    async fn write(&self, runs: Vec<ByteRun>, position: u64) -> io::Result<()> {
        pause().await;
        let bytes = runs.iter().flat_map(|run| run.as_init()).copied().collect::<Vec<u8>>();
        self.change(|state| state.put(position, &bytes))
    }

    async fn clear(&self, range: Range<u64>) -> io::Result<()> {
        pause().await;
        self.change(|state| state.put(range.start, &vec![0; (range.end - range.start) as usize]))
    }

    async fn set_len(&self, bytes: u64) -> io::Result<()> {
        pause().await;
        self.change(|state| state.set_len(bytes))
    }

    async fn data_after(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        Ok(Some(position..u64::MAX))
    }

    async fn sync(&self) -> io::Result<()> {
        pause().await;
        let mut state = self.0.borrow_mut();
        state.check_power()?;
        state.use_power()?;
        if let Some(mut draw) = state.failing_sync.take() {
            state.fail_sync(&mut draw);
            return Err(io::Error::other("the medium has failed"));
        }
        state.settle();
        Ok(())
    }

    fn write_back(&self, _: Range<u64>) {}
}
