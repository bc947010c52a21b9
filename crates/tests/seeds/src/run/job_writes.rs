//! Writes of a process through the write cache of its job, as the interfaces make them.
//!
//! A member of a job writes the shared files only through the write cache. Before it sends, persists or closes a file,
//! or accesses records, it flushes the writes of the job and reports where they end.

use std::rc::Rc;

use fs::{Error, OpenTreeFile, TeamTurn, WriteCache};
use machine::{Machine, Memory, Payload};
use sim::SimMachine;

use super::process::{Done, Excused, Process};
use super::{AGAIN, World};
use crate::contents::{Begun, EventTime, Senders, bytes_of};
use crate::schedule::{FileTarget, SHARED};

/// Name of the job.
const JOB: &str = "job";

impl World {
    /// Joins the job, if the client is a member. Retries after a fault.
    pub(super) async fn join_job(
        &self,
        machine: &SimMachine,
        client: usize,
        connected: &fs::Client<SimMachine>,
    ) -> Option<WriteCache<SimMachine>> {
        let job = self.schedule.job.filter(|job| (client as u64) < job.members)?;
        let (member, started) = (format!("client {client}"), machine.now());
        loop {
            let memory = Memory::real(Vec::new());
            match WriteCache::join(connected.clone(), JOB, &member, job.settings(), &memory).await {
                Ok(cache) => return Some(cache),
                Err(error) if !self.has_faults.get() || machine.now() > self.patience_end(started) => {
                    self.break_law("failure", format!("{member}: joining the job: {error}"));
                    return None;
                }
                Err(_) => machine.sleep_until(machine.now() + AGAIN).await,
            }
        }
    }
}

impl Process {
    /// Returns the write cache through which this process writes a file.
    pub(super) fn cache_for(&self, file: usize) -> Option<&WriteCache<SimMachine>> {
        self.write_cache.as_ref().filter(|_| (file as u64) < SHARED)
    }

    /// Returns the write cache if the process has written a file through it.
    fn writer(&self, file: usize, handle: &OpenTreeFile<SimMachine>) -> Option<&WriteCache<SimMachine>> {
        self.cache_for(file).filter(|cache| cache.has_written(handle.paged().file()))
    }

    /// Returns the value of a result of the write cache. After an error the cache keeps its writes, except those to a
    /// removed file.
    fn check_cache<T>(&self, what: &str, result: fs::Result<T>) -> Done<T> {
        if result.as_ref().is_err_and(|error| error.is_remote(fs::FailureKind::Removed)) {
            self.world.files.borrow_mut().iter_mut().for_each(|file| file.lose_cached(self.process));
        }
        self.check(what, result)
    }

    /// Records that a write through the cache begins.
    fn begin_cached(&self, file: usize, stamp: u64, offset: u64, bytes: u64) -> Begun {
        let (process, now) = (self.process, self.now());
        self.world.file(file, |file| {
            let begun = file.begin_write(stamp, process, offset, bytes, now);
            file.note_senders(&begun, Senders::WriteCache);
            begun
        })
    }

    pub(super) async fn write_cached(
        &self,
        cache: &WriteCache<SimMachine>,
        file: usize,
        offset: u64,
        bytes: u64,
    ) -> Done {
        let handle = self.handle(file)?;
        let stamp = self.world.stamp();
        let begun = self.begin_cached(file, stamp, offset, bytes);
        let data = Payload::from(bytes_of(stamp, bytes));
        self.check_cache("a cached write", cache.write(handle.paged().file(), offset, &data).await)?;
        self.note(file, |history, _, now| history.accept(begun, now));
        Ok(())
    }

    /// Writes at the end that this process knows, which other appends may replace.
    pub(super) async fn append_cached(
        &self,
        cache: &WriteCache<SimMachine>,
        file: usize,
        bytes: u64,
    ) -> Done {
        let handle = self.handle(file)?;
        let _turn = handle.paged().turn_to_append().await;
        self.check_file(file, "a query of the size", handle.attributes().await)?;
        self.write_cached(cache, file, self.known_bytes(file, &handle), bytes).await
    }

    /// Returns the size of a file in bytes as far as this process knows it.
    pub(super) fn known_bytes(&self, file: usize, handle: &OpenTreeFile<SimMachine>) -> u64 {
        let own = handle.paged().file();
        let cached = self.writer(file, handle).map_or(0, |cache| cache.end_of(own).max(own.bytes()));
        handle.paged().bytes().max(cached)
    }

