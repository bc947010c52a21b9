//! Those who have a file open together.
//!
//! They meet at an agent, not in MPI: who waits for a disk does not keep a processor busy with waiting.

use layout::Selection;
use node::{Handle, SelectedSettings, Session, Team};

use crate::failure::{ErrorClass, MpiError, Outcome};

/// The processes that have opened a file together, as one of them knows them.
pub(crate) struct Members {
    team: Team,
}

impl Members {
    /// Meets the others, who come with the same name, which nobody else has.
    pub(crate) fn meet(session: &Session, name: &str, rank: u32, size: u32) -> Outcome<Members> {
        Ok(Members { team: session.team(name, rank, size)? })
    }

    pub(crate) fn rank(&self) -> u32 {
        self.team.rank()
    }

    pub(crate) fn size(&self) -> u32 {
        self.team.size()
    }

    pub(crate) fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// What each has brought, by rank.
    pub(crate) fn gather(&self, value: u64) -> Outcome<Vec<u64>> {
        Ok(self.team.gather(value).wait()?)
    }

    /// Waits for the others; fails if it has failed for any of them.
    pub(crate) fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        let number = outcome.as_ref().err().map_or(0, |error| error.class as u64);
        let numbers = self.gather(number);
        let value = outcome?;
        let (number, rank) =
            numbers?.into_iter().zip(0..).max_by_key(|&(number, _)| number).unwrap_or((0, 0));
        match number {
            0 => Ok(value),
            _ => {
                Err(MpiError::new(ErrorClass::numbered(number), format!("it has failed for process {rank}")))
            }
        }
    }

    /// Reads what this member has selected, together with the others.
    pub(crate) fn read(
        &self,
        file: &Handle,
        selection: Selection,
        how: SelectedSettings,
    ) -> Outcome<Vec<u8>> {
        Ok(self.team.read(file, selection, how).wait()?)
    }

    /// Writes what this member has selected, together with the others.
    pub(crate) fn write(
        &self,
        file: &Handle,
        selection: Selection,
        bytes: Vec<u8>,
        how: SelectedSettings,
    ) -> Outcome<()> {
        Ok(self.team.write(file, selection, bytes, how).wait()?)
    }
}
