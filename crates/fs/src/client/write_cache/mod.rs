//! Write caches: what compute nodes write stays in their memory, and a group flushes it together, disk-directed
//! (Purakayastha, Ellis and Kotz 1995: ENWRICH).
//!
//! ```text
//!  member 0   write write write FULL -> tells the others |                    | write ...
//!  member 1   write write ........... is told            |  flush: directories| write ...
//!  member 2   idle .................. is told            |  to the I/O nodes, | idle
//!  I/O nodes                                             |  Memgets, disks    |
//! ```
//!
//! - `log.rs`: what has been written, and whether there is room for more
//! - this file: writing, and when and how the group flushes
//!
//! A write copies its data behind those of the write before and notes an entry: no message, no file block, no look at
//! what is there. A flush is a collective operation on listed stretches ([`Client::write_listed`]) in which all members
//! take part, whatever they are doing: a task of their own does it. While it lasts, whoever writes waits.

mod log;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use machine::{Condition, InFlight, Machine, Memory, Payload, Work};

pub use log::{Division, ENTRY_BYTES, Section};

use super::{Client, ClientInner, File, FileEntries, Group, ListedSettings, Moved};
use crate::endpoint::Mailbox;
use crate::error::{Error, Failure, Result};
use crate::protocol::{Reply, Request};
use log::Log;

/// How a write cache works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteCacheSettings {
    /// Memory of each member for data and directory together, in bytes.
    pub bytes: u64,
    /// How that is divided.
    pub division: Division,
    /// Whether the pieces that an I/O node fetches of a member for a block travel together.
    pub queued: bool,
}

/// The least memory of a write cache, in bytes.
const BYTES_MIN: u64 = 4096;

impl WriteCacheSettings {
    /// That of the ENWRICH report: one mebibyte, of which a tenth is the directory's, and a Memget for each piece.
    pub fn report() -> Self {
        WriteCacheSettings { bytes: 1 << 20, division: Division::Fixed { directory: 0.1 }, queued: false }
    }

    /// Refuses a cache that could take nothing.
    pub fn check(&self) -> Result<()> {
        if self.bytes < BYTES_MIN {
            let why = format!("a write cache of {} bytes: it needs {BYTES_MIN}", self.bytes);
            return Err(Error::Invalid(why).into());
        }
        match self.division {
            Division::Fixed { directory } if !(0.01..=0.99).contains(&directory) => {
                let why = format!("a directory that is {directory} of the write cache: use 0.01 to 0.99");
                Err(Error::Invalid(why).into())
            }
            _ => Ok(()),
        }
    }
}

/// A compute node's part of the write cache of a group. Cloning gives another handle on the same.
pub struct WriteCache<M: Machine> {
    inner: Rc<Inner<M>>,
}

impl<M: Machine> Clone for WriteCache<M> {
    fn clone(&self) -> Self {
        WriteCache { inner: self.inner.clone() }
    }
}

pub(super) struct Inner<M: Machine> {
    client: Client<M>,
    settings: WriteCacheSettings,
    /// The members, for flushes: all of them do these in the same order.
    flush_group: Group,
    /// The same members, for what they do at the end.
    end_group: Group,
    log: RefCell<Log>,
    data: Memory,
    /// Files that have been written to, by their index in the log.
    files: RefCell<Vec<File<M>>>,
    flushes: Flushes,
    /// Writes whose data are on their way into the log.
    appends: InFlight,
    /// Why a flush failed; what the log holds since then stays in it until one succeeds.
    failure: RefCell<Option<Box<Error>>>,
    /// Which flushes this member has asked for, and which section was full.
    causes: RefCell<Vec<(u32, Section)>>,
    /// What each flush has moved, as far as this member knows.
    moved: RefCell<Vec<Moved>>,
}

/// How far the flushes of a group are, at one member.
#[derive(Default)]
struct Flushes {
    /// Number of flushes that are over, successful or not.
    over: Cell<u32>,
    /// Number of flushes that somebody wants.
    wanted: Cell<u32>,
    /// Whether a task is at one.
    running: Cell<bool>,
    changed: Condition,
}

impl<M: Machine> WriteCache<M> {
    /// Makes this node's part of the write cache of a group, which is used for nothing else. Its memory is of the same
    /// kind as `kind`, real or phantom.
    ///
    /// Nobody may write before all members have theirs: see [`ready`](Self::ready).
    pub fn new(
        client: Client<M>,
        group: Group,
        settings: WriteCacheSettings,
        kind: &Memory,
    ) -> Result<WriteCache<M>> {
        settings.check()?;
        let log = Log::new(settings.bytes, settings.division);
        let end_group = Group::new(!group.id, group.members.to_vec(), group.rank);
        let inner = Rc::new(Inner {
            settings,
            data: kind.another(log.data_capacity()),
            log: RefCell::new(log),
            flush_group: group,
            end_group,
            files: RefCell::default(),
            flushes: Flushes::default(),
            appends: InFlight::new(),
            failure: RefCell::default(),
            causes: RefCell::default(),
            moved: RefCell::default(),
            client,
        });
        let caches = &inner.client.inner.write_caches;
        caches.borrow_mut().insert(inner.flush_group.id, Rc::downgrade(&inner));
        Ok(WriteCache { inner })
    }

