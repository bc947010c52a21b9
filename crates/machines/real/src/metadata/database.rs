//! Which database a store is in.

use std::fs::File;
use std::sync::atomic::Ordering;

use machine::Result;

use super::Run;
use super::asked::Asked;
use super::postgres::Postgres;
use super::reports::Reports;
use super::sqlite::Sqlite;
use crate::settings::MetadataPlace;

/// The database of a store.
pub(super) enum Database {
    /// A file of this computer.
    File(Box<Sqlite>),
    /// A database of a server.
    Server(Box<Postgres>),
}

impl Database {
    /// The database at a place, which is opened when it is needed.
    pub(super) fn at(place: &MetadataPlace, run: &Run, reports: &Reports) -> Result<Self> {
        match place {
            MetadataPlace::Directory(directory) => {
                let file = Sqlite::at(directory, run.load(Ordering::Relaxed));
                file.map(|file| Database::File(file.into()))
            }
            MetadataPlace::Postgres(address) => {
                let server = Postgres::at(address, run.clone(), reports.clone());
                server.map(|server| Database::Server(server.into()))
            }
        }
    }

    /// The store as error messages call it.
    pub(super) fn described(&self) -> String {
        match self {
            Database::File(file) => file.described(),
            Database::Server(server) => server.described().to_owned(),
        }
    }

    /// Carries out transactions as one commit; if it is to be a flush, one that waits until they are on the medium,
    /// with all before them. If it fails, none of them has changed anything.
    pub(super) fn commit(&self, all: &mut [Box<dyn Asked>], is_flush: bool) -> Result<()> {
        match self {
            Database::File(file) => file.commit(all, is_flush),
            Database::Server(server) => server.commit(all, is_flush),
        }
    }

    /// Carries out a transaction that changes nothing, if no medium has to be waited for; says whether it has.
    pub(super) fn look(&self, asked: &mut dyn Asked) -> bool {
        match self {
            Database::File(file) => file.look(asked),
            Database::Server(_) => false,
        }
    }

    /// Whether it is away, so that nothing can be carried out for now.
    pub(super) fn is_away(&self) -> bool {
        match self {
            Database::File(_) => false,
            Database::Server(server) => server.is_given_up(),
        }
    }

    /// A number that is another one after each change of a file.
    pub(super) fn changes(&self) -> u64 {
        match self {
            Database::File(file) => file.changes(),
            Database::Server(_) => 0,
        }
    }

    /// Copies a file to one beside it, which has no name any more. Every now and then it calls `go_on`, which may
    /// commit; if that says no, there is no copy.
    pub(super) fn copy(&self, go_on: impl FnMut() -> bool) -> Result<Option<File>> {
        match self {
            Database::File(file) => file.copy(go_on),
            Database::Server(_) => Ok(None),
        }
    }

    /// Closes it: another node can use it then.
    pub(super) fn close(&mut self) {
        match self {
            Database::File(file) => file.close(),
            Database::Server(server) => server.close(),
        }
    }
}