    /// Reads a file, including the unflushed writes of this process.
    pub(super) async fn read_bytes(
        &self,
        file: usize,
        handle: &OpenTreeFile<SimMachine>,
        offset: u64,
        bytes: u64,
    ) -> Done<Vec<u8>> {
        let Some(cache) = self.writer(file, handle) else {
            let read = handle.paged().read(offset, bytes).await;
            return Ok(self.check_file(file, "a read", read)?.to_vec().expect("real bytes"));
        };
        let bytes = bytes.min(self.known_bytes(file, handle).saturating_sub(offset));
        let memory = Memory::real(vec![0; bytes as usize]);
        let read = cache.read(handle.paged().file(), offset, bytes, &memory, 0).await;
        let read = self.check_file(file, "a read through the write cache", read)?;
        let mut data = memory.into_vec().expect("real memory");
        data.truncate(read as usize);
        Ok(data)
    }

    /// Flushes the job if this process has unflushed writes to a file, and reports the end of its writes.
    pub(super) async fn flush_cached(&self, file: usize, handle: &OpenTreeFile<SimMachine>) -> Done {
        let Some(cache) = self.writer(file, handle) else { return Ok(()) };
        let started = self.now();
        if cache.end_of(handle.paged().file()) > 0 {
            self.check_cache("a flush of the job", cache.flush().await)?;
        }
        self.report_cached(file, handle, started).await
    }

    /// Flushes the writes to a file as [`flush_cached`](Self::flush_cached) does. If it fails, refuses the collective
    /// operation at `turn`.
    pub(super) async fn flush_cached_at(
        &self,
        turn: Option<&TeamTurn<'_, SimMachine>>,
        file: usize,
        handle: &OpenTreeFile<SimMachine>,
    ) -> Done {
        let flushed = self.flush_cached(file, handle).await;
        if let (Some(turn), Err(Excused)) = (turn, &flushed) {
            turn.refuse(&Error::Invalid("cannot flush the write cache".into())).await;
        }
        flushed
    }

    /// Reports the end of this process's flushed writes to the metadata server. Then other clients can see all writes
    /// that were accepted before `started`.
    async fn report_cached(
        &self,
        file: usize,
        handle: &OpenTreeFile<SimMachine>,
        started: EventTime,
    ) -> Done {
        let end = handle.paged().file().uncounted_end();
        if end > 0 {
            // The metadata server may lose the report.
            self.world.file(file, |file| file.leave_cache(self.process));
            let reported = handle.wrote_past_cache(end, end).await;
            self.check_cache("a report of cached writes", reported)?;
        }
        self.note(file, |history, process, now| history.settle(process, started, now));
        Ok(())
    }

    /// Flushes the writes of the job to a file, or to all files.
    pub(super) async fn flush_job(&self, file: Option<u64>) -> Done {
        let Some(cache) = &self.write_cache else { return Ok(()) };
        let started = self.now();
        let Some(file) = file else {
            self.check_cache("a flush of all files of the job", cache.flush().await)?;
            return self.report_all_cached(started).await;
        };
        let file = self.opened(FileTarget::Shared(file)).await?;
        let handle = self.handle(file)?;
        let own = handle.paged().file();
        self.check_cache("a flush of a file of the job", cache.flush_file(own).await)?;
        // Its own length must belong to this handle.
        cache.end_of(own);
        self.report_cached(file, &handle, started).await
    }

    /// Flushes the writes of this process and leaves the job. A later write joins it again.
    pub(super) async fn leave_job(&self) -> Done {
        let Some(cache) = &self.write_cache else { return Ok(()) };
        let started = self.now();
        self.check_cache("leaving the job", cache.leave().await)?;
        self.report_all_cached(started).await
    }

    async fn report_all_cached(&self, started: EventTime) -> Done {
        for file in 0..SHARED as usize {
            let Ok(handle) = self.handle(file) else { continue };
            let handle: Rc<OpenTreeFile<SimMachine>> = handle;
            if let Some(cache) = self.writer(file, &handle) {
                cache.end_of(handle.paged().file());
                self.report_cached(file, &handle, started).await?;
            }
        }
        Ok(())
    }
}