    /// Waits until all members of the group have made theirs.
    pub async fn ready(&self) -> Result<()> {
        self.inner.client.barrier(&self.inner.end_group).await
    }

    /// Writes `data` to the file at `offset`: into this node's memory, to be flushed with what the other members write.
    ///
    /// Waits while the group flushes, and has it flush if there is no room. Fails if an earlier flush has failed, once;
    /// the data are in the log then, and the next flush tries again.
    pub async fn write(&self, file: &File<M>, offset: u64, data: &Payload) -> Result<()> {
        let inner = &self.inner;
        if offset.checked_add(data.len()).is_none_or(|end| end > layout::FILE_BYTES_MAX) {
            let why = format!("{} bytes at {offset} reach beyond any file", data.len());
            return Err(Error::Invalid(why).into());
        }
        inner.check()?;
        let (index, striping, machine) = (inner.index_of(file), file.striping(), inner.machine());
        let mut done = 0;
        while done < data.len() {
            inner.while_flushing().await;
            // A flush takes what has been begun with it: one that is asked for while the processor is at it waits.
            let append = inner.appends.begin();
            let room = inner.log.borrow().room_for(striping, offset + done, data.len() - done);
            let bytes = match room {
                Ok(bytes) => bytes,
                Err(section) => {
                    drop(append);
                    let number = inner.flushes.over.get() + 1;
                    inner.causes.borrow_mut().push((number, section));
                    inner.flush().await?;
                    continue;
                }
            };
            // Entry and data at once, so that nobody reads the one without the other.
            let at = inner.log.borrow_mut().append(index, offset + done, bytes, inner.now());
            inner.data.place(at, &data.slice(done..done + bytes));
            machine.compute(Work::AppendEntry).await;
            machine.compute(Work::Copy { bytes }).await;
            done += bytes;
            drop(append);
        }
        Ok(())
    }

    /// Reads `bytes` from `offset` on into `memory` at `at`, what this node has written and not flushed included.
    /// Returns how many there were: fewer at the end.
    pub async fn read(
        &self,
        file: &File<M>,
        offset: u64,
        bytes: u64,
        memory: &Memory,
        at: u64,
    ) -> Result<u64> {
        let inner = &self.inner;
        inner.while_flushing().await;
        let mut read = file.read(offset, bytes, memory, at).await?;
        // A flush meanwhile has brought to the disks what the log held.
        let index = inner.index_of(file);
        for entry in inner.log.borrow().entries_of(index) {
            let (first, last) = (entry.offset.max(offset), entry.extent().end().min(offset + bytes));
            if first < last {
                let data = inner.data.get(entry.at + (first - entry.offset), last - first);
                if offset + read < first {
                    memory.place(at + read, &Payload::zeros(first - offset - read));
                }
                memory.place(at + (first - offset), &data);
                read = read.max(last - offset);
            }
        }
        Ok(read)
    }

    /// Has the group flush. When this completes, all that the members had written before is on the media.
    pub async fn flush(&self) -> Result<()> {
        self.inner.check()?;
        self.inner.while_flushing().await;
        self.inner.flush().await
    }

    /// Waits for all members to call this, and flushes what is left. Until then this member takes part in the flushes
    /// of the others.
    pub async fn finish(&self) -> Result<()> {
        let inner = &self.inner;
        let failed = inner.check();
        inner.client.barrier_with(&inner.end_group, failed).await?;
        // All have come, so nobody asks for another one; one may be about to end here.
        inner.while_flushing().await;
        inner.want(inner.flushes.over.get() + 1);
        inner.while_flushing().await;
        inner.check()
    }

    /// Writes what this member has not flushed, without the others: for when one of them is gone, so that the group
    /// cannot flush any more.
    pub async fn flush_alone(&self) -> Result<()> {
        let inner = &self.inner;
        inner.while_flushing().await;
        let node = inner.machine().node();
        let alone = Group::new(inner.flush_group.id ^ node.0.rotate_left(32), vec![node], 0);
        let moved = inner.write_log(&alone).await?;
        inner.moved.borrow_mut().push(moved);
        Ok(())
    }

    /// How many flushes of the group are over, successful or not.
    pub fn flushes(&self) -> u32 {
        self.inner.flushes.over.get()
    }

    /// Which flushes, by their numbers from 1 on, this member has asked for, because which section was full.
    pub fn causes(&self) -> Vec<(u32, Section)> {
        self.inner.causes.borrow().clone()
    }

