//! Accesses of a process to records, alone and collectively.

use fs::{OpenTreeFile, TeamMembership, TeamStep};
use layout::{Extent, Selection};
use machine::Memory;
use sim::SimMachine;

use super::process::{Done, Process};
use super::selected_settings;
use crate::contents::{ReadCall, bytes_of};
use crate::schedule::{CollectiveAccess, Fault, FileTarget, StridedRecords};

impl Process {
    /// Takes part in a collective operation of all clients, with a separate team.
    pub(super) async fn together(&self, index: usize) -> Done {
        let _turn = self.joining.take().await;
        let collective = self.world.schedule.collectives[index];
        let file = self.opened(FileTarget::Shared(collective.file)).await?;
        // Another thread may close the file before the team is complete.
        let handle = self.handle(file)?;
        let (rank, size) = (self.client as u32, self.world.schedule.clients.len() as u32);
        let client = self.tree.cache().client().clone();
        let team = TeamMembership::form(&client, &format!("collective{index}"), rank, size).await;
        let team = self.check("forming a team", team)?;
        let moved = match collective.writes {
            true => self.write_together(&team, file, &handle, collective).await,
            false => self.read_together(&team, file, &handle, collective).await,
        };
        if collective.syncs && moved.is_ok() {
            let (started, turn) = (self.now(), team.turn(team.next_turn(), TeamStep::Sync).await);
            let synced = handle.sync_together(&turn).await;
            self.check_file(file, "a sync together", synced)?;
            if !self.world.has_disk_faults() {
                self.note(file, |history, process, now| history.persist_together(process, started, now));
            }
        }
        moved
    }

    pub(super) async fn write_together(
        &self,
        team: &TeamMembership<SimMachine>,
        file: usize,
        handle: &OpenTreeFile<SimMachine>,
        collective: CollectiveAccess,
    ) -> Done {
        let (selection, offsets) = self.selected(collective);
        let (process, now, record) = (self.process, self.now(), collective.record);
        let (mut begun, mut data) = (Vec::new(), Vec::new());
        for offset in offsets {
            let stamp = self.world.stamp();
            begun.push(self.world.file(file, |file| file.begin_write(stamp, process, offset, record, now)));
            data.extend(bytes_of(stamp, record));
        }
        let settings = selected_settings(collective.in_two_phases);
        let turn = team.turn(team.next_turn(), TeamStep::write(settings.method)).await;
        let written = handle.write_selected(Some(&turn), &selection, &Memory::real(data), settings).await;
        self.check_file(file, "a collective write", written)?;
        for begun in begun {
            self.note(file, |history, _, now| {
                history.accept_collective(begun, collective.in_two_phases, now)
            });
        }
        Ok(())
    }

    pub(super) async fn read_together(
        &self,
        team: &TeamMembership<SimMachine>,
        file: usize,
        handle: &OpenTreeFile<SimMachine>,
        collective: CollectiveAccess,
    ) -> Done {
        let (selection, offsets) = self.selected(collective);
        let memory = Memory::real(vec![0; selection.bytes() as usize]);
        let (settings, record) = (selected_settings(collective.in_two_phases), collective.record);
        let started = self.now();
        let turn = team.turn(team.next_turn(), TeamStep::read(settings.method)).await;
        let read = handle.read_selected(Some(&turn), &selection, &memory, settings).await;
        let bytes = self.check_file(file, "a collective read", read)?;
        let reading = ReadCall { reader: self.process, opened: started, started, ended: self.now() };
        self.check_records(file, &memory, bytes, record, offsets, &reading);
        Ok(())
    }

    /// Checks read records, of which the file has the first `bytes` bytes.
    fn check_records(
        &self,
        file: usize,
        memory: &Memory,
        bytes: u64,
        record: u64,
        offsets: Vec<u64>,
        reading: &ReadCall,
    ) {
        let data = memory.clone().into_vec().expect("real memory");
        if self.world.has_fault(|fault| matches!(fault, Fault::FlipRead(_) | Fault::FlipWrite(_))) {
            // Records have no checksums between their message and their place in a block.
            return;
        }
        let losses = self.world.losses.borrow().clone();
        // The file may end within a record, and then it has none of the later ones.
        let data = &data[..bytes as usize];
        for (index, offset) in (0..).zip(offsets) {
            let start = (index * record).min(bytes);
            let data = &data[start as usize..(start + record).min(bytes) as usize];
            let checked =
                self.world.file(file, |file| file.check_read(offset, record, data, reading, &losses));
            self.world.keep("contents", &format!("client {}: records of file {file}", self.client), checked);
        }
    }

    /// Writes records alone.
    pub(super) async fn write_records(&self, target: FileTarget, records: StridedRecords) -> Done {
        let file = self.opened(target).await?;
        let (selection, offsets) =
            selected(records.offset, records.record, 2 * records.record, records.count);
        let (process, now) = (self.process, self.now());
        let (mut begun, mut data) = (Vec::new(), Vec::new());
        for offset in offsets {
            let stamp = self.world.stamp();
            begun.push(
                self.world.file(file, |file| file.begin_write(stamp, process, offset, records.record, now)),
            );
            data.extend(bytes_of(stamp, records.record));
        }
        let settings = selected_settings(records.in_two_phases);
        let written =
            self.handle(file)?.write_selected(None, &selection, &Memory::real(data), settings).await;
        self.check_file(file, "a write of records", written)?;
        for begun in begun {
            self.note(file, |history, _, now| history.accept_collective(begun, false, now));
        }
        Ok(())
    }

    /// Reads records alone.
    pub(super) async fn read_records(&self, target: FileTarget, records: StridedRecords) -> Done {
        let file = self.opened(target).await?;
        let (selection, offsets) =
            selected(records.offset, records.record, 2 * records.record, records.count);
        let memory = Memory::real(vec![0; selection.bytes() as usize]);
        let (started, asked) = (self.now(), self.asked(file)?);
        let settings = selected_settings(records.in_two_phases);
        let read = self.handle(file)?.read_selected(None, &selection, &memory, settings).await;
        let bytes = self.check_file(file, "a read of records", read)?;
        let reading = ReadCall { reader: self.process, opened: asked, started, ended: self.now() };
        self.check_records(file, &memory, bytes, records.record, offsets, &reading);
        Ok(())
    }

    /// Returns this client's part of a collective operation, and the offsets of its records.
    pub(super) fn selected(&self, collective: CollectiveAccess) -> (Selection, Vec<u64>) {
        let CollectiveAccess { offset, record, count, .. } = collective;
        let stride = record * self.world.schedule.clients.len() as u64;
        selected(offset + record * self.client as u64, record, stride, count)
    }
}

/// Returns a selection of equal records, and their offsets.
fn selected(first: u64, record: u64, stride: u64, count: u64) -> (Selection, Vec<u64>) {
    let selection = Selection::vector(Extent::new(first, record), count, stride).expect("within a file");
    (selection, (0..count).map(|index| first + index * stride).collect())
}
