//! Accesses of a process to records, alone and collectively.

use fs::{OpenTreeFile, SelectedSettings, TeamMembership, TeamStep};
use layout::{Extent, Selection};
use machine::Memory;
use sim::SimMachine;

use super::process::{Done, Process};
use super::selected_settings;
use crate::contents::{ReadCall, Senders, bytes_of};
use crate::schedule::{Fault, FileTarget, StridedRecords};

/// Records of a process in an open file, and the team that accesses the file together, if any.
struct Access<'a> {
    team: Option<&'a TeamMembership<SimMachine>>,
    file: usize,
    handle: &'a OpenTreeFile<SimMachine>,
    selection: Selection,
    offsets: Vec<u64>,
    /// Size of a record in bytes.
    record: u64,
    settings: SelectedSettings,
    /// The clients that may send written bytes.
    senders: Senders,
}

impl<'a> Access<'a> {
    /// Returns the access to records that begin at distances of `stride` bytes.
    fn new(
        team: Option<&'a TeamMembership<SimMachine>>,
        file: usize,
        handle: &'a OpenTreeFile<SimMachine>,
        records: StridedRecords,
        stride: u64,
    ) -> Access<'a> {
        let StridedRecords { offset, record, count, in_two_phases } = records;
        let selection = Selection::vector(Extent::new(offset, record), count, stride).expect("within a file");
        let offsets = (0..count).map(|index| offset + index * stride).collect();
        let senders = match team {
            None => Senders::Writer,
            Some(_) if in_two_phases => Senders::AnyMember,
            Some(_) => Senders::Member,
        };
        let settings = selected_settings(in_two_phases);
        Access { team, file, handle, selection, offsets, record, settings, senders }
    }
}

impl Process {
    /// Takes part in a collective operation of all clients, with a separate team.
    pub(super) async fn together(&self, index: usize) -> Done {
        let _turn = self.joining.take().await;
        let collective = self.world.schedule.collectives[index];
        let file = self.opened(FileTarget::Shared(collective.file)).await?;
        // Another thread may close the file before the team is complete.
        let handle = self.handle(file)?;
        let (rank, size) = (self.client as u64, self.world.schedule.clients.len() as u64);
        let client = self.tree.cache().client().clone();
        let name = format!("collective{index}");
        let team = TeamMembership::form(&client, &name, rank as u32, size as u32).await;
        let team = self.check("forming a team", team)?;
        let StridedRecords { offset, record, .. } = collective.records;
        let records = StridedRecords { offset: offset + record * rank, ..collective.records };
        let access = Access::new(Some(&team), file, &handle, records, record * size);
        let moved = match collective.writes {
            true => self.write_access(access).await,
            false => self.read_access(access).await,
        };
        if collective.syncs && moved.is_ok() {
            let (started, turn) = (self.now(), team.turn(team.next_turn(), TeamStep::Sync).await);
            self.flush_cached_at(Some(&turn), file, &handle).await?;
            let synced = handle.sync_together(&turn).await;
            self.check_file(file, "a sync together", synced)?;
            self.note(file, |history, process, now| history.persist_together(process, started, now));
        }
        moved
    }

    /// Writes records alone.
    pub(super) async fn write_records(&self, target: FileTarget, records: StridedRecords) -> Done {
        let file = self.opened(target).await?;
        let handle = self.handle(file)?;
        self.write_access(Access::new(None, file, &handle, records, 2 * records.record)).await
    }

    /// Reads records alone.
    pub(super) async fn read_records(&self, target: FileTarget, records: StridedRecords) -> Done {
        let file = self.opened(target).await?;
        let handle = self.handle(file)?;
        self.read_access(Access::new(None, file, &handle, records, 2 * records.record)).await
    }

    async fn write_access(&self, access: Access<'_>) -> Done {
        let Access { file, record, settings, .. } = access;
        let (process, now) = (self.process, self.now());
        let (mut begun, mut data) = (Vec::new(), Vec::new());
        for offset in access.offsets {
            let stamp = self.world.stamp();
            begun.push(self.world.file(file, |file| {
                let begun = file.begin_write(stamp, process, offset, record, now);
                file.note_senders(&begun, access.senders);
                begun
            }));
            data.extend(bytes_of(stamp, record));
        }
        let turn = match access.team {
            Some(team) => Some(team.turn(team.next_turn(), TeamStep::write(settings.method)).await),
            None => None,
        };
        self.flush_cached_at(turn.as_ref(), file, access.handle).await?;
        let memory = Memory::real(data);
        let written = access.handle.write_selected(turn.as_ref(), &access.selection, &memory, settings).await;
        self.check_file(file, "a write of records", written)?;
        for begun in begun {
            self.note(file, |history, _, now| history.accept_uncached(begun, now));
        }
        Ok(())
    }

    async fn read_access(&self, access: Access<'_>) -> Done {
        let Access { file, record, settings, .. } = access;
        let memory = Memory::real(vec![0; access.selection.bytes() as usize]);
        let started = self.now();
        let (opened, turn) = match access.team {
            // All members see the writes that any of them has seen.
            Some(team) => (started, Some(team.turn(team.next_turn(), TeamStep::read(settings.method)).await)),
            None => (self.asked(file)?, None),
        };
        self.flush_cached_at(turn.as_ref(), file, access.handle).await?;
        let read = access.handle.read_selected(turn.as_ref(), &access.selection, &memory, settings).await;
        let bytes = self.check_file(file, "a read of records", read)?;
        if self.world.has_fault(|fault| matches!(fault, Fault::FlipRead(_) | Fault::FlipWrite(_))) {
            // Records have no checksums between their message and their place in a block.
            return Ok(());
        }
        let reading = ReadCall { reader: self.process, opened, started, ended: self.now() };
        let (data, losses) = (memory.into_vec().expect("real memory"), self.world.losses.borrow().clone());
        for (index, offset) in (0..).zip(access.offsets) {
            // The file may end within a record, and then it has none of the later ones.
            let [start, end] = [index, index + 1].map(|index| (index * record).min(bytes) as usize);
            let checked = self
                .world
                .file(file, |file| file.check_read(offset, record, &data[start..end], &reading, &losses));
            self.world.keep("contents", &format!("client {}: records of file {file}", self.client), checked);
        }
        Ok(())
    }
}