    /// What each flush has moved so far, as far as this member knows: only the first of the group knows all.
    pub fn moved(&self) -> Vec<Moved> {
        self.inner.moved.borrow().clone()
    }
}

impl<M: Machine> Inner<M> {
    fn machine(&self) -> &M {
        self.client.inner.endpoint.machine()
    }

    /// Fails if a flush has failed of which nobody has been told.
    fn check(&self) -> Result<()> {
        self.failure.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// When a write is made. Of one member's writes the later has the later time (see [`Log::append`]); of different
    /// members' as far as their clocks agree.
    fn now(&self) -> u64 {
        self.machine().date().as_nanos()
    }

    fn index_of(&self, file: &File<M>) -> usize {
        let mut files = self.files.borrow_mut();
        let found = files.iter().position(|known| known.id() == file.id());
        found.unwrap_or_else(|| {
            files.push(file.clone());
            files.len() - 1
        })
    }

    async fn while_flushing(&self) {
        while self.flushes.is_on() {
            self.flushes.changed.wait().await;
        }
    }

    /// Has the group do one more flush, and waits for it.
    async fn flush(self: &Rc<Self>) -> Result<()> {
        let number = self.flushes.over.get() + 1;
        self.want(number);
        self.tell_others(number).await?;
        while self.flushes.over.get() < number {
            self.flushes.changed.wait().await;
        }
        self.check()
    }

    /// Tells the other members to take part in a flush.
    async fn tell_others(&self, flush: u32) -> Result<()> {
        let (group, mailbox) = (&self.flush_group, Mailbox::new());
        let others: Vec<_> = group.members.iter().filter(|&&node| node != self.machine().node()).collect();
        for &&node in &others {
            let request = Request::FlushTogether { group: group.id, flush };
            self.client.inner.endpoint.begin(node, request, Payload::empty(), &mailbox, 0).await;
        }
        let mut outcome = Ok(());
        for _ in others {
            outcome = outcome.and(mailbox.next().await.1.map(drop));
        }
        outcome
    }

    /// Notes that so many flushes are wanted, and begins with the next if nobody is at it.
    fn want(self: &Rc<Self>, flush: u32) {
        let flushes = &self.flushes;
        flushes.wanted.set(flushes.wanted.get().max(flush));
        if flushes.is_on() && !flushes.running.replace(true) {
            let cache = self.clone();
            self.machine().spawn("flush", async move {
                while cache.flushes.is_on() {
                    cache.take_part().await;
                }
                cache.flushes.running.set(false);
                Ok(())
            });
        }
    }

    /// Writes what the log holds, with the others of a group, and empties it.
    async fn write_log(&self, group: &Group) -> Result<Moved> {
        self.appends.none().await;
        let parts = {
            let (log, files) = (self.log.borrow(), self.files.borrow());
            let part = |(index, file): (usize, &File<M>)| FileEntries {
                file: file.clone(),
                entries: log.entries_of(index).to_vec(),
            };
            files.iter().enumerate().map(part).collect::<Vec<_>>()
        };
        let settings = ListedSettings { presort: true, queued: self.settings.queued };
        let moved = self.client.write_listed(group, &parts, &self.data, settings).await?;
        self.log.borrow_mut().clear();
        Ok(moved)
    }

    /// This member's part of one flush.
    async fn take_part(&self) {
        match self.write_log(&self.flush_group).await {
            Ok(moved) => self.moved.borrow_mut().push(moved),
            Err(error) => {
                self.failure.borrow_mut().get_or_insert(error);
            }
        }
        self.flushes.over.set(self.flushes.over.get() + 1);
        self.flushes.changed.wake_all();
    }
}

impl Flushes {
    fn is_on(&self) -> bool {
        self.over.get() < self.wanted.get()
    }
}

/// The write caches of a client, by group.
pub(super) type WriteCaches<M> = RefCell<BTreeMap<u64, Weak<Inner<M>>>>;

impl<M: Machine> ClientInner<M> {
    /// Takes part in a flush that another member of a group wants.
    pub(super) fn flush_together(
        &self,
        group: u64,
        flush: u32,
    ) -> std::result::Result<(Reply, Payload), Box<Failure>> {
        let cache = self.write_caches.borrow().get(&group).and_then(Weak::upgrade);
        let cache = cache.ok_or_else(|| {
            Box::new(Failure::invalid(format!(
                "a flush of group {group:016x}, whose write cache is not here"
            )))
        })?;
        // Nobody is more than one flush ahead: it takes all members to end one.
        if flush > cache.flushes.over.get() + 2 {
            return Err(Failure::invalid(format!("flush {flush} after {}", cache.flushes.over.get())).into());
        }
        cache.want(flush);
        Ok((Reply::Done, Payload::empty()))
    }
}

impl<M: Machine> Drop for Inner<M> {
    fn drop(&mut self) {
        self.client.inner.write_caches.borrow_mut().remove(&self.flush_group.id);
    }
}
