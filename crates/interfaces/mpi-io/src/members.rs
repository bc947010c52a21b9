//! The members of a file: the processes that have it open together.
//!
//! The members meet at barriers of an agent instead of MPI barriers, so that a process that waits for a disk does not
//! busy-wait. If a call fails for all members, one member prints the error before any member continues, since a member
//! that continues may end the program.

use node::{Handle, Session, Team};

use crate::account::CallAccount;
use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::hints::CommonHints;
use crate::waiting::wait;

/// The members of a file, as seen by one of them.
pub(crate) struct Members {
    team: Team,
    name: String,
    /// Path of the file.
    path: String,
}

impl Members {
    /// Enters a barrier with the other members. All pass the same unique `name` and the same `path`.
    pub(crate) fn join(
        session: &Session,
        path: &str,
        (name, rank, size): (&str, u32, u32),
    ) -> Outcome<Members> {
        let team = session.team(name, rank, size).map_err(|error| common(error, path, name, rank))?;
        Ok(Members { team, name: name.to_owned(), path: path.to_owned() })
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

    /// Returns the values of all members, by rank.
    pub(crate) fn gather(&self, value: u64) -> Outcome<Vec<u64>> {
        wait(self.team.gather(value)).map_err(|error| self.common(error))
    }

    /// Enters a barrier. Fails if the call failed for any member; the first member with a failure prints the error.
    pub(crate) fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        let numbers = self.gather(number_of(&outcome));
        self.agreed(outcome, numbers)
    }

    /// Like [`Members::agree`], for a call in which the first member acts before the others. If the first member
    /// failed, all return its error. If no member failed, all must have the same `common`.
    pub(crate) fn agree_after_first<T>(&self, outcome: Outcome<T>, common: CommonHints) -> Outcome<T> {
        let gathered = self.gather(match number_of(&outcome) {
            0 => u64::from(common.packed()) << CLASS_BITS,
            number => number,
        });
        let numbers: Outcome<Vec<u64>> =
            gathered.clone().map(|gathered| gathered.into_iter().map(|value| value & CLASS_MASK).collect());
        let outcome = match numbers.as_deref() {
            Ok(&[of_first, ..]) if of_first > 0 && !self.is_first() => Err(failed_for(0, of_first)),
            _ => outcome,
        };
        let value = self.agreed(outcome, numbers)?;
        self.check_common(gathered?.into_iter().map(|value| value >> CLASS_BITS))?;
        Ok(value)
    }

    /// Enters a barrier. Fails unless all members passed the same hints.
    pub(crate) fn agree_on(&self, common: CommonHints) -> Outcome<()> {
        self.check_common(self.gather(common.packed().into())?.into_iter())
    }

    /// Fails if the values of the members, by rank, differ; the first member prints the error.
    fn check_common(&self, brought: impl Iterator<Item = u64>) -> Outcome<()> {
        let mut brought =
            brought.zip(0..).map(|(packed, rank)| (CommonHints::of_packed(packed as u16), rank));
        let Some((of_first, _)) = brought.next() else { return Ok(()) };
        let Some((other, rank)) = brought.find(|(other, _)| *other != of_first) else { return Ok(()) };
        let why = format!("processes 0 and {rank} give different hints: {}", of_first.differences(other));
        let error = MpiError::new(ErrorClass::NotSame, why);
        Err(self.failed(if self.is_first() { error.logged() } else { error }))
    }

    /// Leaves the members at the end of the process, so that no member waits for this process.
    pub(crate) fn leave(&self) {
        // If this fails, the others notice the disconnect. MPI may have ended already.
        let _ = self.team.leave().wait();
    }

    fn agreed<T>(&self, outcome: Outcome<T>, numbers: Outcome<Vec<u64>>) -> Outcome<T> {
        let all = numbers.as_deref().unwrap_or_default();
        let Some(first) = all.iter().position(|&number| number > 0) else {
            let value = outcome?;
            return numbers.map(|_| value);
        };
        Err(self.failed(match outcome {
            Err(error) if first == self.rank() as usize => error,
            Err(error) => error.logged_elsewhere(),
            Ok(_) => failed_for(first, all.iter().copied().max().unwrap_or_default()),
        }))
    }

    /// Returns this member's own error. Before that, prints the error if this member must, and enters a barrier.
    fn failed(&self, error: MpiError) -> MpiError {
        let error = error.about(&self.path).printed(CallAccount::is_asked_for());
        // If the barrier fails, nothing more can be done for this error.
        let _ = self.gather(0);
        error
    }

    /// Returns the error of a call that failed for all members alike.
    pub(crate) fn common(&self, error: node::Error) -> MpiError {
        common(error, &self.path, &self.name, self.rank())
    }

    /// Flushes the writes of all members to stable storage.
    pub(crate) fn sync(&self, file: &Handle) -> Outcome<()> {
        wait(self.team.sync(file)).map_err(|error| self.common(error))
    }

    /// Returns the team that moves data of all members together.
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }
}

/// Bits for the class of an error in gathered values; the bits above belong to a successful outcome.
const CLASS_BITS: u32 = 8;
const CLASS_MASK: u64 = (1 << CLASS_BITS) - 1;

/// Returns the number of an outcome, as members exchange it: 0 for success.
fn number_of<T>(outcome: &Outcome<T>) -> u64 {
    outcome.as_ref().err().map_or(0, |error| error.class as u64)
}

/// Returns the error for a call that failed with this class in another member.
fn failed_for(rank: usize, number: u64) -> MpiError {
    let why = format!("the call failed in process {rank}");
    MpiError::new(ErrorClass::numbered(number), why).logged_elsewhere()
}

/// Returns the error of a call that failed for all members alike. The first member prints the error; if the first
/// member was lost, all others print it.
fn common(error: node::Error, path: &str, name: &str, rank: u32) -> MpiError {
    let of_team = format!(" of the team {name}");
    let has_lost_first = error.lost_rank() == Some(0);
    let found = MpiError::from(error.about(path)).without(&of_team).of_data();
    if rank == 0 || has_lost_first { found } else { found.logged_elsewhere() }
}

#[cfg(test)]
mod tests {
    use node::ErrorKind;

    use super::*;

    /// Returns the message that a member prints when another one is lost.
    fn words(lost: u32, why: &str, rank: u32) -> Option<String> {
        let error = node::Error::new(ErrorKind::Gone, "0123", why).with_lost_rank(lost);
        common(error, "dir/x", "0123", rank).words(false).map(str::to_owned)
    }

    #[test]
    fn one_member_prints_the_error_for_all() {
        let lost = "rank 1 of the team 0123 disconnected";
        assert_eq!(words(1, lost, 0).as_deref(), Some("dir/x: rank 1 disconnected"));
        assert_eq!(words(1, lost, 2), None);
        let first = "rank 0 of the team 0123 has left";
        assert_eq!(words(0, first, 2).as_deref(), Some("dir/x: rank 0 has left"));
    }
}
