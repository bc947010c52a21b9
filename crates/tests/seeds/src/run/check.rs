//! Checks of all names and files after a run.

use std::collections::BTreeSet;

use fs::{FileId, Tree};
use machine::{Duration, Machine};
use namespace::{FileNumber, SurveyedRecord, TreeOperation, defects};
use sim::SimMachine;

use super::{QUIET, World, directory_of, look, text_of};
use crate::contents::ReadCall;
use crate::names::State;

/// Time after which a restarted metadata server and all leases let orphans be removed.
const ORPHANS_GONE: Duration = Duration::from_secs(120);

impl World {
    /// Checks all names and files, as a client sees them that has seen nothing before.
    pub(super) async fn check_all(&self) -> Result<(), String> {
        let tree = self.tree().await?;
        let records = self.survey_without_orphans(&tree).await?;
        if let Some(defect) = defects(&records).first() {
            self.break_law("namespace", defect.text.clone());
        }
        for client in 0..self.schedule.clients.len() {
            self.check_directory(&tree, client).await?;
        }
        let inodes = records.iter().filter_map(|record| match record {
            SurveyedRecord::Inode(inode) => Some(inode),
            _ => None,
        });
        let named = inodes.clone().filter(|inode| inode.layout().is_some() && inode.links > 0);
        let numbers: BTreeSet<FileNumber> = named.map(|inode| inode.number).collect();
        let files = self.files.borrow().len();
        for file in 0..files {
            let number = self.files.borrow()[file].number;
            if let Some(number) = number.filter(|number| numbers.contains(number)) {
                self.check_file(&tree, file, number).await?;
            }
        }
        self.check_remains(&tree, &inodes.map(|inode| FileId(inode.number.0)).collect()).await
    }

    /// Removes the orphans, and returns the records of the metadata server: none may be of an orphan.
    async fn survey_without_orphans(&self, tree: &Tree<SimMachine>) -> Result<Vec<SurveyedRecord>, String> {
        let end = self.checker.now() + ORPHANS_GONE;
        loop {
            tree.remove_orphans().await.map_err(text_of)?;
            let records = tree.survey().await.map_err(text_of)?;
            let is_orphan =
                |record: &&SurveyedRecord| matches!(record, SurveyedRecord::Inode(inode) if inode.links == 0);
            let Some(orphan) = records.iter().find(is_orphan) else { return Ok(records) };
            if self.checker.now() >= end {
                self.break_law("namespace", format!("an orphan stays: {orphan:?}"));
                return Ok(records);
            }
            self.pause(QUIET).await;
        }
    }

    /// Compares a directory with its possible states.
    async fn check_directory(&self, tree: &Tree<SimMachine>, client: usize) -> Result<(), String> {
        let found = self.list(tree, client).await.map_err(text_of)?;
        self.check_listed(client, &found);
        Ok(())
    }

    /// Returns the entries of a client's directory.
    pub(super) async fn list(&self, tree: &Tree<SimMachine>, client: usize) -> fs::Result<State> {
        let directory = tree.inode(look(&directory_of(client))).await?;
        let entries = tree.entries(directory.number).await?;
        let possible = self.names.borrow()[client].possible().to_vec();
        let candidates: Vec<usize> = possible.iter().flat_map(|state| state.values().copied()).collect();
        let mut found = State::new();
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let Some(name) = name.strip_prefix('n').and_then(|name| name.parse().ok()) else { continue };
            let candidates: Vec<usize> = possible
                .iter()
                .filter_map(|state| state.get(&name).copied())
                .chain(candidates.clone())
                .collect();
            found.insert(name, self.file_of(entry.inode.number, &candidates).unwrap_or(usize::MAX));
        }
        Ok(found)
    }

    /// Checks that a directory may have these entries.
    pub(super) fn check_listed(&self, client: usize, found: &State) {
        let what = format!("client {client}: the directory is {found:?}");
        let observed = self.names.borrow_mut()[client].observe(&what, |state| state == found);
        self.keep("names", "a list", observed);
    }

    /// Reads a file twice and compares it with its history.
    async fn check_file(
        &self,
        tree: &Tree<SimMachine>,
        file: usize,
        number: FileNumber,
    ) -> Result<(), String> {
        let opened = self.time();
        let read = async {
            let open = tree.open(TreeOperation::Get { number }).await?;
            let length = open.known().size;
            let data = open.paged().read(0, length).await?.to_vec().expect("real bytes");
            open.paged().file().refresh();
            open.paged().note_written_past(length);
            let again = open.paged().read(0, length).await?.to_vec().expect("real bytes");
            open.close().await?;
            fs::Result::Ok((length, data, again))
        };
        let what = format!("in the end: file {file}");
        let must_be_readable = !self.has_damage() && self.files.borrow()[file].is_persistent();
        match read.await {
            Ok((length, data, again)) => {
                if data != again {
                    self.break_law("contents", format!("{what}: a second read returns other bytes"));
                }
                let reading =
                    ReadCall { reader: usize::MAX - 1, opened, started: opened, ended: self.time() };
                let losses = self.losses.borrow().clone();
                let checked = self.file(file, |file| {
                    file.check_length(length, &reading, &losses)?;
                    file.check_read(0, length, &data, &reading, &losses)
                });
                self.keep("contents", &what, checked);
            }
            Err(error) => {
                if !self.has_faults.get() || must_be_readable {
                    self.break_law("failure", format!("{what}: {error}"));
                }
            }
        }
        Ok(())
    }

    /// Removes contents without one of these files: none may be left after that.
    async fn check_remains(&self, tree: &Tree<SimMachine>, files: &BTreeSet<FileId>) -> Result<(), String> {
        let client = tree.cache().client();
        let left = async || {
            let left = client.list_numbered().await.map_err(text_of)?;
            let unnamed = left.iter().map(|(_, stripe)| stripe.file).filter(|file| !files.contains(file));
            Ok::<_, String>(unnamed.collect::<BTreeSet<FileId>>())
        };
        let unnamed: Vec<FileId> = left().await?.into_iter().collect();
        if !self.has_faults.get() && !unnamed.is_empty() {
            self.break_law("namespace", format!("contents of {unnamed:?} have no file"));
        }
        client.remove_numbered(&unnamed).await.map_err(text_of)?;
        let left = left().await?;
        if !left.is_empty() {
            self.break_law("namespace", format!("contents of {left:?} are left without a file"));
        }
        Ok(())
    }
}
